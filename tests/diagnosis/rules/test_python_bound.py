import pytest

from ledgerops.diagnosis.rules.python_bound import RULE
from tests.diagnosis.rules.conftest import stage
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour

UDF = [stage("udf", seconds=[4, 4], wall=4.2, cpu=0.1)]
QUICK = [stage("udf", seconds=[0.4, 0.4], wall=0.5, cpu=0.1)]


def test_workers_that_take_the_time_of_the_tasks_are_named(history):
    [finding] = RULE.check(history(seconds=[5] * 4, stages=[UDF] * 4, python=7.2))

    assert finding.summary == (
        "Python workers take 90% of the task time of a batch of 5.0 s; the JVM computes for 10% of it"
    )
    assert finding.share == pytest.approx(7.2 / 2 / 5)  # two tasks share its seconds


def test_a_function_that_became_slower_is_compared_with_its_past(history):
    quick = [stage("udf", seconds=[4, 4], wall=0.5, cpu=0.1)]
    view = history(warm=14, warm_stages=quick, seconds=[5] * 4, stages=[UDF] * 4, python=7.2, rows=250)
    [finding] = RULE.check(view)

    assert finding.summary.endswith("; a row takes 4.0 times as long as usual")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1.8] * 4, "stages": [QUICK] * 4, "python": 0.75}, id="mostly Python, but no harm"),
        pytest.param({"seconds": [5] * 4, "stages": [UDF] * 4}, id="no Python"),
        pytest.param({"seconds": [5] * 4, "stages": [UDF] * 4, "python": 3.0}, id="a smaller part in Python"),
        pytest.param(
            {"seconds": [5] * 4, "stages": [QUICK] * 4, "python": 0.75}, id="the batch waits outside its tasks"
        ),
        pytest.param(
            {"seconds": [5] * 4, "stages": [[stage("udf", seconds=[4, 4], wall=4.2, cpu=0.8)]] * 4, "python": 7.2},
            id="the JVM computes, Python waits for rows",
        ),
        pytest.param(
            {"warm": 14, "warm_stages": UDF, "seconds": [5] * 4, "stages": [UDF] * 4, "python": 7.2, "rows": 1000},
            id="as long a row as ever: the load changed",
        ),
        pytest.param({"seconds": [5, 1, 1, 1], "stages": [UDF] * 4, "python": 7.2}, id="one slow batch"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


BUSY = {"busy": 1.0, "active": 2, "python_workers": 0.2, "driver_jvm": 0.1}
SLOWER = {"warm": 14, "warm_stages": QUICK, "warm_seconds": 0.6, "seconds": [5] * 4, "stages": [UDF] * 4} | {
    "phases": [{"add_batch": 4.9}] * 4
}


def test_its_own_tasks_are_not_what_it_waits_for_on_a_machine_that_others_keep_busy(history):
    view = history(**SLOWER, python=7.2, rows=100)

    assert list(RULE.check(looked_at(view, **BUSY)))
    crowded = beside(view, neighbour(view, heavy_since=30.0))
    assert list(RULE.check(looked_at(crowded, **BUSY))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[5] * 4, stages=[UDF] * 4, python=0.8)

    assert RULE.acquit(view) == "Python workers take 10% of the task time"
    assert RULE.acquit(history(seconds=[5] * 4, stages=[UDF] * 4)) is None
