"""Another query of the driver that has the cores, told from one that merely runs beside."""

from dataclasses import replace

import pytest

from ledgerops.diagnosis.facts import neighbours
from ledgerops.diagnosis.facts.neighbours import JOB, neighbour, slots_taken
from ledgerops.model.history import History
from ledgerops.model.records import Plan, Running
from tests.diagnosis.conftest import stage
from tests.diagnosis.rules import crowd
from tests.diagnosis.rules.crowd import beside, looked_at
from tests.tables import cases

LIGHT, HELD_UP = stage("save", seconds=[0.4, 0.3], wall=0.4), stage("save", seconds=[0.5, 0.4], wall=3.5)
SLOW = {"warm": 14, "warm_stages": [LIGHT], "seconds": [5] * 4, "stages": [HELD_UP]}
LATE_START = stage("save", seconds=[0.4, 0.4], began=7.0, wall=0.5)
FROM_BIRTH = {"warm": 0, "seconds": [10] * 6, "stages": [LATE_START]}
ASLEEP = stage("udf", seconds=[4.8, 4.8], wall=4.9, cpu=0.01)
BRIEF = stage(seconds=[0.9, 0.9], wall=0.9)
ONE_SLOT = stage(seconds=[2.4, 0.0], wall=4.9)
WAITS, WRITES_LONG = stage("save", began=1.6, wall=0.1), stage("save", began=0.0, wall=0.1)
SOON = stage("read", began=0.0, wall=0.1)
EVERY_OTHER = {"warm": 0, "interval": 1.0, "seconds": [2.2, 0.3] * 8, "stages": [[WAITS], []] * 8, "cores": 2}


def who(view):
    """The query that has the cores, or a job of none."""
    found = neighbour(view)
    return found and found.query


def at_work(view, other):
    """The other query, whose next batch has run since its last one."""
    other.set_running(Running(view.now, "run-hog", other.last_progress, "Processing"))
    return other


@pytest.fixture
def victim(history):
    """A query whose batches take five times as long as they did, with few own tasks."""
    return lambda **changes: looked_at(history(**SLOW | changes), busy=1.0)


def test_the_query_that_took_the_cores_is_told_with_what_it_took_before(victim):
    view = victim()
    found = neighbour(beside(view, crowd.neighbour(view, 21), crowd.neighbour(view, None, "small")))

    assert found.query == "hog"
    assert (found.takes, found.took) == (pytest.approx(1.5, abs=0.2), pytest.approx(0.25, abs=0.05))
    assert (found.slots, found.holds) == (2, False)
    assert neighbour(beside(view, crowd.neighbour(view, 18, began=29.0))).took is None, "it was not there before"


def test_the_batch_that_runs_counts_as_those_before_it(victim):
    view = victim()
    hog = crowd.neighbour(view, 18)
    cut = [batch for batch in hog.batches if batch.ended < view.now - 8]
    hog.batches.clear()
    hog.batches.extend(cut)
    hog.last_progress = cut[-1].ended
    assert neighbour(beside(view, hog)) is None

    hog.set_running(Running(view.now, "run-hog", cut[-1].ended, "Processing"))
    assert neighbour(beside(victim(), hog)) is not None


@cases(
    "took, every, quick, before, found",
    ("batches without a pause", 100.0, 2.0, 150, 1.0, None),
    ("the first of which ended long ago", 140.0, 2.0, 120, 1.0, None),
    ("a pause while the query was last in time", 250.0, 312.0, 300, 1.0, None),
    ("batches that used less of the cores before", 100.0, 2.0, 150, 0.25, "hog"),
)
def test_one_whose_batches_are_long_is_not_new(victim, took, every, quick, before, found):
    """No batch of it need have ended in the last minute in which the query was in time."""
    view = victim(warm=quick, seconds=[5] * 10)
    long = stage(seconds=[before * took] * 2, wall=took)
    hog = crowd.neighbour(view, None if before == 1.0 else 50, light=long, every=every)
    hog.set_running(Running(view.now, "run-hog", max(hog.last.ended, hog.last.started + every), "Processing"))
    assert who(beside(view, hog)) == found


