from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.too_many_tasks import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from tests.diagnosis.conftest import late, stage, told_by
from tests.tables import cases

ANY_LATER_START = "set spark.sql.shuffle.partitions to 6 or fewer and start the query again"
KAFKA = "KafkaV2[Subscribe[t]]"
BUILT_AGAIN = (
    "find out whether the state may be built again from the source: the checkpoint fixes how many tasks use it"
)


def tiny(count=200, records=5.0, seconds=0.03, wall=4.0, shuffle=True) -> list:
    return [stage("save", records=[records] * count, seconds=[seconds] * count, wall=wall, shuffle=shuffle)]


@cases(
    "shuffle, plan, first",
    ("a shuffle", True, {}, ANY_LATER_START),
    ("state", True, {"stateful": True}, BUILT_AGAIN),
    ("state that no later start finds", True, {"stateful": True, "temporary_checkpoint": True}, ANY_LATER_START),
    ("the source", False, {}, "coalesce(6) right after load(): fewer tasks then read the same partitions"),
)
def test_tiny_tasks_are_told_with_what_three_for_each_core_would_save(history, shuffle, plan, first):
    [finding] = check(CAUSE, late(history, tiny(shuffle=shuffle), plan=plan))

    assert finding.summary == "200 tasks on 2 cores take 3.9 s of a batch of 5.0 s, with 5 records each"
    assert finding.saving_seconds == pytest.approx(4.0 * (1 - 6 / 200))
    assert told_by(finding)["tasks"] == 200
    assert (finding.remedies[0].action, finding.remedies[0].safe) == (first, True)
    assert finding.remedies[-1].settings == ((("spark.sql.shuffle.partitions", 6),) if shuffle else ())
    assert finding.component.name == ("shuffle" if shuffle else "tasks of the source")


@cases(
    "rows, shuffle, place",
    ("rows of earlier batches, as a union keeps them", 100, False, "tasks beside the source"),
    ("the rows of the batch", 1000, False, "tasks of the source"),
    ("Spark counted no rows", 0, False, "tasks of the source"),
    ("more rows behind a shuffle, as windows make them", 100, True, "shuffle"),
)
def test_tasks_that_read_more_rows_than_the_batch_has_are_not_the_source_s(history, rows, shuffle, place):
    [finding] = check(CAUSE, late(history, tiny(shuffle=shuffle), rows=[rows] * 8))
    assert finding.component.name == place
    assert finding.remedies[0].action.startswith("look for what each batch reads again") is ("beside" in place)


@cases(
    "rows, records, reader, place",
    ("another stage reads the source", 1000, 0.0, 500, "tasks beside the source"),
    ("it reads a part of it", 1000, 0.0, 200, "tasks of the source"),
    ("they read rows, too", 1000, 5.0, 500, "tasks of the source"),
    ("a source without rows may have many partitions", 0, 0.0, 0, "tasks of the source"),
)
def test_tasks_that_read_no_row_are_not_the_source_s_where_others_read_all(history, rows, records, reader, place):
    ran = [*tiny(shuffle=False, records=records), stage("read", records=[reader] * 2, seconds=[0.1] * 2, shuffle=False)]
    [finding] = check(CAUSE, late(history, ran, rows=[rows] * 8))
    assert finding.component.name == place


