from dataclasses import replace

import pytest

from ledgerops.diagnosis.rules.cpu_saturated import RULE
from tests.diagnosis.rules.conftest import stage
from tests.diagnosis.rules.crowd import looked_at

LIGHT = stage("save", seconds=[0.4, 0.3], wall=0.4)
STARVED = {"add_batch": 4.0, "query_planning": 0.5}
WAITS = stage("save", seconds=[3.5, 3.4], wall=3.6, cpu=0.2)
COMPUTES = stage("save", seconds=[4.4, 4.3], wall=4.5)
SLOW = {"warm": 14, "warm_stages": [LIGHT], "seconds": [5] * 4, "phases": [STARVED] * 4, "stages": [[WAITS]] * 4}


@pytest.fixture
def suffering(history):
    """A query that got five times slower, and what the machine looks like."""

    def make(changes=None, **machine):
        return looked_at(history(**(SLOW | (changes or {}))), **machine)

    return make


def test_other_processes_of_the_machine_are_named(suffering):
    [finding] = RULE.check(suffering(driver_jvm=0.4, driver_python=0.1))

    assert finding.summary == (
        "100% of 2 cores are busy (1.5 used by other processes); a batch takes 5.0 s instead of the usual 1.0 s"
    )
    assert (finding.component.kind, finding.component.detail) == ("host", "other processes")
    assert [(each.name, round(each.value, 3)) for each in finding.evidence] == [
        ("cpu_busy_ratio", 1.0), ("cores_of_the_heaviest", 1.5), ("slowdown_at_equal_rows", 5.0),
        ("planning_slowdown", 10.0),
    ]  # fmt: skip


def test_short_planning_tells_it_when_all_phases_have_grown_alike(suffering):
    alike = {"add_batch": 3.0, "query_planning": 0.11, "wal_commit": 0.5, "commit_offsets": 0.5}
    [finding] = RULE.check(suffering({"phases": [alike] * 4}, driver_jvm=0.2))

    assert finding.component.detail == "other processes"


@pytest.mark.parametrize(
    ("machine", "who"),
    [
        pytest.param({"driver_jvm": 1.8}, "the driver's JVM", id="the tasks themselves"),
        pytest.param({"driver_jvm": 0.3, "python_workers": 1.6}, "Python workers", id="a user-defined function"),
    ],
)
def test_the_query_itself_may_be_what_fills_the_cores(suffering, machine, who):
    [finding] = RULE.check(suffering({"phases": [{"add_batch": 4.8}] * 4, "stages": [[COMPUTES]] * 4}, **machine))

    assert finding.component.detail == who


@pytest.mark.parametrize(
    ("changes", "machine"),
    [
        pytest.param({}, {"busy": 0.6, "driver_jvm": 0.4}, id="cores are free"),
        pytest.param({}, {"busy": 1.0, "quiet_for": 60.0}, id="nobody has looked for a minute"),
        pytest.param({"seconds": [1.8] * 4, "phases": [{"add_batch": 1.0}] * 4}, {}, id="busy, but no harm"),
        pytest.param({"rows": 6000}, {}, id="six times the rows"),
        pytest.param({"warm": 0}, {}, id="no past to compare with"),
        pytest.param(
            {"phases": [{"add_batch": 4.8}] * 4, "stages": [[LIGHT]] * 4},
            {"driver_jvm": 0.3},
            id="a slow sink on a busy machine: planning is as quick as ever",
        ),
        pytest.param(
            {"phases": [{"add_batch": 4.8}] * 4, "stages": [[stage(seconds=[4.4, 0.3], wall=4.5)]] * 4},
            {"driver_jvm": 1.2, "python_workers": 0.5},
            id="one task that has most of the rows",
        ),
        pytest.param(
            {"phases": [{"add_batch": 3.0, "latest_offset": 1.5, "query_planning": 0.1}] * 4},
            {"driver_jvm": 0.3},
            id="a slow broker on a busy machine",
        ),
        pytest.param(
            {"phases": [{"add_batch": 0.9, "query_planning": 0.1, "wal_commit": 2.0, "commit_offsets": 2.0}] * 4},
            {"driver_jvm": 0.3},
            id="a slow checkpoint on a busy machine: the rows take as long as ever",
        ),
        pytest.param(
            {"phases": [{"add_batch": 4.8}] * 4, "stages": [[stage(seconds=[4.4, 4.3], wall=4.5, cpu=0.0)]] * 4}
            | {"python": 8.5},
            {"driver_jvm": 0.1},
            id="a function that sleeps, on a machine that others use",
        ),
        pytest.param({}, {"driver_jvm": 0.9, "gc": 0.4}, id="garbage collection stops everything"),
        pytest.param({}, {"driver_jvm": 1.9}, id="the cores are busy with other queries of the driver"),
    ],
)
def test_others_are_not(suffering, changes, machine):
    assert list(RULE.check(suffering(changes, **machine))) == []


def test_tasks_that_collect_garbage_are_another_matter(suffering):
    view = suffering({"phases": [{"add_batch": 4.8}] * 4, "stages": [[COMPUTES]] * 4}, driver_jvm=1.9)
    assert list(RULE.check(view)) != []

    for place, tasks in enumerate(view.history.tasks):
        stages = tuple(replace(each, gc_seconds=0.4 * each.run_seconds) for each in tasks.stages)
        view.history.tasks[place] = replace(tasks, stages=stages)
    view.answers.clear()
    assert list(RULE.check(view)) == []


