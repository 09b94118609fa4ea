"""Another query of the driver that has the cores, told from one that merely runs beside."""

from dataclasses import replace

import pytest

from ledgerops.diagnosis.facts.neighbours import neighbour, slots_taken
from ledgerops.model.records import Running
from tests.diagnosis.conftest import stage
from tests.diagnosis.rules import crowd
from tests.diagnosis.rules.crowd import beside, looked_at

LIGHT, HELD_UP = stage("save", seconds=[0.4, 0.3], wall=0.4), stage("save", seconds=[0.5, 0.4], wall=3.5)
SLOW = {"warm": 14, "warm_stages": [LIGHT], "seconds": [5] * 4, "stages": [[HELD_UP]] * 4}
LATE_START = stage("save", seconds=[0.4, 0.4], began=7.0, wall=0.5)
FROM_BIRTH = {"warm": 0, "seconds": [10] * 6, "stages": [[LATE_START]] * 6}
ASLEEP = stage("udf", seconds=[4.8, 4.8], wall=4.9, cpu=0.01)
ONE_SLOT = stage(seconds=[2.4, 0.0], wall=4.9)


@pytest.fixture
def victim(history):
    """A query whose batches take five times as long as they did, with few own tasks."""

    def make(**changes):
        return looked_at(history(**SLOW | changes), busy=1.0)

    return make


def test_the_query_that_took_the_cores_is_told_with_what_it_took_before(victim):
    view = victim()
    found = neighbour(beside(view, crowd.neighbour(view, 21), crowd.neighbour(view, None, "small")))

    assert found is not None and found.query == "hog"
    assert (found.takes, found.took) == (pytest.approx(1.5, abs=0.2), pytest.approx(0.25, abs=0.05))
    assert (found.slots, found.holds) == (2, False)


def test_one_that_was_not_there_before_took_nothing(victim):
    view = victim()
    found = neighbour(beside(view, crowd.neighbour(view, 18, began=29.0)))

    assert found is not None and found.took is None


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


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"seconds": [1.4] * 4}, id="no harm"),
        pytest.param({"rows": 6000}, id="six times the rows"),
        pytest.param({"warm": 0}, id="no past, and slots are free"),
        pytest.param({"stages": [[stage("save", seconds=[4.5, 4.5])]] * 4}, id="it takes the cores itself"),
    ],
)
def test_a_query_that_is_not_held_up_has_none(victim, changes):
    view = victim(**changes)

    assert neighbour(beside(view, crowd.neighbour(view, 18))) is None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"heavy_since": None}, id="a light one"),
        pytest.param({"heavy_since": 999}, id="one that took as much before"),
        pytest.param({"heavy_since": 18, "heavy": ONE_SLOT}, id="one that leaves most of them"),
    ],
)
def test_others_are_none(victim, other):
    view = victim()

    assert neighbour(view) is None
    assert neighbour(beside(view, crowd.neighbour(view, **other))) is None


def test_one_that_ended_long_ago_is_none(victim):
    view = victim()
    hog = crowd.neighbour(view, 60)
    hog.end(view.now - 30, "run-hog", None, None)

    assert neighbour(beside(view, hog)) is None


@pytest.mark.parametrize(
    ("other", "active", "found"),
    [
        pytest.param({"heavy_since": 999, "heavy": ASLEEP}, 2, True, id="its tasks hold all slots, asleep"),
        pytest.param({"heavy_since": 999}, 1, False, id="a slot is free"),
        pytest.param({"heavy_since": None}, 2, False, id="a light one: the slots are the query's own"),
        pytest.param({"heavy_since": 999, "heavy": ONE_SLOT}, 2, False, id="one that leaves most of them"),
    ],
)
def test_without_a_past_all_slots_must_be_taken(history, other, active, found):
    view = history(**FROM_BIRTH)
    both = looked_at(beside(view, crowd.neighbour(view, **other)), busy=0.2, active=active)

    assert (neighbour(both) is not None) is found


def test_slots_that_a_query_fills_itself_are_not_taken_by_others(history):
    view = history(**FROM_BIRTH)

    assert not slots_taken(looked_at(view, active=2))
    assert slots_taken(looked_at(beside(view, crowd.neighbour(view, 999)), active=2))


WAITS, WRITES_LONG = stage("save", began=1.6, wall=0.1), stage("save", began=0.0, wall=0.1)
EVERY_OTHER = {"warm": 0, "interval": 1.0, "seconds": [2.2, 0.3] * 8, "stages": [[WAITS], []] * 8, "cores": 2}


@pytest.mark.parametrize(
    ("shift", "found"),
    [
        pytest.param(0.0, False, id="taken while it waits: a slot is free"),
        pytest.param(None, True, id="taken between its waits"),
    ],
)
def test_samples_from_between_its_waits_tell_nothing_of_the_slots(history, shift, found):
    """Executors are sampled every ten seconds; so is the trigger of a neighbour."""
    view = history(**EVERY_OTHER)
    hog = crowd.neighbour(view, 999)
    hog.set_running(Running(view.now, "run-hog", hog.last_progress, "Processing"))
    seen = looked_at(beside(view, hog), active=0)
    if shift is None:
        ends = [batch.ended - 0.05 for batch in view.batches]
        seen.hosts = [replace(host, at=end) for host, end in zip(seen.hosts, ends, strict=False)]

    assert (neighbour(seen) is not None) is found


@pytest.mark.parametrize(
    ("changes", "other", "found"),
    [
        pytest.param({}, {"heavy_since": 999}, True, id="while its batches run"),
        pytest.param({"stages": [[WRITES_LONG], []] * 8}, {"heavy_since": 999}, False, id="after its last task"),
        pytest.param({}, {"heavy_since": None}, False, id="the other one is light"),
        pytest.param({}, {"heavy_since": 999, "heavy": ONE_SLOT}, False, id="a slot is free"),
        pytest.param({"stages": [[WAITS], []] + [[], []] * 7}, {"heavy_since": 999}, False, id="once"),
        pytest.param({"stages": [[WAITS], []] * 7 + [[WRITES_LONG], []]}, {"heavy_since": 999}, False, id="no longer"),
    ],
)
def test_one_holds_the_slots_whose_batches_run_while_others_wait_for_their_first_task(history, changes, other, found):
    """Every other batch waits so; short ones in between make the query look as if it kept up."""
    view = history(**EVERY_OTHER | changes)
    hog = crowd.neighbour(view, **other)
    hog.set_running(Running(view.now, "run-hog", hog.last_progress, "Processing"))
    told = neighbour(beside(view, hog))

    assert (told is not None and told.holds) is found
