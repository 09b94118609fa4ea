"""Each second of a batch belongs to one part: the parts add up to it, and each is filled by what it is for."""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerops.analysis.inputs import open_source
from ledgerops.diagnosis.batch_parts import CONTENTION, PARTS, PHASES, STALL, Facts, split, stage_time
from ledgerops.model.records import ExecutorShare, FailedStatement, Progress, StageSummary, TaskSummary
from ledgerops.runtime.replay import Replay
from tests.build import T0, batch, operator, source
from tests.drills.saved import NAMES, recording
from tests.paths import RECORDED
from tests.tables import cases

MICROSECOND = 1e-6
TWO, UNKNOWN = Facts({"driver": 2}), Facts({})
PAIR = Facts({"1": 1, "2": 1}, "sink_wait")


def stage(began: float, ended: float, run: float, **changes: object) -> StageSummary:
    """A stage of two even tasks, from `began` to `ended` in seconds after T0, whose tasks took `run` together."""
    plain = StageSummary(
        stage_id=0, name="save", tasks=2, failed_tasks=0, started=T0 + began, ended=T0 + ended, run_seconds=run,
        cpu_seconds=0.0, gc_seconds=0.0, seconds_median=run / 2, seconds_max=run / 2, records=1000, records_median=500,
        records_max=500, reads_shuffle=True, input_bytes=0, shuffle_read_bytes=0, shuffle_write_bytes=0, spill_bytes=0,
        executors={"driver": ExecutorShare(2, run)},
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def tasks(*stages: StageSummary, python: float | None = None) -> TaskSummary:
    numbered = tuple(replace(each, stage_id=place) for place, each in enumerate(stages))
    return TaskSummary("run-1", 0, numbered, python)


def parts(worked: TaskSummary | None, facts: Facts = TWO, whole: Progress | None = None) -> dict[str, float]:
    """The parts of a batch (of 4 s, all of it add_batch, unless it is given) that are not zero."""
    found = split(whole or batch(duration=4.0, phases={"add_batch": 4.0}), worked, facts)
    assert_whole(found.batch, found.seconds)
    return {name: round(seconds, 6) for name, seconds in found.seconds.items() if seconds > MICROSECOND}


def assert_whole(whole: Progress, seconds: dict[str, float]) -> None:
    assert math.isclose(sum(seconds.values()), whole.duration, rel_tol=1e-9, abs_tol=MICROSECOND)
    assert all(each >= 0 for each in seconds.values())
    assert seconds.keys() <= set(PARTS) - set(CONTENTION)


PHASED = {"latest_offset": 0.1, "query_planning": 0.2, "wal_commit": 0.05, "add_batch": 3.0, "commit_offsets": 0.05}


def test_every_second_is_shared_out_like_the_run_time_of_the_tasks():
    whole = batch(duration=3.6, phases=PHASED, operators=(operator(update_seconds=0.5, commit_seconds=0.4),))
    worked = tasks(
        stage(0.6, 1.6, 1.6, cpu_seconds=0.8, gc_seconds=0.2, shuffle_write_bytes=900),
        stage(1.6, 2.6, 2.0, cpu_seconds=0.8, shuffle_seconds=0.1),
        python=1.0,
    )

    # tasks ran 3.6 s in 1.8 s of wall time, so each of their seconds is half a second of it
    assert parts(worked, whole=whole) == {
        "latest_offset": 0.1,
        "query_planning": 0.2,
        "wal_commit": 0.05,
        "commit_offsets": 0.05,
        "driver_before": 0.05,
        "after_tasks": 0.95,  # from the end of the last stage to that of add_batch
        "launch": 0.2,  # the first stage took 1.0 s, its longest task 0.8 s
        "python": 0.5,
        "gc": 0.1,
        "state_commit": 0.2,
        "state_update": 0.25,
        "shuffle": 0.05,
        "cpu": 0.55,
        "waiting": pytest.approx(0.15 * 3 / 9, abs=0.2),
        "sink_wait": pytest.approx(0.15 * 6 / 9, abs=0.2),
        "unattributed": 0.2,
    }


SIDE_BY_SIDE, ENDS_EARLY = [stage(0.5, 2.5, 2.0)] * 2, tasks(stage(0.0, 1.5, 3.0, cpu_seconds=3.0))


@cases(
    "stages, before, between, after",
    ("before, between and after two stages", [stage(0.5, 1.5, 2.0), stage(2.0, 3.0, 2.0)], 0.5, 0.5, 1.0),
    ("stages side by side count once", SIDE_BY_SIDE, 0.5, 0.0, 1.5),
    ("a clock that is behind: the stages ended before it began", [stage(-9.0, -5.0, 2.0)], 0.0, 0.0, 0.0),
    ("a clock that is ahead", [stage(9.0, 10.0, 2.0)], 3.0, 0.0, 0.0),
    ("a stage that is longer than add_batch", [stage(-1.0, 9.0, 8.0)], 0.0, 0.0, 0.0),
    ("a stage of no time", [stage(1.0, 1.0, 0.0)], 1.0, 0.0, 3.0),
)
def test_of_add_batch_the_driver_has_what_no_stage_takes(stages, before, between, after):
    found = parts(tasks(*stages))
    driver = [found.get(name, 0.0) for name in ("driver_before", "driver_between", "after_tasks")]
    busy = stage_time(tasks(*stages))

    assert driver == [before, between, after]
    assert busy is not None and sum(driver) == pytest.approx(4.0 - min(4.0, busy.seconds))


def around_a_stage(*failed):
    """The seconds before the stage of a batch, of statements that failed, between them and it, and after it."""
    spans = tuple(FailedStatement(T0 + since, T0 + until, error) for since, until, error in failed)
    found = parts(replace(tasks(stage(2.0, 3.0, 2.0)), failed=spans))
    names = ("driver_before", "failed_statements", "driver_between", "after_tasks")
    return [found.get(name, 0.0) for name in names]


@cases(
    "failed, before, lost, between, after",
    ("before a stage", [(0.5, 1.5)], 0.5, 1.0, 0.5, 1.0),
    ("one within another", [(0.5, 1.5), (0.7, 1.0)], 0.5, 1.0, 0.5, 1.0),
    ("after it", [(3.2, 3.7)], 2.0, 0.5, 0.2, 0.3),
    ("while it runs", [(2.0, 3.0)], 2.0, 0.0, 0.0, 1.0),
    ("for longer than add_batch", [(-9.0, 9.0)], 0.0, 3.0, 0.0, 0.0),
)
def test_statements_that_fail_have_the_time_in_which_no_stage_of_another_one_runs(failed, before, lost, between, after):
    assert around_a_stage(*((*span, "no") for span in failed)) == [before, lost, between, after]


@cases(
    "failed, before, lost, between, after",
    ("tried again until it works", [(0.5, 0.6, "no: 1"), (1.5, 1.6, "no: 2")], 0.5, 1.1, 0.4, 1.0),
    ("whose exception is not kept", [(0.5, 0.6, ""), (1.5, 1.6, "no")], 0.5, 1.1, 0.4, 1.0),
    ("another exception", [(0.5, 0.6, "no: 1"), (1.5, 1.6, "never: 1")], 0.5, 0.2, 1.3, 1.0),
    ("a stage between them", [(1.5, 1.6, "no"), (3.5, 3.6, "no")], 1.5, 0.2, 0.9, 0.4),
)
def test_the_pause_before_the_next_try_is_lost_too(failed, before, lost, between, after):
    assert around_a_stage(*failed) == pytest.approx([before, lost, between, after])


def test_a_batch_whose_every_statement_fails_has_no_stage():
    found = parts(replace(tasks(), failed=(FailedStatement(T0 + 0.5, T0 + 3.0, "no"),)))

    assert found == {"driver_before": 0.5, "failed_statements": 2.5, "after_tasks": 1.0}


@cases(
    "stages, expected",
    ("one", [stage(2.5, 3.5, 2.0, submitted=T0 + 0.1)], {"driver_before": 0.1, "slot_wait": 2.4}),
    (
        "before the first stage and between two",
        [stage(1.5, 2.0, 1.0, submitted=T0 + 0.2), stage(3.5, 4.0, 1.0, submitted=T0 + 2.1)],
        {"driver_before": 0.2, "driver_between": 0.1, "slot_wait": 2.7},
    ),
    ("the driver was busy", [stage(2.5, 3.5, 2.0, submitted=T0 + 2.4)], {"driver_before": 2.5}),
    ("for less than half", [stage(1.5, 3.5, 2.0, submitted=T0 + 0.1)], {"driver_before": 1.5}),
    ("not known", [stage(2.5, 3.5, 2.0)], {"driver_before": 2.5}),
)
def test_a_stage_that_is_ready_waits_for_a_slot_and_not_for_the_driver(stages, expected):
    found = parts(tasks(*stages))

    names = ("driver_before", "driver_between", "slot_wait")
    assert {name: found[name] for name in names if name in found} == expected


@cases(
    "seconds, phases, worked, expected",
    ("by two clocks", 5.0, {"add_batch": 2.0}, ENDS_EARLY, {"cpu": 1.5, "after_tasks": 0.5, "unattributed": 3.0}),
    ("scaled", 0.9, {"add_batch": 0.8, "wal_commit": 0.2}, None, {"wal_commit": 0.18, "tasks_unknown": 0.72}),
)
def test_phases_are_no_longer_than_the_batch_and_what_passes_after_them_belongs_to_none(
    seconds, phases, worked, expected
):
    assert parts(worked, whole=batch(duration=seconds, phases=phases)) == pytest.approx(expected)


MANY = tasks(*(stage(0.1 * n, 0.1 * n + 0.1, 0.2) for n in range(8)))


@cases(
    "worked, unknown",
    ("not read", None, True),
    ("perhaps of the newest only", MANY, True),
    ("of the newest stages only", replace(tasks(stage(0.0, 1.0, 2.0)), whole=False), True),
    ("of one the start is unknown", tasks(stage(0.0, 1.0, 2.0), stage(0.0, 1.0, 2.0, started=None)), True),
    ("no stage", tasks(), True),
    ("of all stages, however many", replace(MANY, whole=True), False),
)
def test_tasks_that_are_not_known_are_not_guessed_at(worked, unknown):
    assert (parts(worked) == {"tasks_unknown": 4.0}) is unknown


def uneven(records: list[int], seconds: list[float], wall: float | None = None, **changes: object) -> StageSummary:
    """A stage of tasks with so many records and seconds, that takes as long as its longest task or as it is said."""
    middle = len(seconds) // 2
    told = {"tasks": len(seconds), "seconds_median": sorted(seconds)[middle], "seconds_max": max(seconds)}
    told |= {"records": sum(records), "records_median": sorted(records)[middle], "records_max": max(records)}
    return stage(0.0, wall or max(seconds), sum(seconds), cpu_seconds=sum(seconds), **told | changes)  # type: ignore[arg-type]


FOUR, TWO_EACH = Facts({"driver": 4}), Facts({"1": 2, "2": 2})
LONE = [0.4, 0.4, 0.4, 4.0]
ON_TWO = {"1": ExecutorShare(2, 2.0), "2": ExecutorShare(2, 4.4)}
IN_WAVES = {"1": ExecutorShare(6, 3.0), "2": ExecutorShare(3, 3.0)}
ONE_AFTER_ANOTHER = uneven([500] * 9, [0.5] * 6 + [1.0] * 3, 3.0, executors=IN_WAVES)
ALL_ON_ONE = uneven([500] * 4, [1.0] * 4, 4.0, executors={"1": ExecutorShare(4, 4.0)})


@cases(
    "ran, facts, expected",
    ("rows, behind a shuffle", uneven([100] * 3 + [1700], LONE), FOUR, {"uneven_keys": 2.7}),
    ("rows of the source", uneven([100] * 3 + [1700], LONE, reads_shuffle=False), FOUR, {"uneven_source": 2.7}),
    ("one task, for as many rows", uneven([500] * 4, LONE), FOUR, {"uneven_task": 3.6}),
    ("all of one executor", uneven([500] * 4, [1.0, 1.0, 2.2, 2.2], executors=ON_TWO), TWO_EACH, {"uneven_task": 1.2}),
    ("all of one executor, one after another", ONE_AFTER_ANOTHER, PAIR, {"uneven_task": 0.75}),
    ("one executor that has all tasks", ALL_ON_ONE, PAIR, {"uneven_executors": 2.0}),
    ("even", uneven([500] * 4, [3.9, 4.0, 3.8, 3.9]), FOUR, {}),
    ("few rows, by chance", uneven([1, 1, 1, 90], LONE), FOUR, {}),
    ("the only task", uneven([2000], [4.0]), FOUR, {}),
    ("cores unknown", uneven([100] * 3 + [1700], LONE), UNKNOWN, {}),
    ("one task, on two cores", uneven([500] * 4, LONE), TWO, {"uneven_task": 3.2}),
)
def test_a_stage_is_uneven_by_what_an_even_one_would_not_take(ran, facts, expected):
    found = {name: seconds for name, seconds in parts(tasks(ran), facts).items() if name.startswith("uneven")}
    assert found == {name: pytest.approx(seconds) for name, seconds in expected.items()}


def many(count: int, run: float, each: float, records: int, **more: object) -> StageSummary:
    return stage(0.0, 3.0, run, tasks=count, seconds_median=each, seconds_max=each, records=records, **more)


BATCHES = {"input_bytes": 2**27, "reads_shuffle": False}  # of many rows, each of which is a record


@cases(
    "ran, facts, launch, in_number",
    ("all run at once", stage(0.0, 3.0, 5.0), TWO, 0.5, 0.0),
    ("one waits for a core", stage(0.0, 3.0, 3.2, tasks=3, seconds_max=2.8), TWO, 0.0, 0.0),
    ("many tiny tasks", many(100, 1.0, each=0.01, records=100), TWO, 0.0, 3 * 0.94),
    ("far too many with hardly a row each, whatever they take", many(200, 6.0, 0.9, 400), TWO, 0.0, 3 * 0.97),
    ("many with work to do", many(30, 6.0, each=0.2, records=30_000), TWO, 0.0, 0.0),
    ("many with a few batches of cached rows", many(30, 6.0, 0.2, 150, **BATCHES), TWO, 0.0, 0.0),
    ("far too many, each with a batch of cached rows", many(200, 6.0, 0.2, 200, **BATCHES), TWO, 0.0, 0.0),
    ("many with a small file each", many(100, 1.0, 0.01, 100, input_bytes=400_000), TWO, 0.0, 3 * 0.94),
    ("cores unknown", stage(0.0, 3.0, 5.0), UNKNOWN, 0.0, 0.0),
)
def test_what_no_task_of_a_stage_needs_goes_into_their_start_or_their_number(ran, facts, launch, in_number):
    found = parts(tasks(ran), facts)
    assert found.get("launch", 0.0) == pytest.approx(launch, abs=0.02)
    assert found.get("many_tasks", 0.0) == pytest.approx(in_number)


@cases(
    "failed, launch, retries",
    ("less than what no task needs", 0.4, 0.1, 0.4),
    ("beside tasks that went on", 2.0, 0.0, 0.5),
    ("none failed", 0.0, 0.5, 0.0),
    ("by a clock that was set back", -3.0, 0.5, 0.0),
)
def test_attempts_that_fail_take_of_a_stage_what_its_other_tasks_do_not_need(failed, launch, retries):
    found = parts(tasks(stage(0.0, 3.0, 5.0, failed_seconds=failed)), TWO)
    assert found.get("launch", 0.0) == pytest.approx(launch, abs=0.02)
    assert found.get("retries", 0.0) == pytest.approx(retries, abs=0.02)


LEAVES = {"shuffle_write_bytes": 900}  # a shuffle to the next stage
BOTH, WRITES = ({"reads_shuffle": shuffled, "slowest_wrote": 500} for shuffled in (False, True))
HANDS_OVER = {"slowest_wrote": 0}  # its rows to the driver, or none
READS, BETWEEN, NOTHING = BOTH | LEAVES, WRITES | LEAVES, {"reads_shuffle": False, "records": 0}
DOCUMENTS = {"cpu_seconds": 4.0, "records": 100, "input_bytes": 100 * 2**20}
SHUFFLED = {"input_bytes": 0, "shuffle_read_bytes": 100 * 2**20}
MADE, SOURCE = TWO._replace(reading="waiting"), TWO._replace(alone="source_wait")
EACH, LAST = ("source_wait", "sink_wait", "waiting"), {"sink_wait": 4 / 3}


@cases(
    "stages, facts, expected",
    ("reads, then writes", [READS, WRITES], TWO, {"source_wait": 2.0, "sink_wait": 2.0}),
    ("both, and nothing tells", [BOTH], TWO, {"waiting": 4.0}),
    ("both, and the sink is known to wait", [BOTH], PAIR, {"sink_wait": 4.0}),
    ("both, twice", [BOTH, BOTH], TWO, {"waiting": 4.0}),
    ("both, before rows are counted", [BOTH, READS, WRITES], TWO, {"waiting": 4 / 3, "source_wait": 4 / 3} | LAST),
    ("both, and the source is known to wait", [BOTH, BOTH], SOURCE, {"source_wait": 4.0}),
    ("writes what a shuffle brought, twice", [READS, WRITES, BOTH], TWO, dict.fromkeys(EACH, 4 / 3)),
    ("between two shuffles", [BETWEEN, WRITES], TWO, {"waiting": 2.0, "sink_wait": 2.0}),
    ("reads what is broadcast", [BOTH | HANDS_OVER, READS, WRITES], TWO, {"source_wait": 8 / 3} | LAST),
    ("sorts by a sample first", [WRITES | HANDS_OVER, WRITES], TWO, {"waiting": 2.0, "sink_wait": 2.0}),
    ("reads rows that are all left out", [BOTH | HANDS_OVER, NOTHING], TWO, {"source_wait": 2.0, "sink_wait": 2.0}),
    ("what it wrote is not told", [BOTH | {"slowest_wrote": None}, BOTH], TWO, {"source_wait": 2.0, "waiting": 2.0}),
    ("a sink that keeps nothing", [WRITES], TWO._replace(sink_waits=False), {"waiting": 4.0}),
    ("a source that makes its rows itself", [READS, WRITES], MADE, {"waiting": 2.0, "sink_wait": 2.0}),
    ("Python that is not told", [READS, WRITES], TWO._replace(python=True), {"python": 2.0, "sink_wait": 2.0}),
    ("and it writes twice", [WRITES, WRITES], TWO._replace(python=True), {"python": 2.0, "sink_wait": 2.0}),
    ("computes", [BOTH | {"cpu_seconds": 4.0}], TWO, {"cpu": 4.0}),
    ("for a hundred rows", [BOTH | {"cpu_seconds": 4.0, "records": 100}], TWO, {"few_rows": 4.0}),
    ("for a hundred documents", [BOTH | DOCUMENTS], TWO, {"cpu": 4.0}),
    ("for a hundred documents of a shuffle", [WRITES | DOCUMENTS | SHUFFLED], TWO, {"cpu": 4.0}),
    ("spills", [WRITES | {"spill_bytes": 2**28}], TWO, {"spill": 4.0}),
    ("spills for half of it", [WRITES | {"spill_bytes": 2**26}], TWO, {"spill": 2.0, "sink_wait": 2.0}),
    ("spills a little", [WRITES | {"spill_bytes": 2**20}], TWO, {"spill": 1 / 32, "sink_wait": 4 - 1 / 32}),
)
def test_tasks_that_neither_compute_nor_report_wait_for_what_their_stage_does(stages, facts, expected):
    each = 4.0 / len(stages)
    ran = [stage(each * n, each * (n + 1), 2 * each, **{"records": 9000} | told) for n, told in enumerate(stages)]
    ran = [replace(one, cpu_seconds=min(2.0, one.cpu_seconds) * one.run_seconds / 2) for one in ran]
    whole = batch(duration=4.0, phases={"add_batch": 4.0}, sources=(source(rows=9000),))

    assert parts(tasks(*ran), facts, whole) == {name: pytest.approx(seconds) for name, seconds in expected.items()}


@cases("python, parted", ("told", 1.0, {"python": 0.5, "waiting": 1.5}), ("not told", None, {"python": 2.0}))
def test_where_the_time_of_python_workers_is_told_tasks_wait_for_the_rest(python, parted):
    ran = stage(0.0, 4.0, 4.0, reads_shuffle=False, records=9000)
    whole = batch(duration=4.0, phases={"add_batch": 4.0}, sources=(source(rows=9000),))
    found = parts(tasks(ran, python=python), TWO._replace(python=True), whole)
    assert {name: seconds for name, seconds in found.items() if name in ("python", "waiting")} == parted


JOIN = WRITES | {"records": 10_100}
TABLE, INPUT = BOTH | {"records": 10_000}, READS | {"records": 100, "cpu_seconds": 0.0}


@cases(
    "stages, sources, scanned",
    ("the scan", [TABLE], [source(100)], 4.0),
    ("not the stage that reads the input", [INPUT, TABLE], [source(100)], 2.0),
    ("and what is done with its rows behind a shuffle", [TABLE, JOIN], [source(100)], 4.0),
    ("also where that spills", [TABLE | {"spill_bytes": 2**28}], [source(100)], 4.0),
    ("not with twice as many others", [TABLE, WRITES | {"records": 30_000}], [source(100)], 2.0),
    ("rows that the query makes of its own", [INPUT, JOIN], [source(100)], 0.0),
    ("three times as many as the sources have", [TABLE], [source(3000), source(500)], 0.0),
    ("each read several times", [TABLE], [replace(source(1000), times_read=4)], 0.0),
    ("hardly any rows a task", [TABLE | {"tasks": 100}], [source(100)], 0.0),
    ("rows of the sources that Spark did not count", [TABLE], [source(0)], 0.0),
)
def test_stages_that_work_on_rows_of_no_source_scan_a_table(stages, sources, scanned):
    each = 4.0 / len(stages)
    ran = [stage(each * n, each * (n + 1), 2 * each, **{"cpu_seconds": each} | told) for n, told in enumerate(stages)]
    whole = batch(duration=4.0, phases={"add_batch": 4.0}, sources=tuple(sources))
    assert parts(tasks(*ran), UNKNOWN, whole).get("table_scan", 0.0) == pytest.approx(scanned)


@cases(
    "scan, rows, handed",
    ("the driver broadcasts what the scan read", {"until": 2.0}, 100, 1.0),
    ("for no longer than the scan", {}, 100, 1.0),
    ("rows that go to a shuffle", {"shuffle_write_bytes": 900}, 100, 0.0),
    ("a scan of few rows", {"records": 300}, 100, 0.0),
    ("a scan of few documents, but large ones", {"records": 320, "input_bytes": 2**28, "tasks": 8}, 100, 1.0),
    ("rows of the source", {}, 9000, 0.0),
    ("rows of a shuffle", {"reads_shuffle": True}, 100, 0.0),
    ("other tasks run meanwhile", {"until": 3.6}, 100, 0.0),
)
def test_what_the_driver_does_after_a_scan_belongs_to_the_rows_that_it_got(scan, rows, handed):
    told = {"until": 1.5, "seconds": 2.0} | BOTH | {"records": 10_000} | scan
    until, seconds = told.pop("until"), told.pop("seconds")
    ran = [stage(0.5, until, seconds, **told), stage(3.0, 4.0, 2.0, records=100)]
    whole = batch(duration=4.0, phases={"add_batch": 4.0}, sources=(source(rows),))
    found = parts(tasks(*ran), UNKNOWN, whole)
    between = max(0.0, 3.0 - until) - handed
    in_stages = sum(seconds for part, seconds in found.items() if not part.startswith("driver"))

    assert found.get("driver_between", 0.0) == pytest.approx(between)
    assert in_stages - handed == pytest.approx(4.0 - max(0.0, 3.0 - until) - 0.5)


STATE = {"update_seconds": 3.0, "removal_seconds": 1.0, "commit_seconds": 2.0}
STALLED, PYTHON_STATE = STATE | {"custom": {STALL: 2e9}}, STATE | {"name": "transformWithStateInPySparkExec"}
REST = {"state_commit": 1.0, "sink_wait": 1.0}


@cases(
    "told, python, expected",
    ("state", STATE, None, {"state_update": 2.0} | REST),
    ("stalled writes are no update", STALLED, None, {"state_update": 1.0, "state_stall": 1.0} | REST),
    ("Python in an operator counts once", PYTHON_STATE, 3.0, {"python": 1.5, "state_update": 0.5} | REST),
    ("more than all", {"commit_seconds": 90.0, "update_seconds": 9.0}, None, {"state_commit": 4.0}),
    ("Python for all of it", {"commit_seconds": 4.0, "update_seconds": 0.0}, 9.0, {"python": 4.0}),
)
def test_times_of_operators_are_task_seconds_and_take_at_most_what_is_left(told, python, expected):
    whole = batch(duration=4.0, phases={"add_batch": 4.0}, operators=(operator(**told),))
    assert parts(tasks(stage(0.0, 4.0, 8.0), python=python), whole=whole) == expected


def test_the_stage_that_is_most_uneven_is_told():
    much, little = uneven([100] * 3 + [1700], LONE), uneven([100] * 3 + [900], [0.4, 0.4, 0.4, 1.0])
    found = split(batch(duration=9.0, phases={"add_batch": 9.0}), tasks(little, much), FOUR)
    assert found.worst("uneven_keys") is found.stages[1].stage
    assert found.worst("uneven_task") is None


amounts = st.floats(0, 1e4)
shares = st.floats(0, 1)


@st.composite
def made_stages(draw: st.DrawFn) -> StageSummary:
    """A stage that may overlap with others, lie outside of its batch, or take no time, on one or two executors."""
    began, wall, count = draw(st.floats(-50, 50)), draw(st.floats(0, 50)), draw(st.integers(1, 500))
    run, records, on_first = wall * draw(st.floats(0, 8)), draw(st.integers(0, 10**6)), draw(st.integers(0, count))
    first, even = run * on_first / count, draw(st.booleans())
    most, longest = (1 / count if even else max(1 / count, draw(shares)) for _ in range(2))
    return stage(
        began, began + wall, run, tasks=count, seconds_median=run / count,
        seconds_max=run * longest, records=records,
        records_max=records * most, cpu_seconds=run * draw(shares),
        gc_seconds=run * 2 * draw(shares), shuffle_seconds=draw(st.none() | amounts),
        spill_bytes=draw(st.integers(0, 2**30)), reads_shuffle=draw(st.booleans()),
        executors={"1": ExecutorShare(on_first, first), "2": ExecutorShare(count - on_first, run - first)},
    )  # fmt: skip


def test_a_stage_that_only_spills_leaves_no_part_below_zero():
    for number in range(1, 400):
        spills = stage(0, 3, number * 1e-9, tasks=1, spill_bytes=4500 * number)
        parts(tasks(spills))


@given(
    duration=st.floats(0.001, 200),
    adding=st.none() | st.floats(0, 200),
    phases=st.dictionaries(st.sampled_from([*PHASES, "other"]), st.floats(-1, 20)),
    stages=st.lists(made_stages(), max_size=9),
    python=st.none() | amounts,
    state=st.none() | st.tuples(amounts, amounts, amounts),
    facts=st.sampled_from([TWO, UNKNOWN, PAIR, FOUR, Facts({"1": 4, "2": 2}, "source_wait", sink_waits=False)]),
)
def test_whatever_was_measured_the_parts_are_the_duration(duration, adding, phases, stages, python, state, facts):
    told = ("update_seconds", "commit_seconds", "removal_seconds")
    operators = () if state is None else (operator(**dict(zip(told, state, strict=True))),)
    adds = {} if adding is None else {"add_batch": adding}
    whole = batch(duration=duration, phases=phases | adds, operators=operators)

    found = split(whole, tasks(*stages, python=python) if stages else None, facts)
    assert_whole(whole, dict(found.seconds))


def batches_of(place: Path) -> Iterator[tuple[Progress, TaskSummary | None]]:
    """Every batch of a recording or an event log, alone and as soon as its tasks are known."""
    replay = Replay()
    for seen in open_source(str(place)).observations:
        state = replay.take(seen) if seen.kind in ("started", "plan", "progress", "tasks", "terminated") else None
        if state is not None and seen.kind == "progress" and state.history.last is not None:
            yield state.history.last, None
        elif state is not None and seen.kind == "tasks":
            newest = state.history.tasks[-1]
            yield from ((each, newest) for each in state.history.run if each.batch_id == newest.batch_id)


def off(place: Path) -> Iterator[str]:
    """The batches of a recording that their parts do not add up to, whatever is known of the executors."""
    for whole, worked in batches_of(place):
        for facts in (TWO, UNKNOWN, PAIR):
            seconds = split(whole, worked, facts).seconds
            if not math.isclose(sum(seconds.values()), whole.duration, rel_tol=0, abs_tol=MICROSECOND):
                yield f"{whole.query} {whole.batch_id}: {sum(seconds.values()):.3f} of {whole.duration:.3f} s"


def test_the_parts_of_every_recorded_batch_add_up_to_it():
    places = [*map(recording, NAMES), *sorted(RECORDED.glob("*.jsonl"))]
    assert {place: found for place in places if (found := list(off(place)))} == {}
    assert sum(worked is not None for place in places for _, worked in batches_of(place)) > 1000


@pytest.mark.parametrize("logs", ["eventlogs/*/eventlog_v2_*", "applications/*/log/*"])
def test_the_parts_of_every_batch_of_unseen_applications_add_up_to_it(data_dir, logs):
    places = sorted(data_dir.glob(logs))
    if not places:
        assert not os.environ.get("LEDGEROPS_REQUIRE_DATA"), f"{data_dir} has no {logs}"
        pytest.skip(f"{data_dir} has no {logs}")
    assert {place: found for place in places if (found := list(off(place)))} == {}
