from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.input_recomputed import RULE
from ledgerops.model.spark_progress import parse_progress
from ledgerops.signals.query_view import QueryView
from tests.build import T0, spark_json
from tests.build import history as remembered
from tests.diagnosis.conftest import stage, told_by
from tests.tables import cases

TIMES = "each batch reads its rows of transactions"
EACH_ACTION = "once for each action on the batch in foreachBatch"


def view(rows, offsets=1000, description="KafkaV2[Subscribe[transactions]]", sink="ForeachBatchSink"):
    """Three batches with so many rows of so many offsets each."""
    batches = []
    for number, count in enumerate(rows):
        ends = [{"transactions": {"0": offsets * (number + each)}} for each in (0, 1, 1)]
        source = dict(zip(("startOffset", "endOffset", "latestOffset"), ends, strict=True))
        source |= {"description": description, "numInputRows": count}
        batches.append(parse_progress(spark_json(
            batchId=number, timestamp=f"2027-01-15T08:00:{2 * number:02}.000Z", numInputRows=count, sources=[source],
            sink={"description": sink},
        )))  # fmt: skip
    return QueryView(remembered(batches), T0 + 60)


@cases(
    "rows, sink, said, steps",
    ("written twice", [2000, 2015, 1990], "ForeachBatchSink", f"2 times: {EACH_ACTION}", ["count the", "persist()"]),
    ("a union", [3000] * 3, "FileSink", "3 times", ["look for several scans"]),
)
def test_a_source_that_is_read_several_times_is_found_and_its_rows_count_once(rows, sink, said, steps):
    seen = view(rows, sink=sink)
    [finding] = RULE.check(seen)

    assert (finding.summary, told_by(finding)) == (f"{TIMES} {said}", {"times_read": float(said[0])})
    assert all(told.action.startswith(step) for told, step in zip(finding.remedies, steps, strict=False))
    assert [batch.rows for batch in seen.batches] == [1000, 1000, 1000]


def read_by(history, *records, rows=3000, count=8, source="RateStreamV2[rowsPerSecond=5]"):
    """Batches of a query on one source, with a stage for each of `records` that reads so many rows."""
    stages = [stage(records=[each / 2] * 2, shuffle=False, began=0.1 * n) for n, each in enumerate(records)]
    return history(rows=rows, seconds=[1] * count, stages=stages, source=source, plan={"sink": "ForeachBatchSink"})


def test_of_kafka_the_offsets_tell_it_whatever_the_stages(history):
    """Its rows count once, so they are not those of all stages together."""
    seen = view([2000, 2000, 2000])
    for batch in seen.batches:
        stages = history(warm=0, seconds=[1], stages=[stage(records=[500, 500], shuffle=False)] * 2).history.tasks[0]
        seen.history.tasks.append(replace(stages, run_id=batch.run_id, batch_id=batch.batch_id))
    [finding] = RULE.check(QueryView(seen.history, seen.now))

    assert finding.summary.startswith(f"{TIMES} 2 times:")


@cases(
    "records, more, found",
    ("it does", [1000, 1000, 1000], {}, [f"{TIMES} 3 times: {EACH_ACTION}"]),
    ("one stage", [3000], {}, []),
    ("two stages that read other rows", [1000, 2000], {}, []),
    ("less than Spark counted", [1000, 1000], {}, []),
    ("a table with as many rows", [3000, 3000], {}, []),
    ("one batch", [1000, 1000, 1000], {"count": 1}, []),
)
def test_of_a_source_without_offsets_the_stages_that_read_its_rows_tell_it(history, records, more, found):
    assert [finding.summary for finding in RULE.check(read_by(history, *records, **more))] == found


@cases(
    "case",
    ("a compacted topic", {"rows": [400, 500, 300]}),
    ("no whole factor", {"rows": [1400, 1600, 1500]}),
    ("not each batch", {"rows": [2000, 1000, 2000]}),
    ("too few batches", {"rows": [2000, 2000]}),
    ("no rows", {"rows": [0, 0, 0]}),
    ("files", {"rows": [5000] * 3, "offsets": 1, "description": "FileStreamSource[file:/in]"}),
    ("rate", {"rows": [5000] * 3, "offsets": 1, "description": "RateStreamV2[rowsPerSecond=5000]"}),
)
def test_others_are_not(case):
    seen = view(**case)
    assert list(RULE.check(seen)) == []
    if case.get("offsets") == 1:
        assert [batch.rows for batch in seen.batches] == case["rows"]