@cases(
    "changes, other",
    ("no harm", {"seconds": [1.4] * 4}, {"heavy_since": 18}),
    ("six times the rows", {"rows": 6000}, {"heavy_since": 18}),
    ("no past, and slots are free", {"warm": 0}, {"heavy_since": 18}),
    ("it takes the cores itself", {"stages": [stage("save", seconds=[4.5, 4.5])]}, {"heavy_since": 18}),
    ("the other is a light one", {}, {"heavy_since": None}),
    ("it took as much before", {}, {"heavy_since": 999}),
    ("it leaves most of them", {}, {"heavy_since": 18, "heavy": ONE_SLOT}),
)
def test_a_query_that_is_not_held_up_by_the_other_has_none(victim, changes, other):
    view = victim(**changes)
    assert neighbour(view) is None
    assert neighbour(beside(view, crowd.neighbour(view, **other))) is None


def test_one_that_ended_long_ago_is_none(victim):
    view = victim()
    hog = crowd.neighbour(view, 60)
    hog.end(view.now - 30, "run-hog", None, None)
    assert neighbour(beside(view, hog)) is None


@cases(
    "other, active, found",
    ("its tasks hold all slots, asleep", {"heavy_since": 999, "heavy": ASLEEP}, 2, "hog"),
    ("a slot is free", {"heavy_since": 999}, 1, None),
    ("a light one: the slots are the query's own", {"heavy_since": None}, 2, None),
    ("one that leaves most of them", {"heavy_since": 999, "heavy": ONE_SLOT}, 2, None),
)
def test_without_a_past_all_slots_must_be_taken(history, other, active, found):
    view = history(**FROM_BIRTH)
    seen = looked_at(beside(view, crowd.neighbour(view, **other)), busy=0.2, active=active)
    assert who(seen) == found
    assert slots_taken(seen) or found is None
    assert not slots_taken(looked_at(view, active=2)), "slots that the query fills itself"


@cases("shift, found", ("taken while it waits: a slot is free", 0.0, False), ("taken between its waits", None, True))
def test_samples_from_between_its_waits_tell_nothing_of_the_slots(history, shift, found):
    """Executors are sampled every ten seconds; so is the trigger of a neighbour."""
    view = history(**EVERY_OTHER)
    seen = looked_at(beside(view, at_work(view, crowd.neighbour(view, 999))), active=0)
    if shift is None:
        ends = [batch.ended - 0.05 for batch in view.batches]
        seen.hosts = [replace(host, at=end) for host, end in zip(seen.hosts, ends, strict=False)]

    assert (neighbour(seen) is not None) is found


@cases(
    "changes, other, found",
    ("while its batches run", {}, {"heavy_since": 999}, True),
    ("after its last task", {"stages": [[WRITES_LONG], []] * 8}, {"heavy_since": 999}, False),
    ("the other one is light", {}, {"heavy_since": None}, False),
    ("a slot is free", {}, {"heavy_since": 999, "heavy": ONE_SLOT}, False),
    ("its batches are over while the others wait", {}, {"heavy_since": 999, "heavy": BRIEF}, False),
    ("between its stages", {"stages": [[SOON, WAITS], []] * 8}, {"heavy_since": 999}, False),
    ("once", {"stages": [[WAITS], []] + [[], []] * 7}, {"heavy_since": 999}, False),
    ("no longer", {"stages": [[WAITS], []] * 7 + [[WRITES_LONG], []]}, {"heavy_since": 999}, False),
)
def test_one_holds_the_slots_whose_batches_run_while_others_wait_for_their_first_task(history, changes, other, found):
    """Every other batch waits so; short ones in between make the query look as if it kept up."""
    view = history(**EVERY_OTHER | changes)
    told = neighbour(beside(view, at_work(view, crowd.neighbour(view, **other))))
    assert (told is not None and told.holds) is found


def quick(ready, began, wall=0.1):
    """A stage that needs a tenth of a second once it has a slot."""
    return stage("save", seconds=[0.1, 0.1], ready=ready, began=began, wall=wall)


HELD = [quick(ready=0.1, began=8.0)]
WORKS_FIRST = [quick(ready=7.9, began=8.0)]
IN_TURNS = [quick(ready=0.1, began=3.5), quick(ready=3.7, began=6.5), quick(ready=6.7, began=9.0)]
ITS_OWN = [quick(ready=0.1, began=0.2, wall=8.0), quick(ready=0.1, began=8.2)]
ALWAYS_AT_WORK = stage(seconds=[0.3, 0.2], wall=1.9, ready=0.0)  # on a fraction of a core


