import pytest

from ledgerops.diagnosis.rules.small_batch_overhead import RULE
from tests.diagnosis.rules.conftest import stage

LITTLE = [stage("save", records=[10, 10], seconds=[0.1, 0.1], wall=0.2)]
PLANNING = {"query_planning": 1.5, "add_batch": 0.4, "wal_commit": 0.1}


def small(history, count=8, seconds=2.1, **more):
    told = {"rows": 20, "interval": 0.5, "phases": [PLANNING] * count, "stages": [LITTLE] * count, "warm_seconds": 2.1}
    return history(warm=8, seconds=[seconds] * count, **{**told, **more})


def test_what_a_batch_costs_whatever_its_rows_is_told(history):
    [finding] = RULE.check(small(history))

    assert finding.summary == (
        "2.0 s of a batch of 2.1 s are fixed cost, independent of its 20 rows; the trigger interval is 0.5 s"
    )
    assert finding.component.detail == "query_planning"


def test_a_query_without_an_interval_is_told_of_it_too(history):
    [finding] = RULE.check(small(history, interval=0.0))

    assert finding.summary == (
        "2.0 s of a batch of 2.1 s are fixed cost, independent of its 20 rows; the next batch starts at once"
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"count": 0}, id="no batch yet"),
        pytest.param({"interval": 5.0}, id="no harm"),
        pytest.param({"seconds": 0.9}, id="nobody waits for less than a second"),
        pytest.param(
            {"stages": [[stage(records=[900, 900], seconds=[1.6, 1.6], wall=1.7)]] * 8}, id="the tasks have work"
        ),
        pytest.param(
            {"phases": [{"add_batch": 2.0, "query_planning": 0.05}] * 8}, id="the sink waits, planning takes nothing"
        ),
        pytest.param(
            {"phases": [{"add_batch": 0.4, "wal_commit": 0.8, "commit_offsets": 0.8}] * 8}, id="the checkpoint is slow"
        ),
        pytest.param({"stages": None}, id="tasks unknown"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(small(history, **case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = small(history, stages=[[stage(records=[900, 900], seconds=[1.6, 1.6], wall=1.7)]] * 8)

    assert RULE.acquit(view) == "the tasks alone need 1.6 s of a batch of 2.1 s"


def wide(history, double=2.1, cpu=0.9, **more):
    """Tasks that compute in batches of 20 rows, and one batch of 40 rows that took `double` seconds."""
    working = stage("write", records=[10, 10], seconds=[1.4, 1.4], wall=1.5, cpu=cpu)
    phases = {"query_planning": 0.4, "add_batch": 1.6, "wal_commit": 0.1}
    seconds = [2.1] * 6 + [double] + [2.1] * 5
    return history(
        warm=0,
        rows=[20] * 6 + [40] + [20] * 5,
        interval=0.0,
        seconds=seconds,
        phases=[phases] * 12,
        stages=[[working]] * 12,
        **more,
    )


def test_one_batch_of_twice_the_rows_proves_the_fixed_cost(history):
    [finding] = RULE.check(wide(history))

    assert finding.summary == (
        "2.1 s of a batch of 2.1 s are fixed cost, independent of its 20 rows; the next batch starts at once"
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"double": 3.6}, id="twice the rows take nearly twice as long"),
        pytest.param({"cpu": 0.2}, id="the tasks wait"),
    ],
)
def test_tasks_that_work_on_their_rows_or_wait_are_no_fixed_cost(history, case):
    assert list(RULE.check(wide(history, **case))) == []
