"""The profile: which batches are compared, what is usual, that the parts add up, and what others took of them."""

from dataclasses import replace

import pytest

from ledgerops.analysis.inputs import open_source
from ledgerops.diagnosis.batch_parts import PARTS, STAGES
from ledgerops.diagnosis.facts.contention import Contention
from ledgerops.diagnosis.profile import Part, _contended, profile, shown
from ledgerops.model.records import RemovedExecutor
from ledgerops.runtime.replay import Replay
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import stage, with_executors
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour
from tests.diagnosis.test_contention import slowed
from tests.diagnosis.test_neighbours import FROM_BIRTH, SLOW
from tests.drills.saved import NAMES, recording
from tests.tables import cases

QUICK, HEAVY = [stage(seconds=[0.4, 0.4], wall=0.5)], [stage(seconds=[3.0, 3.0], wall=3.2)]


def numbers(splits):
    return [each.batch.batch_id for each in splits]


def late(history, known, count=20, **more):
    """Batches of 4 s, of which those in `known` have tasks."""
    stages = [HEAVY if n in known else None for n in range(count)]
    told = {"seconds": [4] * count, "phases": {"add_batch": 3.6}, "stages": stages}
    return history(**{"warm": 0, "cores": 2} | told | more)


@cases(
    "known, chosen",
    ("the newest five", range(20), [15, 16, 17, 18, 19]),
    ("those whose tasks were read", (3, 6, 12), [3, 6, 12]),
    ("one with tasks says nothing of the others", (6,), [15, 16, 17, 18, 19]),
    ("no tasks", (), [15, 16, 17, 18, 19]),
)
def test_a_typical_batch_is_told_by_the_newest_whose_tasks_are_known(history, known, chosen):
    found = profile(late(history, known))
    assert numbers(found.splits) == chosen
    assert found.knows_tasks is (len(known) > 1)
    assert ("tasks_unknown" in found.parts) is not found.knows_tasks


@cases(
    "rows, seconds, chosen",
    ("the first with rows pays for warm-up", [0, 90, 1800], [0.9, 8, 30], [2]),
    ("that was the first of the run", [90, 900, 1800], [0.9, 8, 30], [1, 2]),
    ("one alone says too little", [0, 90, 90], [0.9, 4, 4], [1, 2]),
    ("there is no other", [0, 90], [0.9, 30], [1]),
)
def test_a_first_batch_with_rows_counts_only_where_there_are_no_others(history, rows, seconds, chosen):
    found = profile(history(warm=0, rows=rows, seconds=seconds, stages=HEAVY, cores=2))
    assert numbers(found.splits) == chosen


TURNS = {"seconds": [5.0, 0.5] * 8, "stages": [HEAVY, QUICK] * 8, "phases": [{"add_batch": 4.0}, {}] * 8}
ONE_LATE = {"seconds": [0.5] * 15 + [30.0], "stages": [QUICK] * 15 + [HEAVY]}
EMPTY = {"seconds": [1.0, 0.2] * 6, "rows": [100, 0] * 6}


@cases(
    "case, duration, chosen",
    ("those that are late, of a query that owes time", TURNS, 5.0, [12, 14, 16, 18, 20]),
    ("a late one where no other is", ONE_LATE, 30.0, [21]),
    ("those with rows where nothing is owed", EMPTY, 1.0, [8, 10, 12, 14, 16]),
)
def test_a_typical_batch_is_one_of(history, case, duration, chosen):
    found = profile(history(cores=2, **case))
    assert (found.duration, numbers(found.splits)) == (duration, chosen)


def test_no_part_of_a_typical_batch_is_longer_than_in_any_of_the_batches(history):
    """The checkpoint has most of a short batch, which is not the share that it has of a long one."""
    phases = [{"add_batch": 59.0, "wal_commit": 0.6}, {"add_batch": 0.6, "wal_commit": 1.9}]
    found = profile(history(warm=0, seconds=[1, 60, 2.6], phases=[{}, *phases], stages=None))
    assert numbers(found.splits) == [1, 2] and found.duration == 31.3
    assert found.parts["wal_commit"].now == 1.9
    assert sum(part.now for part in found.parts.values()) == pytest.approx(31.3)


@cases(
    "seconds, told",
    ("no batch", [], False),
    ("only the first, which warms up", [4.0], False),
    ("only the first, and a very long one", [48.0], True),
)
def test_before_there_is_a_settled_batch_only_a_very_long_one_is_told(history, seconds, told):
    assert (profile(history(warm=0, seconds=seconds)) is not None) is told


