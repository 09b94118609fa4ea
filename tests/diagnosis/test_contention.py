"""What has the cores that a query wants: other processes of the machine, or so many other queries; and by how much."""

from dataclasses import replace

import pytest

from ledgerops.diagnosis.facts.contention import contention, cpu_use, pressure
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import stage, told_by
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour
from tests.tables import cases

LIGHT, WAITS = stage("save", seconds=[0.4, 0.3], wall=0.4), stage("save", seconds=[3.5, 3.4], wall=3.6, cpu=0.2)
USUAL = {"add_batch": 0.6, "query_planning": 0.1, "wal_commit": 0.05, "commit_offsets": 0.05}
STARVED = {"add_batch": 3.6, "query_planning": 0.5, "wal_commit": 0.3, "commit_offsets": 0.2}
IDLE = {"busy": 0.05, "cpus": 64, "driver_jvm": 0.5}  # a machine that is nearly idle, and a container that is not
USED_UP, MORE_ROWS = IDLE | {"limit": 0.5, "held_back": 1.5}, {"rows": [1000] * 14 + [6000] * 8}
QUICK = {"add_batch": 4.7, "query_planning": 0.1}
BUSY, FREE = {"busy": 1.0, "driver_jvm": 2.0}, {"busy": 0.2}
ASLEEP = stage("udf", seconds=[4.8, 4.8], cpu=0.01)


def slowed(history, now=STARVED, waits=WAITS, past=14, count=8, **more):
    """`past` batches of 1 s, then those of 5 s, of which planning and writing offsets take five times as long."""
    told = {"seconds": [1] * past + [5] * count, "phases": [USUAL] * past + [now] * count}
    return history(**{"warm": 0, "stages": [[LIGHT]] * past + [[waits]] * count, "cores": 2} | told | more)


def pressed(view, **sample):
    return QueryView(view.history, view.now, [replace(look, **sample) for look in view.hosts], view.others)


QUICK_PLANNING = STARVED | {"query_planning": 0.1, "wal_commit": 0.1}
SLOW_LOGS = STARVED | {"add_batch": 0.9, "query_planning": 0.1, "wal_commit": 2.0, "commit_offsets": 2.0}


@cases(
    "now, stretch, of_tasks",
    ("as much as the batch", STARVED, 5.0, 5.0),
    ("no more than planning and offsets lost", QUICK_PLANNING, 0.4 / 0.2, 0.4 / 0.2),
    ("offsets wait for their storage", SLOW_LOGS, 0.4 / 0.2, 0.4 / 0.2),
)
def test_other_processes_that_leave_no_core_free_are_told_with_how_much_longer_work_takes(
    history, now, stretch, of_tasks
):
    """Planning and offsets take the same few tenths of a second in every batch on a free machine."""
    held = contention(looked_at(slowed(history, now), driver_jvm=0.4, driver_python=0.1))

    assert (held.part, held.who) == ("other_processes", "other processes")
    assert held.summary == "other processes use 1.5 of 2 cores, 100% are busy"
    assert (held.stretch, held.task_stretch) == pytest.approx((stretch, of_tasks))
    told = {"cpu_busy_ratio": 1.0, "cores_of_other_processes": 1.5, "slowdown_at_equal_rows": 5.0}
    assert told_by(held) == pytest.approx(told)


def test_a_machine_that_was_full_before_the_query_began_is_told_by_its_pressure(history):
    held = contention(pressed(looked_at(slowed(history, past=0), driver_jvm=0.1), cpu_pressure_ratio=0.97))

    assert held.summary.endswith("; threads wait for a core 97% of the time")
    assert held.stretch == pytest.approx(1.0 / 0.4)  # of what they take at most on a free machine
    assert held.task_stretch == pytest.approx(10.0)  # of tasks that get the twentieth of the cores that is left


def test_without_a_past_work_takes_no_longer_than_by_the_share_of_the_cores_that_is_left(history):
    """Planning takes ten times 0.4 s, and with 1.5 of 2 cores more it would take a quarter."""
    planned = {"add_batch": 0.9, "query_planning": 4.0, "wal_commit": 0.05, "commit_offsets": 0.05}
    held = contention(pressed(looked_at(slowed(history, planned, past=0), driver_jvm=0.5), cpu_pressure_ratio=0.97))
    assert (held.stretch, held.task_stretch) == pytest.approx((4.0, 4.0))


def test_a_full_machine_is_not_blamed_for_a_slow_storage_of_the_checkpoint(history):
    """Planning, which waits for nothing but a core, is as quick as ever."""
    stored = {"add_batch": 0.95, "query_planning": 0.05, "wal_commit": 2.0, "commit_offsets": 2.0}
    full = pressed(looked_at(slowed(history, stored, past=0), driver_jvm=0.1), cpu_pressure_ratio=0.97)
    assert contention(full).stretch == 1.0


