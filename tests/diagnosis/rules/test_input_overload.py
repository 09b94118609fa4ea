from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.more_tasks import more_tasks
from ledgerops.diagnosis.harm import owed
from ledgerops.diagnosis.rule import UNSURE
from ledgerops.diagnosis.rules.input_overload import RULE
from tests.diagnosis.conftest import stage
from tests.diagnosis.rules.retelling import beside_another, retold
from tests.tables import cases

NOISE = "535 rows/s arrive and 500 rows/s are processed: more by no more than the noise of a few batches"
CAPPED = {"seconds": [2] * 8, "backlog": [1000 * n for n in range(1, 9)]}
HEAVY = {"seconds": [4, 8, 16], "rows": [2000, 4000, 8000]}
WORK = {"warm": 0, "seconds": [3.0] * 20, "phases": {"add_batch": 2.9}, "cores": 2}
COMPUTES, QUICK = stage(seconds=[2.7, 2.7]), stage(seconds=[0.3, 0.3])
BUSY = WORK | {"stages": [COMPUTES]}
UNTOLD = HEAVY | {"plan": {"rate_limits": {"maxFilesPerTrigger": "9"}}}
SLOWER = {"seconds": [4, 8, 16], "rows": [1000, 2000, 4000], "warm": 14, "warm_seconds": 0.5}
TOO_LATE = {"seconds": [2] * 70, "backlog": [500 * n for n in range(1, 71)], "rows": 500}
IN_THREE = "rows/s that are processed, in the last 3 batches; results"
LONGER = f"1,000 rows/s arrive, 2.0 times the 500 {IN_THREE} will be 60 s late in 72 s"
TOO_LATE_SAID = f"500 rows/s arrive (usually 250), 2.0 times the 250 {IN_THREE} are already too late"


@cases(
    "view, said",
    (
        "what is left grows",
        lambda history: history(**CAPPED),
        "1,000 rows/s arrive (usually 500), 2.0 times the 500 rows/s that are processed, in the last 3 batches; "
        "results will be 60 s late in 1 min 40 s",
    ),
    (
        "beside a source that does not tell what arrives",
        lambda history: beside_another(history(**CAPPED), 9000, heads=False),
        "1,000 rows/s arrive (usually 500), 2.0 times the 500 rows/s that are processed, in the last 3 batches; "
        "results will be 60 s late in 1 min 40 s",
    ),
    ("batches get longer, where nothing limits them", lambda history: history(**HEAVY), LONGER),
    ("and where the source reports no heads", lambda history: without_heads(history(**HEAVY)), LONGER),
    ("results are too late already", lambda history: history(**TOO_LATE), TOO_LATE_SAID),
)
def test_arrival_above_what_is_worked_off_is_found(history, view, said):
    [finding] = RULE.check(view(history))
    assert finding.summary == said


def without_heads(view):
    return retold(view, lambda n, batch: {"sources": tuple(replace(each, latest={}) for each in batch.sources)})


