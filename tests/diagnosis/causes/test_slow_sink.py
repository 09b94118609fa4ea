from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.slow_sink import CAUSE
from ledgerops.diagnosis.causes.small_batch_overhead import CAUSE as SMALL_BATCH_OVERHEAD
from ledgerops.diagnosis.profile import profile
from ledgerops.model.records import DriverCode
from tests.diagnosis.conftest import stage
from tests.diagnosis.rules.crowd import looked_at
from tests.tables import cases

QUICK = stage("save", seconds=[0.4, 0.4], began=0.5)
WRITES = stage("save", seconds=[4, 4], wall=4.1, cpu=0.05)
BETWEEN = [stage("count", seconds=[0.4, 0.4], began=0.5), stage("save", seconds=[0.4, 0.4], began=4.1)]
LATE = [stage("save", seconds=[0.4, 0.4], began=4.1)]
FOREACH = {"plan": {"sink": "ForeachBatchSink"}}
PHASES = {"add_batch": 4.8, "query_planning": 0.1}
SEE = "see where the function of foreachBatch spends its time: `py-spy dump --pid PID` on the driver's Python process"
LOOK = "look at app.py:22 in dedup: the function of foreachBatch spends most of its time there"
TIME, LARGER = "time one write at the target of the sink", "write larger batches from the executors"
FUNCTION, SINK = "the function of foreachBatch", "the sink"
AT = "(mostly at app.py:22 in dedup)"
WRITER, NOOP, RATE = {"sink": "ForeachWriterTable"}, {"sink": "NoopTable"}, "RateStreamV2[rowsPerSecond=5]"
SAVES, LAST = stage("save", seconds=[4, 4], wall=4.1, cpu=0.05, writes=True), stage("save", began=4.2)
READS_AND_WRITES = [stage("save", seconds=[4, 4], wall=4.1, cpu=0.05, shuffle=False)]


def slow(history, ran, **more):
    return history(**{"seconds": [5] * 8, "phases": PHASES, "stages": ran} | more)


@cases("stages", ("between two stages", BETWEEN), ("before the first task", LATE))
def test_the_driver_s_time_within_a_batch_is_the_sink_s_only_where_it_grew(history, stages):
    """What was there from the first batch may be planning."""
    assert list(check(CAUSE, slow(history, stages))) == []
    past = {"warm": 14, "warm_stages": [stage(seconds=[0.4, 0.4], began=0.2, wall=0.7)]}
    [finding] = check(CAUSE, slow(history, stages, **past))
    assert finding.saving_seconds == pytest.approx(4.1, abs=0.3)


@cases("cores", ("hardly anything", 0.2), ("a part of it is the tasks'", 0.5))
def test_a_function_that_waits_from_birth_is_the_sink_s(history, cores):
    """All that the driver computes besides tasks is too little for planning that long."""
    view = looked_at(slow(history, LATE, **FOREACH), busy=0.2, driver_jvm=cores)
    [finding] = check(CAUSE, view)
    assert finding.saving_seconds == pytest.approx(4.4, abs=0.1)
    assert list(check(SMALL_BATCH_OVERHEAD, view)) == []


@cases("cores, waits", ("it waits", 0.05, True), ("it computes, and gets few cores", 0.2, False))
def test_a_function_that_waits_does_so_on_a_busy_machine_too(history, cores, waits):
    """Fixed phases take three times as long as on a free machine."""
    phases = {"add_batch": 13.6, "query_planning": 1.0, "wal_commit": 0.2}
    late = [stage("save", seconds=[0.4, 0.4], cpu=0.1, began=13.0)]
    view = looked_at(slow(history, late, seconds=[15] * 8, phases=phases, **FOREACH), driver_jvm=cores)
    found = profile(view)

    assert found.contention is not None and found.contention.part == "other_processes"
    assert found.now("driver_waits") == pytest.approx(11.7 if waits else 0.0, abs=0.1)
    assert bool(list(check(CAUSE, view))) is waits


@cases(
    "sink, cores",
    ("the driver plans", "ForeachBatchSink", {"driver_jvm": 1.0}),
    ("the function computes", "ForeachBatchSink", {"driver_jvm": 0.1, "driver_python": 0.9}),
    ("tasks compute elsewhere", "ForeachBatchSink", {"driver_jvm": 0.5, "executor": "1"}),
    ("another sink has no function", "DeltaSink[/out]", {"driver_jvm": 0.1}),
)
def test_what_may_be_planning_is_not(history, sink, cores):
    view = looked_at(slow(history, LATE, plan={"sink": sink}), busy=0.6, **cores)
    assert list(check(CAUSE, view)) == []


@cases(
    "planning, told",
    ("planning takes far less", 0.2, True),
    ("the function may plan for as long", 1.5, False),
    ("nothing tells", None, False),
)
def test_without_a_sample_of_the_driver_the_planning_of_the_query_tells_whether_it_waits(history, planning, told):
    phases = {"add_batch": 4.8} | ({} if planning is None else {"query_planning": planning})
    late = slow(history, LATE, **FOREACH, cores=None, phases=phases)
    assert bool(list(check(CAUSE, late))) is told