def test_what_is_usual_is_told_by_the_older_half_of_the_healthy_past(history):
    found = profile(history(warm=14, warm_stages=QUICK, seconds=[4] * 8, stages=HEAVY, cores=2))
    assert found.usual_duration == 1.0
    assert numbers(found.usual_splits) == [5, 6, 7, 8, 9]
    assert all(part.usual is not None for part in found.parts.values())


def test_the_older_half_is_that_of_the_batches_whose_tasks_are_known(history):
    ran = [None] * 20 + [QUICK] * 12 + [HEAVY] * 8
    found = profile(history(warm=0, seconds=[1] * 32 + [4] * 8, stages=ran, cores=2))
    assert numbers(found.usual_splits) == [21, 22, 23, 24, 25]


@cases("case", ("late from birth", {"warm": 0}), ("its tasks were not read", {"warm": 14, "warm_stages": None}))
def test_without_a_healthy_past_nothing_is_usual(history, case):
    found = profile(history(seconds=[4] * 8, stages=HEAVY, cores=2, **case))
    assert not found.has_past
    assert {part.usual for part in found.parts.values()} == {None}


def test_for_more_rows_only_what_grows_with_them_may_take_longer(history):
    """Of three times the rows, tasks may take three times as long; planning may not."""
    before, now = {"add_batch": 0.7, "query_planning": 0.2}, {"add_batch": 3.6, "query_planning": 0.3}
    view = history(
        warm=0, cores=2, rows=[1000] * 14 + [3000] * 8, seconds=[1] * 14 + [4] * 8,
        phases=[before] * 14 + [now] * 8, stages=[QUICK] * 14 + [HEAVY] * 8,
    )  # fmt: skip
    found = profile(view)

    assert found.parts["query_planning"].usual == pytest.approx(0.2)
    assert found.parts["cpu"].usual == pytest.approx(0.36)
    assert found.parts["cpu"].allowed == pytest.approx(3 * 0.36)
    assert found.parts["query_planning"].excess == pytest.approx(0.1)


@cases(
    "usual, now, cores, sink",
    ("few, as many a second as ever: the write waits", 20, 80, 1.5, 6.0),
    ("few, but more a second", 10, 80, 2.55, 1.8),
    ("rows that may be work: starved of cores", 1000, 4000, 4.5, 1.8),
)
def test_only_rows_that_matter_let_contention_take_a_write_that_grew(history, usual, now, cores, sink):
    """On a machine where planning takes five times as long. A batch whose tasks are not known may have needed as many
    times longer as it has more rows, unless these are few and came because it is long."""
    before, starved = {"add_batch": 0.4, "query_planning": 0.2}, {"add_batch": 7.4, "query_planning": 1.0}
    view = history(
        warm=0, rows=[usual] * 14 + [now] * 6, seconds=[0.6] * 14 + [8.4] * 6, phases=[before] * 14 + [starved] * 6
    )
    found = profile(looked_at(view, driver_jvm=0.1))

    assert found.parts["other_processes"].now == pytest.approx(cores)
    assert found.parts["tasks_unknown"].excess == pytest.approx(sink)


def test_medians_of_different_batches_still_add_up_to_the_median_batch(history):
    sinks = [stage(seconds=[0.5, 0.5], wall=0.6)]
    view = history(
        warm=0, cores=2, seconds=[4.0, 6.0, 5.0] * 5, stages=[HEAVY, sinks, HEAVY] * 5,
        phases=[{"add_batch": 3.6}, {"add_batch": 1.0, "wal_commit": 4.0}, {"add_batch": 4.0}] * 5,
    )  # fmt: skip
    found = profile(view)

    assert sum(part.now for part in found.parts.values()) == pytest.approx(found.duration)
    assert sum(part.share for part in shown(found)) == pytest.approx(1.0)
    assert [part.part for part in shown(found)] == [name for name in PARTS if name in found.parts]


def compared(held, free):
    """Both profiles, and what contention takes of each part."""
    held, free = profile(held), profile(free)
    return held, free, {name: free.parts[name].now - held.parts[name].now for name in free.parts}


def test_contention_takes_no_more_than_growth_and_nothing_of_seconds_on_a_core(history):
    view = slowed(history)
    held, free, taken = compared(looked_at(view, driver_jvm=0.5), looked_at(view, busy=0.3))

    assert held.contention is not None and free.contention is None
    assert held.parts["other_processes"].now == pytest.approx(sum(taken.values()))
    assert sum(part.now for part in held.parts.values()) == pytest.approx(held.duration)
    for name, part in free.parts.items():
        assert -1e-9 <= taken[name] <= part.excess + 1e-9, name
    assert taken["cpu"] == 0.0


