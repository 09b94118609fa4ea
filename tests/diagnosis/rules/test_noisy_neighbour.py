import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.noisy_neighbour import RULE
from ledgerops.model.records import Running
from tests.diagnosis.rules.conftest import stage
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour

LIGHT = stage("save", seconds=[0.4, 0.3], wall=0.4)
HELD_UP = stage("save", seconds=[0.5, 0.4], wall=3.5)
SLOW = {"warm": 14, "warm_stages": [LIGHT], "seconds": [5] * 4, "stages": [[HELD_UP]] * 4}


@pytest.fixture
def victim(history):
    """A query whose batches take five times as long as they did, with few own tasks."""

    def make(busy=1.0, **changes):
        return looked_at(history(**(SLOW | changes)), busy=busy)

    return make


def test_the_query_that_takes_the_cores_is_named(victim):
    view = victim()

    [finding] = RULE.check(beside(view, neighbour(view, 18), neighbour(view, None, "small")))

    assert finding.summary == (
        "hog takes 1.8 of 2 cores (it took 0.3 before); a batch of this query takes 5.0 s instead of the usual 1.0 s"
    )
    assert (finding.component.kind, finding.component.name) == ("query", "hog")
    assert finding.share == pytest.approx(0.8)


def test_a_query_that_was_not_there_before_is_named(victim):
    view = victim()

    [finding] = RULE.check(beside(view, neighbour(view, 18, began=29.0)))

    assert "(it did not run before)" in finding.summary


def test_the_batch_that_runs_counts_as_those_before_it(victim):
    view = victim(busy=0.5)
    hog = neighbour(view, 18)
    cut = [batch for batch in hog.batches if batch.ended < view.now - 8]
    hog.batches.clear()
    hog.batches.extend(cut)
    hog.last_progress = cut[-1].ended
    hog.set_running(Running(view.now, "run-hog", cut[-1].ended, "Processing"))

    [finding] = RULE.check(beside(view, hog))

    assert finding.component.name == "hog"


FROM_BIRTH = {"warm": 0, "seconds": [10] * 6, "stages": [[stage("save", seconds=[0.4, 0.4], began=7.0, wall=0.5)]] * 6}


def test_one_that_had_the_slots_from_birth_is_named_without_a_past(history):
    view = history(**FROM_BIRTH)
    asleep = stage("udf", seconds=[4.8, 4.8], wall=4.9, cpu=0.01)
    others = neighbour(view, 999, heavy=asleep)

    [finding] = RULE.check(looked_at(beside(view, others), busy=0.2, active=2))

    assert finding.summary == (
        "hog takes 1.6 of 2 cores (while this query waits for its first task); a batch of this query takes 10.0 s, in "
        "7.5 s of which no task of it runs"
    )
    assert finding.share == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("other", "active"),
    [
        pytest.param({"heavy_since": 999}, 1, id="a slot is free"),
        pytest.param({"heavy_since": None}, 2, id="a light neighbour: the slots are its own"),
        pytest.param(
            {"heavy_since": 999, "heavy": stage(seconds=[2.4, 0.0], wall=4.9)}, 2, id="one that leaves most of them"
        ),
    ],
)
def test_without_a_past_others_are_not_blamed(history, other, active):
    view = history(**FROM_BIRTH)

    assert list(RULE.check(looked_at(beside(view, neighbour(view, **other)), busy=1.0, active=active))) == []


WAITS, WRITES_LONG = stage("save", began=1.6, wall=0.1), stage("save", began=0.0, wall=0.1)
EVERY_OTHER = {"warm": 0, "interval": 1.0, "seconds": [2.2, 0.3] * 8, "stages": [[WAITS], []] * 8, "cores": 2}


