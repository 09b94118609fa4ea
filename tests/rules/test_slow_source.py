import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.slow_source import RULE
from tests.rules.conftest import stage

QUICK = {"latest_offset": 0.02, "get_batch": 0.01, "add_batch": 0.8}
SLOW = {"latest_offset": 1.1, "get_batch": 0.1, "add_batch": 0.8}
READS = stage("scan", seconds=(1.0, 1.0), shuffle=False, wall=1.0)
WAITS = stage("scan", seconds=(3.0, 3.0), shuffle=False, wall=3.0, cpu=0.05)
WRITES = stage("save", seconds=(0.1, 0.1), began=3.0)


def test_a_broker_that_answers_slowly_is_found(history):
    [finding] = RULE.check(history(seconds=[1.0] * 5 + [2.1] * 3, phases=[QUICK] * 5 + [SLOW] * 3))

    assert finding.summary == "1.2 s of a batch of 2.1 s pass asking the source; usual are 0.0 s"
    assert finding.component.name == "transactions"


def test_tasks_that_wait_for_the_source_are_found(history):
    [finding] = RULE.check(
        history(seconds=[1.2] * 6 + [3.5] * 5, stages=[[READS, WRITES]] * 6 + [[WAITS, WRITES]] * 5, cores=2)
    )

    assert finding.summary == "3.0 s of a batch of 3.5 s pass in the stage that reads, whose tasks wait; " + (
        "such a batch used to take 1.2 s"
    )


def test_it_is_the_root_of_a_trigger_that_is_overrun(history):
    slow = {"latest_offset": 4.0, "add_batch": 0.8}
    verdict = Diagnoser()(history(seconds=[1.0] * 6 + [5.0] * 10, phases=[QUICK] * 6 + [slow] * 10))

    assert [root.rule for root in verdict.root_causes] == ["slow-source"]
    assert "trigger-overrun" in verdict.root_causes[0].explains
    assert verdict.status == "pressured"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({}, id="healthy"),
        pytest.param({"idle": True}, id="idle"),
        pytest.param({"warm": 0, "seconds": [2.1] * 8, "phases": [SLOW] * 8}, id="slow as ever: no past"),
        pytest.param({"warm": 0, "seconds": [9.0], "phases": [{"latest_offset": 6.0}]}, id="the first batch"),
        pytest.param(
            {"seconds": [1.0] * 5 + [3.0] + [1.0] * 2, "phases": [QUICK] * 5 + [SLOW] + [QUICK] * 2},
            id="a single slow answer",
        ),
        pytest.param(
            {
                "seconds": [1.0] * 5 + [6.0] * 4,
                "phases": [QUICK] * 5 + [{"latest_offset": 0.6, "add_batch": 5.2}] * 4,
            },
            id="a loaded machine: all phases take longer",
        ),
        pytest.param(
            {"seconds": [1.0] * 5 + [2.1] * 2 + [1.0], "phases": [QUICK] * 5 + [SLOW] * 2 + [QUICK]},
            id="two slow answers, and it is over",
        ),
        pytest.param(
            {"seconds": [1.0] * 5 + [3.0] * 4, "phases": [QUICK] * 5 + [{"latest_offset": 0.95}] * 4},
            id="slower answers, but something else got slower by more",
        ),
        pytest.param(
            {
                "warm": 0,
                "seconds": [1.2] * 14 + [1.6] * 3,
                "phases": [{"latest_offset": 0.5}] * 14 + [{"latest_offset": 0.9}] * 3,
            },
            id="a distant source that is a little slower",
        ),
        pytest.param(
            {"seconds": [1.0] * 5 + [4.0] * 4, "phases": [QUICK] * 5 + [{"latest_offset": 0.02, "add_batch": 3.8}] * 4},
            id="a slow sink",
        ),
        pytest.param(
            {
                "seconds": [1.2] * 6 + [3.5] * 5,
                "stages": [[READS, WRITES]] * 6
                + [[stage("scan", seconds=(3.0, 3.0), shuffle=False, wall=3.0, cpu=0.9), WRITES]] * 5,
                "cores": 2,
            },
            id="tasks that compute",
        ),
        pytest.param(
            {"seconds": [1.2] * 6 + [3.5] * 5, "stages": [[READS]] * 6 + [[WAITS]] * 5, "cores": 2},
            id="tasks that read and write: it may be the sink",
        ),
        pytest.param(
            {"seconds": [10.0] * 8, "phases": [QUICK] * 8, "interval": 60.0}, id="long batches of a long trigger"
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_a_quick_source_is_acquitted(history):
    assert RULE.acquit(history(seconds=[1.0] * 5, phases=[QUICK] * 5)) == (
        "asking the source takes 0.0 s of a batch of 1.0 s"
    )