def test_the_cpu_limit_of_a_driver_takes_nothing_of_stages_that_run_on_other_machines(history):
    view, machine = slowed(history), {"busy": 0.05, "cpus": 64, "driver_jvm": 0.5, "executor": "1"}
    _, _, taken = compared(looked_at(view, limit=0.5, held_back=1.5, **machine), looked_at(view, **machine))

    assert taken["query_planning"] > 0.2 and all(taken.get(name, 0.0) == 0.0 for name in STAGES)


def test_tasks_that_wait_lose_to_others_at_most_what_computing_was_stretched_by(history):
    """Of tasks that hardly compute the rest waits for something else than a core."""
    view = slowed(history, waits=stage("save", seconds=[3.5, 3.4], wall=3.6, cpu=0.01))
    held, _, taken = compared(looked_at(view, driver_jvm=0.5), looked_at(view, busy=0.3))

    assert taken["sink_wait"] == pytest.approx(held.parts["cpu"].now * (held.contention.task_stretch - 1))


def test_a_neighbour_takes_what_a_batch_waits_longer_for_its_stages_to_begin(history):
    begins_late = stage("save", seconds=[0.5, 0.4], wall=0.6, began=3.9)
    view = history(**SLOW | {"stages": [begins_late], "phases": {"add_batch": 4.7}, "cores": 2})
    found = profile(beside(looked_at(view), neighbour(view, 21)))

    assert found.parts["other_queries"].now > 3.5
    assert found.parts["driver_before"].now == pytest.approx(found.parts["driver_before"].allowed, abs=0.1)


@cases(
    "ready, takes",
    ("not known since when", None, 7.9),
    ("for most of the batch", 1.0, 7.0),
    ("for less than half of it", 5.0, 3.0),
    ("when it begins", 8.0, 0.0),
)
def test_of_the_driver_s_time_a_neighbour_takes_that_in_which_a_stage_is_ready_and_has_no_task(history, ready, takes):
    launch = 0.1
    begins_late = stage("save", seconds=[0.1, 0.1], wall=0.1 + launch, began=8.0, ready=ready)
    view = history(**FROM_BIRTH | {"stages": [begins_late], "phases": {"add_batch": 9.8}})
    found = profile(looked_at(beside(view, neighbour(view, 999)), busy=0.2, active=2))

    assert found.contention is not None and found.contention.who == "hog"
    assert found.parts["other_queries"].now == pytest.approx(takes + launch, abs=0.05)


@cases(
    "part, stretch, takes",
    ("may be planning", "driver_between", 3.0, 4.0),
    ("a function that waits", "driver_waits", 3.0, 2.0),
)
def test_of_the_driver_s_work_others_take_what_it_was_stretched_by_and_of_its_waits_nothing(part, stretch, takes):
    parts = {part: Part(part, 6.0, None), "cpu": Part("cpu", 1.0, None)}
    crowd = Contention("other_queries", "3 other queries", stretch, 0.0, "they have the cores", ())

    assert _contended(parts, crowd, 1.0, 2.0)["other_queries"].now == pytest.approx(takes)


def test_a_neighbour_that_holds_the_slots_takes_what_stages_launch_later_though_no_work_is_stretched():
    parts = {"launch": Part("launch", 3.0, 0.5), "cpu": Part("cpu", 1.0, 1.0), "waiting": Part("waiting", 2.0, 0.2)}
    rest = _contended(parts, Contention("other_queries", "hog", 1.0, 0.0, "hog has the slots", ()), 1.0, 0.0)

    now = {name: part.now for name, part in rest.items()}
    assert now == {"launch": 0.5, "cpu": 1.0, "waiting": 2.0, "other_queries": 2.5}


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_every_recorded_profile_add_up_to_its_batch(name):
    replay = Replay()
    list(replay.verdicts(open_source(str(recording(name))).observations))
    for state in replay.registry.queries.values():
        found = profile(replay.registry.view(state, replay.at or 0.0))
        if found is not None:
            assert sum(part.now for part in found.parts.values()) == pytest.approx(found.duration)
            assert all(part.now >= -1e-9 for part in found.parts.values())