@cases(
    "case",
    ("has room for more rows", {"seconds": [0.5] * 10, "backlog": [1000 * n for n in range(1, 11)]}),
    ("time outside the tasks is not work on rows", {**WORK, "stages": [stage(seconds=[0.2, 0.2], wall=0.2)]}),
    ("catching up", {"seconds": [2] * 8, "backlog": [9000, 8000, 7000, 6000, 5000, 3000, 1000, 0]}),
    ("the same load takes longer", {"warm": 14, "seconds": [6, 18], "rows": [1000, 3000]}),
    ("work on rows has only begun", BUSY | {"seconds": [3.0] * 6}),
    ("work on rows, in time", BUSY | {"interval": 4.0}),
    ("work on rows, which recovers", BUSY | {"seconds": [3.0] * 19 + [1.0]}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


@cases("case", ("it is capped, and does not say what arrives", UNTOLD), ("it became slower", SLOWER))
def test_without_heads_neither_are(history, case):
    assert list(RULE.check(without_heads(history(**case)))) == []


def test_a_batch_that_waited_for_its_source_has_all_that_came_meanwhile(history):
    """After an outage of the broker: as much as ever arrived, a second."""
    waited = {"latest_offset": 20.5, "add_batch": 0.8}

    view, sure = history(seconds=[21.5], rows=[11_000], phases=[waited]), history(seconds=[21.5], rows=[11_000])

    assert growth.load(view).arrival == pytest.approx(12_000 / 24.5)
    assert list(RULE.check(view)) == []
    assert list(RULE.check(sure))


@cases("more, of", ("as much as ever comes to the topic", 0, None), ("and more", 60, {"transactions"}))
def test_rows_in_bulk_of_a_source_without_heads_arrive_unless_it_is_the_topic_to_which_more_comes(history, more, of):
    view = history(seconds=[5.0] * 8 + [40.0], interval=10.0, backlog=[0] * 8 + [500 * more])
    newest = view.batches[-1].batch_id

    def bulk(_: int, batch):
        rows = 100_000 if batch.batch_id == newest else 10
        files = replace(batch.sources[0], name="files", rows=rows, start={}, end={}, latest={})
        return {"sources": (*batch.sources, files), "rows": batch.rows + rows}

    load = growth.load(retold(view, bulk))
    assert (load.sources and set(load.sources)) == of
    assert load.arrival == (pytest.approx(100 + 100_010 / 20) if of is None else 1600)


def test_a_sink_that_takes_the_time_is_the_cause_instead(history):
    [root] = Diagnoser()(history(**HEAVY, stages=[QUICK])).root_causes
    assert root.rule == "slow-sink"
    assert {each.rule: each.because for each in root.ruled_out}["input-overload"].startswith("slow-sink takes ")


@cases(
    "case, because",
    ("by its numbers", {"seconds": [1] * 8}, "500 rows/s arrive and 500 rows/s are processed"),
    ("a little more is noise", {"warm": 14, "seconds": [2] * 8, "backlog": [70 * n for n in range(8)]}, NOISE),
)
def test_it_is_ruled_out(history, case, because):
    assert RULE.ruled_out(history(**case)) == because


@cases(
    "made, first",
    ("windows", 300, "compare the length of the window with its slide: the plan makes 300"),
    ("some grouping sets", 3, "ask the producer"),
)
def test_work_on_the_rows_is_the_cause_where_each_batch_reads_all_there_is(history, made, first):
    [finding] = RULE.check(history(**BUSY, plan={"rows_made": made}))
    assert finding.summary.startswith("the work on 1,000 rows takes ")
    assert finding.remedies[0].action.startswith(first)


def turned(history, before, rows, seconds, now, cpu=0.9, usually=0.3, **more):
    """A query on files that did `before` rows in half a second, and then so many rows in so many seconds, of which
    tasks take `now` and took `usually`, and compute for a share of `cpu`."""
    return history(
        warm=0, rows=[before] * 30 + rows, seconds=[0.5] * 30 + seconds, cores=2, source="FileStreamSource[file:/in]",
        phases=[{"add_batch": 0.4}] * 30 + [{"add_batch": each - 0.1} for each in seconds],
        stages=[[stage(seconds=[usually] * 2, cpu=cpu)]] * 30 + [[stage(seconds=[now, now], cpu=cpu)]] * len(rows),
        **more,
    )  # fmt: skip


@cases(
    "before, now, dearer",
    ("as many rows take nine times as long", 1000, 1000, True),
    ("twice as many do not explain that", 500, 1000, True),
    ("ten times as many do", 100, 1000, False),
)
def test_rows_that_are_more_work_than_before_are_looked_at_and_not_their_number(history, before, now, dearer):
    view = turned(history, before, [now] * 12, [3.0] * 12, 2.7)
    steps = [finding.remedies[0].action for finding in RULE.check(view)]
    assert any(step.startswith("compare the newest rows") for step in steps) is dearer


@cases(
    "grown, first", ("they get larger", 8e6, "find the list or map"), ("they stay as they are", 0, "compare the newest")
)
def test_where_the_rows_of_the_state_get_larger_they_are_what_makes_each_row_more_work(history, grown, first):
    operators = [{"rows": 8, "memory_bytes": int(8e6 + grown * n)} for n in range(42)]
    view = turned(history, 1000, [1000] * 12, [3.0] * 12, 2.7, operators=operators)
    [finding] = RULE.check(view)
    assert finding.summary.endswith("each row is more work than it used to be")
    assert finding.remedies[0].action.startswith(first)


@cases(
    "rows, speaks",
    ("ten times the rows a second, of which a fifth is left over", [5000, 5800, 6700, 7700], True),
    ("no more a second than before: batches are longer", [500, 580, 670, 770], False),
)
def test_more_rows_than_a_batch_can_do_are_found_before_the_batches_have_grown_much(history, rows, speaks):
    """A fifth more than is processed comes, which makes each batch a sixth longer than the one before."""
    view = turned(history, 125, rows, [8.0, 9.3, 10.7, 12.3], 8.0)
    found = [finding.summary for finding in RULE.check(view)]
    assert any("more rows arrive in an interval" in summary for summary in found) is speaks


@cases(
    "rows, now, speaks",
    ("four times the rows a second", [2000, 2300, 2600, 3000], 7.8, True),
    ("no more a second than before", [500, 580, 670, 770], 7.8, False),
    ("four times as many, which take a moment: the sink writes them", [2000, 2300, 2600, 3000], 0.5, False),
)
def test_rows_of_which_each_waits_for_a_service_are_too_many_as_well(history, rows, now, speaks):
    view = turned(history, 125, rows, [8.0, 9.3, 10.7, 12.3], now, cpu=0.02)
    assert any("more rows arrive in an interval" in finding.summary for finding in RULE.check(view)) is speaks


@cases(
    "cores, tasks, action, settings",
    ("tasks wait for cores", 1, 4, "give the application 2 cores", {"cores": 2}),
    ("each task has a core", 2, 2, "divide the rows among 3 tasks", {"repartition": 3, "cores": 3}),
    ("cores are idle", 8, 2, "divide the rows among 3 tasks", {"repartition": 3}),
)
def test_more_cores_are_advised_only_as_far_as_there_are_tasks_for_them(history, cores, tasks, action, settings):
    """Batches of 3 s that read what arrives in 3 s: as much work at once as now, and room."""
    took = [2.7 * min(cores, tasks) / tasks] * tasks
    computes = [stage(records=[500] * tasks, seconds=took, wall=2.7, shuffle=False)]
    [finding] = RULE.check(history(stages=computes, **WORK | {"cores": cores}))
    assert finding.remedies[1].action.startswith(action)
    assert dict(finding.remedies[1].settings) == settings


@cases(
    "tasks, steps",
    ("one task on two cores", 1, ["see why cores have no task", "the longest stage has 1 task for 2 cores"]),
    ("each core has one", 2, ["ask the producer", "the longest stage has 2 tasks for 2 cores"]),
)
def test_cores_without_a_task_are_used_before_the_producer_is_asked(history, tasks, steps):
    ran = [stage(records=[1000 // tasks] * tasks, seconds=[2.7] * tasks)]
    [finding] = RULE.check(history(stages=ran, **WORK))
    assert finding.remedies[0].action.startswith(steps[0])
    assert finding.remedies[1].why == steps[1]


@cases(
    "planning, cpu, tasks, cores",
    ("rows have the whole interval", 0.0, 0.95, 3, True),
    ("tasks that wait need no cores", 0.0, 0.02, 3, False),
    ("planning takes a fifth of the interval", 0.4, 0.95, 4, True),
    ("planning takes nearly all: more tasks are no cure", 1.9, 0.95, 6, True),
)
def test_the_rows_must_fit_into_what_the_fixed_cost_leaves_of_the_interval(history, planning, cpu, tasks, cores):
    """Two tasks, rows that arrive as fast as they are processed, and an interval of two seconds."""
    phases = {"query_planning": planning, "add_batch": 2.9 - planning}
    ran = [stage(seconds=[2.7 - planning] * 2, cpu=cpu, shuffle=False)]
    remedy = more_tasks(history(stages=ran, **WORK | {"phases": phases}), 3.0)

    assert dict(remedy.settings) == {"repartition": tasks, "cores": tasks}
    assert ("cores" in remedy.action) is cores


def test_the_length_of_a_batch_that_has_the_rows_of_a_long_one_before_does_not_ask_for_more_cores(history):
    """Each batch reads what arrived in the one before, and takes twice as long: two tasks do half of the work."""
    lengths = [2.0, 4.0, 8.0, 16.0, 32.0]
    view = history(
        warm=0, seconds=lengths, rows=[round(250 * each) for each in lengths], cores=2,
        phases=[{"add_batch": each - 0.1} for each in lengths],
        stages=[[stage(seconds=[each - 0.3] * 2)] for each in lengths],
    )  # fmt: skip
    [finding] = RULE.check(view)
    assert dict(finding.remedies[1].settings)["cores"] == 6


def test_no_tasks_are_advised_where_the_function_of_foreach_batch_works_in_the_driver(history):
    ran = [stage(seconds=[0.2, 0.2])]
    [finding] = RULE.check(history(stages=ran, **HEAVY, cores=2, plan={"sink": "ForeachBatchSink"}))
    assert [each.action for each in finding.remedies] == [
        "see what the function of foreachBatch does for each row in the driver, and let tasks do it"
    ]


def test_a_huge_batch_that_still_runs_says_nothing_of_its_rows(history):
    view = turned(history, 125, [1000] * 4, [1.7] * 4, 1.6, running=30.0)
    assert owed(view) is not None
    assert list(RULE.check(view)) == []


@cases(
    "case, sure",
    ("it kept up before", {"warm": 14}, True),
    ("never quick, and its tasks compute", {"stages": [COMPUTES]}, True),
    ("never quick, and its tasks are not known", {}, False),
    ("never quick, and its tasks are done soon", {"stages": [QUICK]}, False),
)
def test_what_was_never_quick_is_called_overloaded_for_sure_only_where_its_rows_take_the_time(history, case, sure):
    case = {"warm": 0, "cores": 2, "seconds": [3] * 8, "rows": [3000] * 8} | case
    [finding] = RULE.check(history(backlog=[4000 * n for n in range(1, 9)], **case))

    assert (finding.confidence > UNSURE) is sure
    assert finding.remedies[0].action.startswith("see in the Spark UI, page Jobs") is not sure


@cases(
    "shuffle, state, plan, action",
    ("it reads the source", False, None, {}, "divide the rows among 3 tasks"),
    ("it reads a shuffle", True, None, {}, "raise spark.sql.shuffle.partitions to 3"),
    ("it keeps state", True, 2, {"stateful": True}, "give the state 3 partitions"),
    ("state, Spark 3.5", True, 2, {"stateful": True, "spark_version": "3.5.7"}, "give the state 3 partitions"),
    (
        "a shuffle whose number the checkpoint keeps",
        True,
        None,
        {"spark_version": "3.5.7"},
        "divide the rows among 3 tasks (repartition, by",
    ),
)
def test_what_divides_the_rows_fits_the_stage_that_has_too_few_tasks(history, shuffle, state, plan, action):
    ran = [stage(records=[500] * 2, seconds=[2.7] * 2, wall=2.7, shuffle=shuffle)]
    operators = {"name": "dedupe", "shuffle_partitions": state} if state else None
    remedy = more_tasks(history(stages=ran, operators=operators, **WORK | {"cores": 8, "plan": plan}), 3.0)
    assert remedy.action.startswith(action)
