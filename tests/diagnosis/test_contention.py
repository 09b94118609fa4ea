"""What has the cores that a query wants: other processes of the machine, or so many other queries; and by how much."""

from dataclasses import replace

import pytest

from ledgerops.diagnosis.facts.contention import contention, cpu_use, pressure
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import stage
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour
from tests.tables import cases

LIGHT, WAITS = stage("save", seconds=[0.4, 0.3], wall=0.4), stage("save", seconds=[3.5, 3.4], wall=3.6, cpu=0.2)
USUAL = {"add_batch": 0.6, "query_planning": 0.1, "wal_commit": 0.05, "commit_offsets": 0.05}
STARVED = {"add_batch": 3.6, "query_planning": 0.5, "wal_commit": 0.3, "commit_offsets": 0.2}
IDLE = {"busy": 0.05, "cpus": 64, "driver_jvm": 0.5}  # a machine that is nearly idle, and a container that is not
BUSY, FREE = {"busy": 1.0, "driver_jvm": 2.0}, {"busy": 0.2}
ASLEEP = stage("udf", seconds=[4.8, 4.8], cpu=0.01)


def slowed(history, now=STARVED, waits=WAITS, past=14, count=8, **more):
    """`past` batches of 1 s, then those of 5 s, of which planning and writing offsets take five times as long."""
    told = {"seconds": [1] * past + [5] * count, "phases": [USUAL] * past + [now] * count}
    return history(**{"warm": 0, "stages": [[LIGHT]] * past + [[waits]] * count, "cores": 2} | told | more)


def pressed(view, **sample):
    return QueryView(view.history, view.now, [replace(look, **sample) for look in view.hosts], view.others)


def test_other_processes_that_leave_no_core_free_are_told_with_how_much_longer_work_takes(history):
    held = contention(looked_at(slowed(history), driver_jvm=0.4, driver_python=0.1))

    assert (held.part, held.who) == ("other_processes", "other processes")
    assert held.summary == "other processes use 1.5 of 2 cores, 100% are busy"
    assert held.stretch == held.task_stretch == pytest.approx(5.0)
    assert {each.name: round(each.value, 2) for each in held.evidence} == {
        "cpu_busy_ratio": 1.0,
        "cores_of_other_processes": 1.5,
        "slowdown_at_equal_rows": 5.0,
    }


def test_it_explains_no_more_than_what_planning_and_offsets_lost(history):
    """They take the same few tenths of a second in every batch on a free machine."""
    held = contention(looked_at(slowed(history, STARVED | {"query_planning": 0.1, "wal_commit": 0.1}), driver_jvm=0.4))
    assert held.stretch == pytest.approx(0.4 / 0.2)


def test_a_machine_that_was_full_before_the_query_began_is_told_by_its_pressure(history):
    view = pressed(looked_at(slowed(history, past=0), driver_jvm=0.1), cpu_pressure_ratio=0.97)
    held = contention(view)

    assert held.summary.endswith("; threads wait for a core 97% of the time")
    assert held.stretch == pytest.approx(1.0 / 0.4)  # of what they take at most on a free machine
    assert held.task_stretch == pytest.approx(10.0)  # of tasks that get the twentieth of the cores that is left


@cases(
    "case, machine",
    ("cores are free", {}, {"busy": 0.6, "driver_jvm": 0.4}),
    ("the application's own JVM uses them", {}, {"busy": 1.0, "driver_jvm": 1.9}),
    ("its own Python workers do", {}, {"driver_jvm": 0.3, "python_workers": 1.6}),
    ("nobody has looked for a minute", {}, {"busy": 1.0, "quiet_for": 60.0}),
    ("busy, but no harm", {"count": 0}, {}),
    ("six times the rows", {"rows": [1000] * 14 + [6000] * 8}, {}),
    ("planning is as quick as ever", {"now": {"add_batch": 4.7, "query_planning": 0.1}}, {}),
    ("no past, no pressure known, too early to say", {"past": 0, "count": 3}, {"driver_jvm": 0.1}),
    ("no past and no harm", {"past": 0, "interval": 9.0}, {"driver_jvm": 0.1}),
)
def test_others_do_not_have_them(history, case, machine):
    assert contention(looked_at(slowed(history, **case), **machine)) is None


def test_a_container_whose_cpu_limit_is_used_up_is_told_though_the_machine_is_idle(history):
    held = contention(looked_at(slowed(history), limit=0.5, held_back=1.5, **IDLE))

    assert (held.part, held.who) == ("cpu_limit", "CPU limit")
    assert held.summary == "the container may use 0.5 cores, and holds back threads that would use 1.5 more"
    assert held.stretch == pytest.approx(4.0)  # two threads on half a core
    assert held.task_stretch == pytest.approx(10.0)  # which tasks share with the threads of the driver
    assert {each.name: round(each.value, 2) for each in held.evidence} == {
        "cores_allowed": 0.5,
        "cores_held_back": 1.5,
        "own_cores_used": 0.5,
    }


@cases(
    "past, executor, of_tasks",
    ("from the first batch on, once the query is harmed", 0, "driver", 10.0),
    ("of a driver: it holds back no task of other machines", 14, "1", 1.0),
)
def test_a_cpu_limit_is_told_with_what_it_takes_of_tasks(history, past, executor, of_tasks):
    held = contention(looked_at(slowed(history, past=past), limit=0.5, held_back=1.5, executor=executor, **IDLE))
    assert (held.stretch, held.task_stretch) == pytest.approx((4.0, of_tasks))


@cases(
    "case, machine",
    ("it is hardly ever used up", {}, {"limit": 0.5, "held_back": 0.1}),
    ("it is never used up", {}, {"limit": 4.0}),
    ("there is none", {}, {}),
    ("used up, but no harm", {"count": 0}, {"limit": 0.5, "held_back": 1.5}),
    ("no past and no harm", {"past": 0, "interval": 9.0}, {"limit": 0.5, "held_back": 1.5}),
    ("nobody has looked for a minute", {}, {"limit": 0.5, "held_back": 1.5, "quiet_for": 60.0}),
)
def test_a_cpu_limit_holds_nothing_back(history, case, machine):
    assert contention(looked_at(slowed(history, **case), **(IDLE | machine))) is None


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
    "case",
    ("planning is as quick as ever", {"now": {"add_batch": 4.7, "query_planning": 0.1}}),
    ("the tasks compute", {"waits": stage("save", seconds=[3.5, 3.4], cpu=0.8)}),
    ("tasks unknown", {"stages": None}),
    ("no past", {"past": 0}),
    ("six times the rows", {"rows": [1000] * 14 + [6000] * 8}),
)
def test_an_event_log_of_another_fault_does_not(history, case):
    assert contention(slowed(history, **case)) is None


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
    view = looked_at(history())
    newest = pressed(view, cpu_pressure_ratio=0.9)
    once = QueryView(view.history, view.now, [*newest.hosts[:-1], replace(newest.hosts[-1], cpu_pressure_ratio=0.1)])

    assert pressure(view) is None
    assert pressure(newest).value == 0.9
    assert pressure(once) is None