@cases(
    "before, few, cpu",
    ("as few rows took a moment: what is more is work on them", [(100, 0.2)] * 40, 0.2, 0.6),
    ("many rows took as long: it does not depend on their number", [(100_000, 0.8)] * 40, 0.8, 0.0),
    ("no past", [], 0.8, 0.0),
)
def test_computing_that_grew_is_no_fixed_cost_of_a_batch_with_few_rows(history, before, few, cpu):
    batches = [(0.1, *each) for each in before] + [(2.0, 100, 0.8)] * 12  # planning, rows and the seconds of tasks
    view = history(
        warm=0, rows=[rows for _, rows, _ in batches], seconds=[plans + ran + 0.1 for plans, _, ran in batches],
        phases=[{"query_planning": plans, "add_batch": ran} for plans, _, ran in batches],
        stages=[[stage(records=[rows / 2] * 2, seconds=[ran] * 2, cpu=1.0)] for _, rows, ran in batches],
    )  # fmt: skip
    seconds = {part.name: part.now for part in profile(view).parts.values()}
    assert seconds["few_rows"] == pytest.approx(few)
    assert seconds.get("cpu", 0.0) == pytest.approx(cpu)


FEW, MORE = {"1": 2, "2": 2}, {f"{number}": 2 for number in range(1, 21)}
IN_WAVES = stage(seconds=[0.4] * 16, records=[500] * 16, wall=2.1, executors={"1": (8, 3.2), "2": (8, 3.2)})


def test_executors_that_join_do_not_change_where_the_time_of_earlier_batches_went(history):
    """Not even once the samples of that time are no longer remembered."""
    view = history(warm=0, seconds=[2.5] * 12, stages=[IN_WAVES], phases={"add_batch": 2.4})
    before = profile(with_executors(view, (90, FEW))).parts
    looks = [with_executors(view, (90, FEW), (1, MORE)), with_executors(view, (1, MORE))]

    assert before["launch"].now == pytest.approx(0.2)
    assert [profile(each).parts for each in looks] == [before] * 2


def test_an_executor_that_turns_out_to_have_left_during_a_batch_could_not_get_its_share(history):
    ran = stage(seconds=[0.4] * 4, wall=1.6, records=[500] * 4, executors={"1": (4, 1.6)})
    view = history(warm=0, seconds=[2.0] * 12, stages=[ran], phases={"add_batch": 1.9})
    looks = [with_executors(view, (90, {"1": 1, "2": 1})), with_executors(view, (90, {"1": 1, "2": 1}), (30, {"1": 1}))]
    assert [profile(each).parts["uneven_executors"].now for each in looks] == [pytest.approx(0.8), 0.0]


@cases(
    "reason, ran, waited",
    ("it is told at its end", "Executor decommission: worker decommissioned", {"1": (8, 1.6)}, 0.0),
    ("until then it had tasks", "Executor decommission: worker decommissioned", {"1": (7, 1.4), "2": (1, 0.2)}, 0.6),
    ("it died later", "Worker lost", {"1": (8, 1.6)}, 0.8),
)
def test_an_executor_that_is_being_decommissioned_gets_no_tasks(history, reason, ran, waited):
    """Spark lists it until it has left."""
    both = {"1": 1, "2": 1}
    whole = stage(seconds=[0.2] * 8, wall=1.6, records=[500] * 8, executors=ran)
    view = history(warm=0, seconds=[2.0] * 12, stages=[whole], phases={"add_batch": 1.9})
    before = with_executors(view, (90, both), (3, both))
    profile(before)
    after = with_executors(view, (90, both), (3, both), (0, {"1": 1}))
    gone = RemovedExecutor("2", after.now - 0.5, reason=reason)
    hosts = [*after.hosts[:-1], replace(after.hosts[-1], removed_executors=(gone,))]
    parts = profile(QueryView(view.history, view.now, hosts)).parts
    assert parts["uneven_executors"].now == pytest.approx(waited)


@cases("now, usual", ("far longer", 6.6, 1.1), ("hardly longer", 1.6, None))
def test_a_past_whose_quick_batches_were_not_looked_at_is_that_of_the_others(history, now, usual):
    """Tasks are read every few seconds: of two batches in turns it may always be the one just over the interval."""
    looked_at, late = stage(seconds=[1.0, 1.0], wall=1.0), stage(seconds=[now - 0.2] * 2, wall=now - 0.2)
    view = history(
        warm=0, interval=1.0, seconds=[0.5, 1.1] * 15 + [now] * 6, stages=[[], [looked_at]] * 15 + [[late]] * 6,
        phases=[{"add_batch": 0.4}, {"add_batch": 1.05}] * 15 + [{"add_batch": now - 0.1}] * 6,
    )  # fmt: skip
    found = profile(view)
    assert found.usual_duration == (usual and pytest.approx(usual))
