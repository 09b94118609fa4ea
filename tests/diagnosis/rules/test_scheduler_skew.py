import pytest

from ledgerops.diagnosis.rules.scheduler_skew import RULE
from tests.diagnosis.rules.conftest import stage

TWO = {"driver": 0, "1": 1, "2": 1}


def on(first: int, second: int, seconds: float = 1.0, slower: float = 1.0, wall: float = 4.2) -> list:
    shares = {"1": (first, first * seconds), "2": (second, second * seconds * slower)}
    count = first + second
    return [stage("join", records=[500] * count, seconds=[seconds] * count, wall=wall, executors=shares)]


def test_an_executor_that_does_nearly_all_is_named(history):
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[on(4, 0)] * 4, cores=TWO, plan={"stateful": True}))

    assert finding.summary == (
        "executor 1 runs 100% of the tasks with 50% of the cores: 4.0 s per batch, and an even split would take 2.0 s"
    )
    assert finding.share == pytest.approx(0.4)
    assert finding.remedies[0].action == "start the query again from its checkpoint"


def test_a_query_without_state_need_not_wait_for_the_data(history):
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[on(7, 1)] * 4, cores=TWO))

    assert finding.remedies[0].action == "set spark.locality.wait to 0s"


def test_a_stage_that_cannot_be_spread_says_nothing_of_how_tasks_are(history):
    """The source reads with one task, wherever there is room."""
    source = stage("scan", records=[1000], seconds=[0.1], wall=0.1, executors={"2": (1, 0.1)})
    [finding] = RULE.check(history(seconds=[6] * 4, stages=[[source, *on(5, 1)]] * 4, cores=TWO))

    assert finding.evidence[0].value == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1.9] * 4, "stages": [on(4, 0)] * 4, "cores": TWO}, id="no harm"),
        pytest.param({"seconds": [5] * 4, "stages": [on(2, 2)] * 4, "cores": TWO}, id="an even split"),
        pytest.param({"seconds": [5] * 4, "stages": [on(3, 1)] * 4, "cores": TWO}, id="three to one is chance"),
        pytest.param({"seconds": [5] * 4, "stages": [on(4, 0)] * 4, "cores": {"1": 1}}, id="one executor"),
        pytest.param({"seconds": [5] * 4, "stages": [on(4, 0)] * 4, "cores": 2}, id="local mode"),
        pytest.param({"seconds": [5] * 4, "stages": [on(4, 0)] * 4, "cores": {"1": 4, "2": 0}}, id="all of the cores"),
        pytest.param({"seconds": [5] * 4, "stages": [on(1, 0)] * 4, "cores": TWO}, id="one task cannot be spread"),
        pytest.param({"seconds": [5] * 4, "stages": [on(4, 0, 0.2)] * 4, "cores": TWO}, id="it costs little"),
        pytest.param(
            {"seconds": [5] * 4, "stages": [on(9, 1, 0.5, slower=4)] * 4, "cores": TWO},
            id="the other one is slow and so gets fewer",
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[5] * 4, stages=[on(2, 2)] * 4, cores=TWO)

    assert RULE.acquit(view) == "the busiest of 2 executors runs 50% of the tasks"
    assert RULE.acquit(history(seconds=[5] * 4, stages=[on(2, 2)] * 4, cores=2)) is None