def test_tasks_that_spill_are_another_matter(suffering):
    sorting = stage("save", seconds=[4.4, 4.3], wall=4.5, spill=2**28)
    spilling = {"phases": [{"add_batch": 4.8}] * 4, "stages": [[sorting]] * 4}
    assert list(RULE.check(suffering(spilling, driver_jvm=1.9))) == []


def test_it_is_ruled_out_with_its_number(suffering):
    assert RULE.acquit(suffering(busy=0.4)) == "only 40% of 2 cores are busy"
    assert RULE.acquit(suffering(busy=1.0)) is None


STRETCHED = {"add_batch": 4.0, "query_planning": 1.0, "wal_commit": 1.5, "commit_offsets": 1.5}
FROM_BIRTH = {"warm": 0, "seconds": [8.0] * 6, "phases": [STRETCHED] * 6, "stages": [[WAITS]] * 6}


def pressed(view, **sample):
    return type(view)(view.history, view.now, [replace(look, **sample) for look in view.hosts], view.others)


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        pytest.param({"cpu_pressure_ratio": 0.97}, "; threads wait for a core 97% of the time)", id="by its pressure"),
        pytest.param({"runnable_threads": 30}, "; 30 threads run or wait for a core)", id="by its run queue"),
    ],
)
def test_a_machine_that_was_full_before_the_query_began_is_named(suffering, sample, words):
    [finding] = RULE.check(pressed(suffering(FROM_BIRTH, driver_jvm=0.1), **sample))

    assert words in finding.summary
    assert finding.share == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("changes", "sample"),
    [
        pytest.param({"seconds": [1.0] * 6}, {"cpu_pressure_ratio": 0.97}, id="nothing suffers"),
        pytest.param({"seconds": [8.0] * 3}, {"cpu_pressure_ratio": 0.3}, id="hardly anything waits, too early to say"),
        pytest.param({"seconds": [8.0] * 3}, {"runnable_threads": 3}, id="a short run queue, too early to say"),
    ],
)
def test_a_machine_that_is_merely_busy_from_birth_is_not(suffering, changes, sample):
    view = pressed(suffering(FROM_BIRTH | changes, driver_jvm=0.1), **sample)

    assert list(RULE.check(view)) == []


FIRST = {"warm": 0, "seconds": [], "phases": None, "stages": None, "running": 60.0}


def test_a_first_batch_that_waits_for_cores_is_explained_without_a_warning(suffering):
    [finding] = RULE.check(pressed(suffering(FIRST, driver_jvm=0.1), cpu_pressure_ratio=0.97))

    assert finding.summary == (
        "100% of 2 cores have been busy since the query started (1.9 used by other processes; threads wait for a core "
        "97% of the time); the first batch has run for 60 s"
    )
    assert finding.harmless


@pytest.mark.parametrize(
    ("changes", "sample", "machine"),
    [
        pytest.param({"running": 12.0}, {"cpu_pressure_ratio": 0.97}, {}, id="it has only begun"),
        pytest.param({"running": None}, {"cpu_pressure_ratio": 0.97}, {}, id="no batch runs"),
        pytest.param({}, {"cpu_pressure_ratio": 0.3}, {}, id="hardly anything waits"),
        pytest.param({}, {}, {}, id="nothing says whether anything waits"),
        pytest.param({}, {"cpu_pressure_ratio": 0.97}, {"driver_jvm": 1.8}, id="the driver itself uses the cores"),
    ],
)
def test_other_first_batches_are_not(suffering, changes, sample, machine):
    view = pressed(suffering(FIRST | changes, **({"driver_jvm": 0.1} | machine)), **sample)

    assert list(RULE.check(view)) == []


ALL_SLOW = {"add_batch": 3.2, "query_planning": 0.4, "wal_commit": 0.6, "commit_offsets": 0.5}
WAITS_FOR_CORES = stage("save", seconds=[3.0, 2.9], wall=3.1, cpu=0.08)


@pytest.fixture
def logged(history):
    """The same query by an event log, which has no figures of the machine."""

    def make(**changes):
        slow = {"phases": [ALL_SLOW] * 4, "stages": [[WAITS_FOR_CORES]] * 4}
        return history(**(SLOW | slow | changes))

    return make


def test_an_event_log_shows_it_by_all_parts_of_a_batch_and_tasks_that_wait(logged):
    [finding] = RULE.check(logged())

    assert finding.summary == (
        "all parts of a batch take longer: 5.0 s instead of the usual 1.0 s, planning 8.0 times as long; "
        "the tasks compute for 8% of their time, so they wait for a core"
    )
    assert [(each.name, round(each.value, 2)) for each in finding.evidence] == [
        ("slowdown_at_equal_rows", 5.0), ("planning_slowdown", 8.0), ("task_cpu_share", 0.08),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"phases": [ALL_SLOW | {"query_planning": 0.02}] * 4}, id="planning is as quick as ever"),
        pytest.param(
            {"phases": [{"add_batch": 4.2, "query_planning": 0.1}] * 4}, id="the checkpoint is as quick as ever"
        ),
        pytest.param({"stages": [[COMPUTES]] * 4}, id="the tasks compute"),
        pytest.param(
            {"stages": [[stage("save", seconds=[3.0, 2.9], wall=3.1, cpu=0.08, gc=0.6)]] * 4}, id="garbage collection"
        ),
        pytest.param({"stages": None, "warm_stages": None}, id="tasks unknown"),
        pytest.param({"warm": 0}, id="no past to compare with"),
        pytest.param({"rows": 6000}, id="six times the rows"),
    ],
)
def test_an_event_log_of_another_fault_does_not(logged, changes):
    assert list(RULE.check(logged(**changes))) == []