@cases("workers, told", ("idle workers", 0.1, True), ("workers compute", 0.7, False))
def test_of_jobs_that_another_thread_started_nothing_is_known_but_what_python_workers_use(history, workers, told):
    view = history(seconds=[5] * 8, warm=14, phases={"add_batch": 4.8}, stages=None, **FOREACH)
    found = [finding.summary for finding in check(CAUSE, looked_at(view, busy=0.5, python_workers=workers))]
    assert bool(found) is told
    assert all("pass in the sink; what its tasks do is not known" in summary for summary in found)


@cases(
    "sink, first",
    ("foreach", "ForeachWriterTable", "time one write at the target of the sink"),
    ("Kafka", "KafkaTable", "check the request latency of the broker that is written to"),
    ("a table", "DeltaSink[/out]", "time one commit to the table, and look for other writers of it"),
    ("whatever the path", "FileSink[/kafka/delta]", "time one write at the target of the sink"),
)
def test_the_first_step_fits_the_sink(history, sink, first):
    [finding] = check(CAUSE, slow(history, [QUICK], plan={"sink": sink}))
    assert finding.remedies[0].action == first
    assert finding.component.name == sink.partition("[")[0]


@cases(
    "stages, busy, seconds, told",
    ("after the last task: foreachBatch, a commit", [QUICK], 0.6, 4.0, " while no task computes"),
    ("and an event log does not tell of the cores", [QUICK], None, 4.0, " while no task computes"),
    ("the stage that writes waits", [QUICK, WRITES], 0.6, 4.2, " while no task computes"),
    ("the only stage waits", [WRITES], 0.6, 4.5, " while no task computes"),
    ("cores are full", [WRITES], 0.95, 4.5, ", or its tasks wait for a core"),
    ("an event log does not tell of the cores", [WRITES], None, 4.5, ", or its tasks wait for a core"),
)
def test_a_batch_that_waits_for_its_sink_is_found(history, stages, busy, seconds, told):
    view = slow(history, stages)
    [finding] = check(CAUSE, view if busy is None else looked_at(view, busy=busy))

    assert finding.saving_seconds == pytest.approx(seconds, abs=0.1)
    assert finding.summary.endswith(f" s of a batch of 5.0 s pass in the sink{told}")
    assert (finding.component.kind, finding.component.name) == ("sink", "Parquet")


@cases(
    "ran, cores, line, where, actions",
    ("it computes at a line", QUICK, 0.9, True, f"{FUNCTION} {AT}", [LOOK]),
    ("it computes", QUICK, 0.9, False, FUNCTION, [SEE]),
    ("it waits", QUICK, 0.1, True, f"{SINK} {AT}", [TIME, LARGER]),
    ("an event log does not tell", QUICK, None, False, FUNCTION, [SEE]),
    ("tasks wait", WRITES, 0.1, False, SINK, [TIME, LARGER]),
)
def test_of_a_function_it_is_told_what_is_known(history, ran, cores, line, where, actions):
    view = slow(history, [ran], **FOREACH)
    view = view if cores is None else looked_at(view, busy=0.6, driver_python=cores)
    if line:
        view.history.driver_code = DriverCode(view.now, "run-1", 10, 9, "app.py", 22, "dedup")
    [finding] = check(CAUSE, view)

    assert f" pass in {where} while no task computes" in finding.summary
    assert [each.action for each in finding.remedies] == actions


@cases(
    "case, found",
    ("tasks read and write: it may be the source", {"stages": READS_AND_WRITES}, False),
    ("rows are given to a writer one by one", {"stages": READS_AND_WRITES, "plan": WRITER}, True),
    ("a source that makes its rows", {"stages": READS_AND_WRITES, "source": RATE}, True),
    ("a sink that keeps nothing", {"stages": READS_AND_WRITES, "source": RATE, "plan": NOOP}, False),
    ("behind a shuffle, before the function writes again", {"stages": [SAVES, LAST]}, True),
    ("before the next shuffle", {"stages": [replace(SAVES, shuffle_write_bytes=1000), LAST]}, False),
    ("tasks compute", {"stages": [stage(seconds=[4.4, 4.4], began=0.1)]}, False),
    ("tasks wait for a sink that keeps nothing", {"stages": [WRITES], "plan": NOOP}, False),
    ("a sink that keeps nothing, and time in the driver", {"plan": NOOP}, False),
    ("tasks unknown", {"stages": None}, False),
    ("one slow write in four", {"seconds": [1, 1, 5, 1] * 2}, False),
    ("one task waits for itself", {"stages": [QUICK, stage(seconds=[0.3, 4], wall=4.1, cpu=0.05)]}, False),
)
def test_what_waits_is_the_sink_s_only_where_nothing_else_can_be_meant(history, case, found):
    assert bool(list(check(CAUSE, slow(history, [QUICK], **case)))) is found