@cases(
    "case, machine",
    ("cores are free", {}, {"busy": 0.6, "driver_jvm": 0.4}),
    ("the application's own JVM uses them", {}, {"busy": 1.0, "driver_jvm": 1.9}),
    ("nobody has looked for a minute", {}, {"busy": 1.0, "quiet_for": 60.0}),
    ("busy, but no harm", {"count": 0}, {}),
    ("six times the rows", MORE_ROWS, {}),
    ("planning is as quick as ever", {"now": QUICK}, {}),
    ("no past, no pressure known, too early to say", {"past": 0, "count": 3}, {"driver_jvm": 0.1}),
    ("no past and no harm", {"past": 0, "interval": 9.0}, {"driver_jvm": 0.1}),
    ("a limit that is hardly ever used up", {}, IDLE | {"limit": 0.5, "held_back": 0.1}),
    ("a limit used up, but no harm", {"count": 0}, USED_UP),
    ("a limit, no past and no harm", {"past": 0, "interval": 9.0}, USED_UP),
    ("a limit, and nobody has looked for a minute", {}, USED_UP | {"quiet_for": 60.0}),
    ("an event log: planning is as quick as ever", {"now": QUICK}, None),
    ("an event log: the tasks compute", {"waits": stage("save", seconds=[3.5, 3.4], cpu=0.8)}, None),
    ("an event log: tasks unknown", {"stages": None}, None),
    ("an event log: no past", {"past": 0}, None),
    ("an event log: six times the rows", MORE_ROWS, None),
)
def test_other_queries_have_the_cores_that_they_want(history, case, machine):
    view = slowed(history, **case)
    assert contention(view if machine is None else looked_at(view, **machine)) is None


@cases(
    "past, executor, of_tasks",
    ("of tasks that share it with the driver", 14, "driver", 10.0),
    ("from the first batch on, once the query is harmed", 0, "driver", 10.0),
    ("of a driver: it holds back no task of other machines", 14, "1", 1.0),
)
def test_a_container_whose_cpu_limit_is_used_up_is_told_though_the_machine_is_idle(history, past, executor, of_tasks):
    held = contention(looked_at(slowed(history, past=past), limit=0.5, held_back=1.5, executor=executor, **IDLE))

    assert (held.part, held.who) == ("cpu_limit", "CPU limit")
    assert held.summary == "the container may use 0.5 cores, and holds back threads that would use 1.5 more"
    assert (held.stretch, held.task_stretch) == pytest.approx((4.0, of_tasks))  # two threads on half a core
    assert told_by(held) == pytest.approx({"cores_allowed": 0.5, "cores_held_back": 1.5, "own_cores_used": 0.5})


def test_a_limit_that_was_set_between_two_looks_has_held_back_nothing_that_is_known(history):
    view = looked_at(slowed(history), limit=0.5, held_back=1.5, **IDLE)
    before = [replace(look, cpu_held_back_seconds=None) for look in view.hosts[:-1]]
    assert contention(QueryView(view.history, view.now, [*before, view.hosts[-1]])) is None


def test_of_an_event_log_all_parts_that_grew_and_tasks_that_wait_tell_it(history):
    held = contention(slowed(history, waits=stage("save", seconds=[3.5, 3.4], cpu=0.08)))

    assert held.stretch == pytest.approx(5.0)
    assert held.summary == (
        "all parts of a batch take longer, and its tasks compute for 8% of their time: they wait for cores"
    )


@cases(
    "count, heavy, machine, crowd",
    ("two", 2, None, BUSY, ("other_queries", "2 other queries")),
    ("one", 1, None, BUSY, None),
    ("three that all wait for a service leave the cores free", 3, ASLEEP, FREE, None),
)
def test_as_many_late_queries_as_cores_are_a_crowd(history, count, heavy, machine, crowd):
    view = slowed(history, past=0)
    held = contention(beside(looked_at(view, **machine), *(neighbour(view, 999, heavy=heavy) for _ in range(count))))
    assert (held and (held.part, held.who)) == crowd


def test_who_uses_the_cores_is_told_between_two_looks_that_are_far_enough_apart(history):
    use = cpu_use(looked_at(history(), busy=0.75, cpus=4, driver_jvm=1.0, python_workers=0.5))

    assert (use.cores, use.busy) == (4, pytest.approx(0.75))
    assert use.cores_by == {
        "driver_jvm": pytest.approx(1.0),
        "python_workers": pytest.approx(0.5),
        "driver_python": 0.0,
        "other processes": pytest.approx(1.5),
    }
    assert use.others_share == pytest.approx(1.5 / 4)
    assert cpu_use(history()) is None


def test_pressure_is_that_of_the_newest_looks_together(history):
    newest = pressed(looked_at(history()), cpu_pressure_ratio=0.9)
    assert pressure(looked_at(history())) is None
    assert pressure(newest).value == 0.9
    newest.hosts[-1] = replace(newest.hosts[-1], cpu_pressure_ratio=0.1)
    assert pressure(newest.at(newest.now)) is None