@cases(
    "partitions, size, found",
    ("one action that reads partition after partition, as limit does", 1, 0, 0),
    ("of one partition, as many bytes", 1, 700, 1),
    ("of several partitions", 4, 0, 1),
)
def test_stages_of_one_task_each_may_have_read_different_partitions(history, partitions, size, found):
    reads = stage(records=[1500 / partitions] * partitions, seconds=[0.1] * partitions, shuffle=False)
    seen = history(rows=3000, seconds=[1] * 8, stages=[reads, reads], source="FileStreamSource[file:/in]")
    for tasks in list(seen.history.tasks):
        stages = tuple(replace(each, input_bytes=size) for each in tasks.stages)
        seen.history.tasks.append(replace(tasks, stages=stages))

    assert len(list(RULE.check(seen))) == found


def late(history, *reads, took=5.0, count=12, **more):
    """A query that was never in time: each of its batches reads 1,000 rows in so many stages, which take so long."""
    stages, began = [], 0.0
    for seconds in reads:
        stages.append(stage(records=[500, 500], seconds=[seconds] * 2, shuffle=False, began=began, cpu=0.1))
        began += seconds + 0.01
    told = {"warm": 0, "cores": 2, "source": "RateStreamV2[rowsPerSecond=5]", **more}
    told["plan"] = {"sink": "ForeachBatchSink"} | more.get("plan", {})
    ran = {"seconds": [took] * count, "phases": {"add_batch": took}, "stages": stages}
    return history(rows=1000 * len(reads), **ran, **told)


def test_what_repeated_reads_take_of_a_batch_that_is_late_is_told_and_persist_comes_first(history):
    [finding] = RULE.check(late(history, 1.0, 1.2, 1.1, 1.5))
    assert told_by(finding) == pytest.approx({"times_read": 4.0, "profile_seconds": 5.0, "saving_seconds": 3.3})

    assert finding.summary.endswith("foreachBatch; read once, a batch of 5.0 s would take 3.3 s less")
    assert finding.saving_seconds == told_by(finding)["saving_seconds"]
    assert finding.remedies[0].action.startswith("persist() the batch")
    assert finding.at_most == "critical"


@cases(
    "case",
    ("a quick count before a slow write", {"reads": (0.2, 4.5)}),
    ("batches in time", {"reads": (0.1, 0.1, 0.1), "took": 0.4}),
    ("in time until now", {"reads": (1.0, 1.2, 1.1, 1.5), "warm": 30, "warm_stages": [stage()]}),
)
def test_repeated_reads_that_are_not_what_makes_batches_late_are_only_worth_knowing(history, case):
    case = dict(case)
    [finding] = RULE.check(late(history, *case.pop("reads"), **case))

    assert (finding.at_most, finding.saving_seconds) == ("info", None)
    assert finding.remedies[0].action.startswith("count the actions")


def test_reads_at_the_same_time_save_nothing(history):
    """The function begins its actions in several threads."""
    seen = late(history, 1.5, 1.5, 1.5)
    for tasks in list(seen.history.tasks):
        first = tasks.stages[0]
        stages = tuple(replace(each, started=first.started, ended=first.ended) for each in tasks.stages)
        seen.history.tasks.append(replace(tasks, stages=stages))

    assert [each.saving_seconds for each in RULE.check(QueryView(seen.history, seen.now, seen.hosts))] == [None]


@cases(
    "interval, first, explained",
    ("one reading would be in time", 3.0, "input-recomputed", True),
    ("the function is too slow for one, too", 0.5, "python-bound", False),
)
def test_they_are_the_root_cause_where_reading_once_ends_the_harm(history, interval, first, explained):
    seen = late(history, *[1.2] * 4, interval=interval, python=9.0, plan={"python": True})
    roots = Diagnoser()(seen).root_causes

    assert (roots[0].rule, roots[0].severity) == (first, "warning")
    assert ("python-bound" in roots[0].explains) is explained
    assert {"input-recomputed", "python-bound"} <= {each for root in roots for each in (root.rule, *root.explains)}


def test_what_is_only_worth_knowing_explains_no_late_batch(history):
    roots = {each.rule: (each.severity, each.explains) for each in Diagnoser()(late(history, 0.2, 4.5)).root_causes}
    assert roots["input-recomputed"] == ("info", ())
    assert "warning" in {severity for severity, _ in roots.values()}


def test_of_kafka_the_readings_are_the_stages_with_as_many_rows_as_offsets(history):
    seen = late(history, 2.0, 2.0, 0.5)
    batches, tasks = seen.history.batches, list(seen.history.tasks)
    for place, (batch, ran) in enumerate(zip(list(batches), tasks, strict=True)):
        [read] = batch.sources
        batches[place] = replace(batch, rows=1000, sources=(replace(read, rows=1000, times_read=2),))
        stages = (*ran.stages[:2], replace(ran.stages[2], records=40))  # an action that reads a part, such as show
        seen.history.tasks.append(replace(ran, stages=stages))

    [finding] = RULE.check(QueryView(seen.history, seen.now, seen.hosts))
    assert finding.saving_seconds == pytest.approx(2.0)