@cases(
    "stages, active, found",
    ("all slots are taken while its stage is ready", HELD, 2, JOB),
    ("each of its stages waits", IN_TURNS, 3, JOB),
    ("a slot is free", HELD, 1, None),
    ("nothing is known of the slots", HELD, None, None),
    ("its function works before: its stage is ready late", WORKS_FIRST, 2, None),
    ("when its stage was ready is not known", [LATE_START], 2, None),
    ("its own tasks have the slots", ITS_OWN, 2, None),
    ("it waits a little", [quick(ready=0.1, began=1.0)], 2, None),
    ("it has ended", [HELD] * 3 + [[quick(ready=0.1, began=0.2)]] * 3, 2, None),
)
def test_a_job_that_belongs_to_no_query_holds_the_slots(history, stages, active, found):
    view = history(**FROM_BIRTH | {"stages": stages})
    if active is None:
        view.hosts = [replace(host, executors=()) for host in view.hosts[:1]] + [view.hosts[1]]
    assert who(view if active is None else looked_at(view, active=active)) == found


@pytest.fixture
def held_up(history):
    """A query whose stages wait for slots that are all taken."""
    return looked_at(history(**FROM_BIRTH | {"stages": HELD}), active=2)


def with_a_free_slot(view):
    """The view, in which one look of those at the slots finds one that is free."""
    view.hosts = [*view.hosts[:6], looked_at(view, active=1).hosts[6], *view.hosts[7:]]
    return view


def partly_read(view):
    """The view, of whose batches not all stages were read."""
    for place, each in enumerate(view.history.tasks):
        view.history.tasks[place] = replace(each, whole=False)
    return view


@cases("change", ("it leaves a slot free at times", with_a_free_slot), ("not all stages were read", partly_read))
def test_a_job_holds_none_up_where(held_up, change):
    assert neighbour(change(held_up)) is None


@pytest.mark.parametrize(("ago", "found"), [(10.0, JOB), (40.0, None)])
def test_a_job_is_named_while_what_it_held_up_is_recent(history, ago, found):
    view = history(**FROM_BIRTH | {"stages": HELD}, quiet_for=ago)
    assert who(looked_at(view, quiet_for=ago, active=2)) == found


@cases("known, found", ("its stages are ready", True, JOB), ("its tasks were not read", False, None))
def test_a_job_holds_up_several_queries_at_once(held_up, known, found):
    other = crowd.neighbour(held_up, None, light=stage(seconds=[0.1, 0.1], wall=7.5))
    for place, tasks in enumerate(other.tasks):
        stages = [replace(each, submitted=each.started, started=each.ended - 0.1) for each in tasks.stages]
        other.tasks[place] = replace(tasks, stages=tuple(stages))
    if not known:
        other.tasks.clear()

    assert who(beside(held_up, at_work(held_up, other))) == found


@cases(
    "light, found",
    ("it has a batch meanwhile, whose tasks may have the slots", ALWAYS_AT_WORK, None),
    ("it has none at the looks", None, JOB),
)
def test_beside_another_query_a_job_is_named_only_where_that_one_has_no_batch(held_up, light, found):
    other = crowd.neighbour(held_up, None, light=light)
    if light is None:
        ends = [batch.ended + 0.7 for batch in list(other.batches)[-9:-1]]
        held_up.hosts = [replace(host, at=end) for host, end in zip(held_up.hosts[:8], ends, strict=True)]

    assert who(beside(held_up, other)) == found


def heard_of(view, *events):
    """Another query by what was heard of it: each event with the seconds before now, and for a batch those it took."""
    other, run = History("other"), ""
    for number, (what, ago, *more) in enumerate(events):
        at = view.now - ago
        if what == "start":
            run = f"run-{number}"
            other.start(at, "id-2", run)
            other.plan = Plan(run, trigger="processing_time")
        elif what == "batch":
            other.add(
                replace(view.last, query="other", run_id=run, batch_id=number, started=at, duration=more[0], phases={})
            )
        elif what == "runs":
            other.set_running(Running(view.now, run, at, "Processing new data"))
        elif what == "idle":
            other.idle(at)
        else:
            other.end(at, run, "boom" if what == "failed" else None, None, unwatched=what == "unwatched")
    return other


