import pytest

from ledgerops.diagnosis.rules.straggler import RULE
from tests.diagnosis.rules.conftest import stage

LONE = [stage("join", records=[500] * 4, seconds=[0.4, 0.4, 0.4, 4], wall=4.1)]
EVEN = [stage("join", records=[500] * 4, seconds=[2, 2, 2, 2.2], wall=4.2)]
TWO = {"1": 1, "2": 1}


def on(first: tuple[int, float], second: tuple[int, float], **told) -> list:
    return [stage("join", executors={"1": first, "2": second}, **{"records": [500] * 4, "wall": 4.1, **told})]


def test_one_slow_task_is_told_with_what_the_others_take(history):
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[LONE] * 4))

    assert finding.summary == "one task of stage 0 takes 4.0 s, the others 0.4 s for the same number of records"
    assert finding.component.kind == "stage"
    assert finding.share == pytest.approx((4.0 - 0.8) / 5, abs=0.1)


def test_its_executor_is_named_when_it_is_always_the_same(history):
    lone = on((2, 0.8), (2, 4.4), seconds=[0.4, 0.4, 0.4, 4])
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[lone] * 4))

    assert (finding.component.kind, finding.component.name) == ("executor", "2")
    assert finding.summary.endswith("for the same number of records, on executor 2")


def test_an_executor_whose_tasks_are_all_slow_is_named(history):
    slow = on((2, 0.8), (2, 4.0), seconds=[0.4, 0.4, 2, 2])
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[slow] * 4, cores=TWO))

    assert finding.summary == (
        "a task takes 2.00 s on executor 2 and 0.40 s on the others for the same number of records"
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1.9] * 4, "stages": [LONE] * 4}, id="no harm"),
        pytest.param({"seconds": [5] * 4, "stages": [EVEN] * 4}, id="even tasks"),
        pytest.param({"seconds": [5] * 4, "stages": [LONE, EVEN, EVEN, EVEN]}, id="once"),
        pytest.param(
            {"seconds": [5] * 4, "stages": [[stage(records=[100, 900], seconds=[0.5, 4], wall=4.1)]] * 4},
            id="it has more records",
        ),
        pytest.param({"seconds": [5] * 4, "stages": [[stage(records=[2000], seconds=[4])]] * 4}, id="the only task"),
        pytest.param(
            {"seconds": [9] * 4, "stages": [[stage(records=[500] * 2, seconds=[0.1, 0.5], wall=0.6)]] * 4},
            id="it costs the batch little",
        ),
        pytest.param(
            {"seconds": [5] * 4, "stages": [on((2, 3.8), (2, 4.2), seconds=[1.9, 1.9, 2.1, 2.1])] * 4, "cores": TWO},
            id="executors that are as fast",
        ),
        pytest.param(
            {
                "seconds": [5] * 4,
                "stages": [on((3, 3.9), (1, 1.3), seconds=[1.3] * 4)] * 4,
                "cores": TWO,
            },
            id="more tasks on one executor, each as fast",
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[5] * 4, stages=[EVEN] * 4)

    assert RULE.acquit(view) == "the slowest task of stage 0 takes 1.1 times as long as the others"