@cases(
    "source, partitions, shuffle, split",
    ("an option splits them", KAFKA, 4, False, True),
    ("each partition is a task", KAFKA, 200, False, False),
    ("another source", "RateStreamV2[rowsPerSecond=5]", 4, False, False),
    ("tasks behind a shuffle", KAFKA, 4, True, False),
)
def test_more_tasks_than_a_topic_has_partitions_are_those_of_an_option(history, source, partitions, shuffle, split):
    read = [[1000 // partitions] * partitions] * 8
    [finding] = check(CAUSE, late(history, tiny(shuffle=shuffle), source=source, read=read))
    step = "lower minPartitions of the source to 6, or raise its maxRecordsPerPartition, and start again"
    assert (finding.remedies[0].action == step) is split
    assert (finding.component.name == "shuffle") is shuffle


@cases(
    "count, plan, state, repartition",
    ("it is not the setting's", 500, {"shuffle_partitions": 2}, None, True),
    ("the setting's", 200, {"shuffle_partitions": 200}, None, False),
    ("the checkpoint's", 200, {"shuffle_partitions": 4, "stateful": True}, 200, False),
    ("the setting is not known", 200, {}, None, False),
)
def test_a_number_that_is_not_the_setting_s_is_that_of_a_repartition_in_the_query(
    history, count, plan, state, repartition
):
    operators = {"name": "dedupe", "shuffle_partitions": state} if state else None
    [finding] = check(CAUSE, late(history, tiny(count), plan=plan, operators=operators))
    steps = [(step.action, step.settings) for step in finding.remedies]
    step = f"lower repartition({count}) in the code of the query to 6, and start it again"
    assert (steps == [(step, (("repartition", 6),))]) is repartition
    assert any("repartition(" in action for action, _ in steps) is repartition


@cases(
    "plan, source, count, delta",
    ("Delta is the sink", {"sink": "DeltaSink[/out]"}, "KafkaV2[Subscribe[t]]", 50, True),
    ("Delta is the source", {}, "DeltaSource[/in]", 50, True),
    ("it may MERGE", {"sink": "ForeachBatchSink", "delta": True}, "KafkaV2[Subscribe[t]]", 50, True),
    ("it lists files", {"sink": "DeltaSink[/out]"}, "KafkaV2[Subscribe[t]]", 10_000, True),
    ("it has no function that could", {"delta": True}, "KafkaV2[Subscribe[t]]", 50, False),
    ("the query's own number", {"sink": "DeltaSink[/out]"}, "DeltaSource[/in]", 200, False),
    ("the query set 50", {"sink": "DeltaSink[/out]", "shuffle_partitions": 50}, "DeltaSource[/in]", 50, False),
    ("no table", {}, "KafkaV2[Subscribe[t]]", 50, False),
    ("no table, many more", {}, "KafkaV2[Subscribe[t]]", 10_000, False),
)
def test_delta_s_own_tasks_are_told_from_the_query_s(history, plan, source, count, delta):
    [finding] = check(CAUSE, late(history, tiny(count), plan=plan, source=source))

    setting = {
        50: "spark.databricks.delta.snapshotPartitions to 2",
        10_000: "spark.sql.sources.parallelPartitionDiscovery.parallelism to 2",
    }
    expected = setting[count] if delta else "spark.sql.shuffle.partitions to 6 or fewer"
    assert (finding.component.name == "files of the Delta table") is delta
    assert finding.remedies[0].action == f"set {expected} and start the query again"


def test_tasks_with_hardly_a_row_are_too_many_at_any_pace(history):
    """Each takes long, and on its rows it does not spend that time: it loads and saves a state store."""
    [finding] = check(CAUSE, late(history, tiny(seconds=0.9, records=2, wall=4.4)))
    assert finding.share is not None and finding.share > 0.8


@cases(
    "stages, more",
    ("three tasks a core", tiny(), {"cores": 64}),
    ("something else takes the batch", tiny(wall=0.6), {}),
    ("they have work to do", tiny(records=5000.0), {}),
    ("they have persisted rows, 10,000 a record", [replace(tiny(shuffle=False)[0], input_bytes=2**29)], {}),
    ("each takes long", tiny(count=20, seconds=0.4), {}),
)
def test_others_are_not(history, stages, more):
    assert list(check(CAUSE, late(history, stages, **more))) == []


@pytest.mark.parametrize("rows", [0, 8433])
def test_two_hundred_partitions_of_python_state_are_no_reason_to_look_for_a_function(history, rows):
    """Batches without a row take as long as those with 8,433: it is the partitions that cost, whatever runs in them."""
    took, read = [88.5, 91.6] * 3, [rows, 0] * 3
    ran = [stage("state", records=[n / 200] * 200, seconds=[0.85] * 200, wall=86.0, cpu=0.1) for n in read]
    state = {"name": "transformWithStateInPySparkExec", "rows": 9000, "shuffle_partitions": 200, "commit_seconds": 20.0}
    view = history(
        warm=0, interval=10.0, seconds=took, rows=[8433, 0] * 3, stages=[[each] for each in ran], python=140.0, cores=2,
        phases=[{"add_batch": each - 0.5, "query_planning": 0.3} for each in took], operators=state,
        plan={"stateful": True, "shuffle_partitions": 200},
    )  # fmt: skip
    roots = Diagnoser()(view).root_causes

    assert roots[0].rule in ("too-many-tasks", "small-batch-overhead")
    assert not [step.action for root in roots for step in root.remedies if "function" in step.action]


@cases(
    "plan, kept",
    ("Spark 3.5", {"spark_version": "3.5.7"}, True),
    ("Spark 4.0", {"spark_version": "4.0.1"}, True),
    ("Spark 4.1", {"spark_version": "4.1.0-preview3"}, False),
    ("no later start finds the checkpoint", {"spark_version": "4.0.1", "temporary_checkpoint": True}, False),
    ("not known", {}, False),
)
def test_before_spark_4_1_a_checkpoint_keeps_the_setting_also_without_state(history, plan, kept):
    [finding] = check(CAUSE, late(history, tiny(), plan=plan))
    assert finding.remedies[0].action.startswith("coalesce(6)" if kept else "set spark.sql.shuffle.partitions")