@cases(
    "events",
    ("one that failed", [("start", 100), ("runs", 99), ("failed", 0.5)]),
    ("a later one that failed", [("start", 100), ("batch", 99, 1), ("runs", 90), ("failed", 0.5)]),
    ("before a restart", [("start", 100), ("runs", 99), ("failed", 1), ("start", 0.8), ("batch", 0.7, 0.5)]),
    ("as those of the run before", [("start", 100), ("failed", 99), ("start", 98), ("failed", 1), ("start", 0.8)]),
    ("one before a restart", [("start", 60), ("batch", 60, 59), ("end", 0.9), ("start", 0.5)]),
    ("one of a run whose end was not told", [("start", 60), ("batch", 60, 1), ("start", 0.5)]),
    ("one of a run that is watched no more", [("start", 60), ("batch", 60, 1), ("unwatched", 55)]),
    ("one that is forgotten", [("start", 900), *(("batch", 1 - n / 250, 0.001) for n in range(201))]),
    ("one that is not reported yet, as in an event log", [("start", 60), ("batch", 60, 1)]),
    ("its first, not reported yet", [("start", 60)]),
    ("one between two runs", [("start", 60), ("end", 50), ("start", 49), ("batch", 0.5, 0.4)]),
    ("one before it was known", [("start", 1), ("batch", 0.9, 0.4)]),
)
def test_no_job_is_named_while_another_query_may_have_a_batch_of_which_nothing_is_known(held_up, events):
    assert neighbour(beside(held_up, heard_of(held_up, *events))) is None


@cases(
    "events",
    ("it failed before", [("start", 60), ("batch", 60, 1), ("failed", 50)]),
    ("between two batches", [("start", 60), ("batch", 60, 1), ("batch", 0.5, 0.4)]),
    ("its batch has only begun", [("start", 60), ("batch", 60, 1), ("runs", 1)]),
    ("it has nothing to read", [("start", 60), ("batch", 60, 1), ("idle", 0.5)]),
)
def test_a_job_is_named_where_the_other_query_is_known_to_have_had_no_batch(held_up, events):
    assert who(beside(held_up, heard_of(held_up, *events))) == JOB


def test_other_queries_are_asked_for_no_more_looks_than_it_takes_to_name_a_job(held_up, monkeypatch):
    asked = []
    monkeypatch.setattr(neighbours, "_waited", lambda history, at: asked.append(at) or True)
    others = [heard_of(held_up, ("start", 1)) for _ in range(5)]
    assert who(beside(held_up, *others)) == JOB
    assert (len(set(asked)), len(asked)) == (2, 12)

    asked.clear()
    assert neighbour(beside(with_a_free_slot(held_up), *others)) is None
    assert asked == []


PART_OF_THE_SLOTS = stage(seconds=[0.7, 0.5], wall=1.6, ready=0.0)
HALF_OF_THE_SLOTS = stage(seconds=[1.1, 1.1], wall=1.6, ready=0.0)


@cases(
    "works, count, active, found",
    ("they take most of the slots", PART_OF_THE_SLOTS, 3, 2, "3 other queries"),
    ("a slot is free", PART_OF_THE_SLOTS, 3, 1, None),
    ("they take too little: the slots are held by something else", ALWAYS_AT_WORK, 3, 2, None),
    ("two of them", PART_OF_THE_SLOTS, 2, 2, "2 other queries"),
    ("two of them, each of which takes a good part", HALF_OF_THE_SLOTS, 2, 2, "2 other queries"),
    ("one alone that takes a good part", HALF_OF_THE_SLOTS, 1, 2, None),
)
def test_none_of_several_queries_need_hold_the_slots_alone(history, works, count, active, found):
    view = looked_at(history(**FROM_BIRTH | {"stages": HELD}), active=active)
    others = [at_work(view, crowd.neighbour(view, None, name=f"q{n}", light=works)) for n in range(count)]
    assert who(beside(view, *others)) == found


@cases(
    "late, works, count, found",
    ("two batches wait", 2, PART_OF_THE_SLOTS, 2, "2 other queries"),
    ("one batch waits", 1, PART_OF_THE_SLOTS, 2, None),
    ("one other query, which takes as much as ever", 2, HALF_OF_THE_SLOTS, 1, None),
)
def test_several_queries_that_are_as_ever_are_named_where_more_than_one_batch_waits(history, late, works, count, found):
    waits = {"seconds": [22] * late, "stages": [quick(ready=0.1, began=20.0)]}
    view = looked_at(history(warm=30, warm_stages=[LIGHT], **waits), active=2)
    others = [at_work(view, crowd.neighbour(view, None, name=f"q{n}", light=works)) for n in range(count)]
    assert who(beside(view, *others)) == found