def test_one_whose_batches_run_while_every_other_batch_waits_for_its_first_task_is_named(history):
    """Short batches in between make the query look as if it kept up."""
    view = history(**EVERY_OTHER)
    hog = neighbour(view, 999)
    hog.set_running(Running(view.now, "run-hog", hog.last_progress, "Processing"))

    [finding] = RULE.check(beside(view, hog))

    assert finding.summary == (
        "hog takes 1.9 of 2 cores (while this query waits for its first task); a batch of this query takes 2.2 s, in "
        "1.7 s of which no task of it runs"
    )


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        pytest.param({"stages": [[WRITES_LONG], []] * 8}, {"heavy_since": 999}, id="it waits after its last task"),
        pytest.param({}, {"heavy_since": None}, id="the other one is light"),
        pytest.param({}, {"heavy_since": 999, "heavy": stage(seconds=[2.4, 0.0], wall=4.9)}, id="a slot is free"),
        pytest.param({"stages": [[WAITS], []] + [[], []] * 7}, {"heavy_since": 999}, id="once"),
        pytest.param({"stages": [[WAITS], []] * 7 + [[WRITES_LONG], []]}, {"heavy_since": 999}, id="no longer"),
        pytest.param(
            {"seconds": [2.2, 0.3] * 8 + [0.3] * 30, "stages": [[WAITS], []] * 8 + [[]] * 30},
            {"heavy_since": 999},
            id="long ago",
        ),
    ],
)
def test_every_other_batch_that_is_long_for_another_reason_is_nobodys_fault(history, changes, other):
    view = history(**(EVERY_OTHER | changes))
    hog = neighbour(view, **other)
    hog.set_running(Running(view.now, "run-hog", hog.last_progress, "Processing"))

    assert list(RULE.check(beside(view, hog))) == []


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(lambda view: [], id="alone in its driver"),
        pytest.param(lambda view: [neighbour(view, None)], id="a light neighbour"),
        pytest.param(
            lambda view: [neighbour(view, 999)], id="a neighbour that was as heavy while this query was quick"
        ),
        pytest.param(
            lambda view: [neighbour(view, 18, heavy=stage(seconds=[0.9, 0.0], wall=4.9))],
            id="a neighbour with a slow sink",
        ),
        pytest.param(
            lambda view: [neighbour(view, 18, f"q{n}", heavy=stage(seconds=[0.6, 0.6], wall=1.8)) for n in range(3)],
            id="several that share the cores",
        ),
    ],
)
def test_others_are_not_blamed(victim, others):
    view = victim()

    assert list(RULE.check(beside(view, *others(view)))) == []


def test_the_one_that_takes_the_cores_is_not_told_that_its_neighbour_is_to_blame(victim):
    own = stage("save", seconds=[4.5, 4.5], wall=4.6)
    view = victim(stages=[[own]] * 4)
    held_up = neighbour(view, 18, "victim", heavy=stage(seconds=[0.5, 0.4], wall=3.5))

    assert list(RULE.check(beside(view, held_up))) == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"seconds": [1.4] * 4}, id="no harm"),
        pytest.param({"seconds": [5] * 4, "rows": 6000}, id="six times the rows"),
        pytest.param({"warm": 0}, id="too little is known"),
    ],
)
def test_a_query_that_is_not_held_up_has_no_noisy_neighbour(victim, changes):
    view = victim(**changes)

    assert list(RULE.check(beside(view, neighbour(view, 18)))) == []


def test_a_neighbour_that_ended_long_ago_is_not_blamed(victim):
    view = victim()
    hog = neighbour(view, 60)
    hog.end(view.now - 30, "run-hog", None, None)

    assert list(RULE.check(beside(view, hog))) == []


def test_it_is_ruled_out_with_the_share_of_the_heaviest(victim):
    view = victim()

    assert RULE.acquit(beside(view, neighbour(view, None))) == "no other query takes more cores than hog: 0.2 of 2"
    assert RULE.acquit(view) is None


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(HELD_UP, id="its tasks take long"),
        pytest.param(stage("save", seconds=[0.5, 0.4], wall=0.6, began=3.9), id="its tasks begin late"),
    ],
)
def test_what_the_neighbour_does_to_it_is_not_laid_at_its_own_door(victim, own):
    view = victim(stages=[[own]] * 4, phases=[{"add_batch": 4.7}] * 4)

    verdict = Diagnoser()(beside(view, neighbour(view, 18)))

    assert [cause.rule for cause in verdict.root_causes] == ["noisy-neighbour"]
