import pytest

from ledgerops.diagnosis.rules.eviction_storm import RULE
from tests.tables import cases

QUIET = [(10, 0.01)] * 6


def removing(*told: tuple[int, float]) -> list[dict]:
    return [{"rows": 5000, "removed": rows, "removal_seconds": seconds} for rows, seconds in told]


def test_a_batch_that_removes_many_rows_at_once_is_found(history):
    [finding] = RULE.check(history(seconds=[1] * 6 + [9, 1], operators=removing(*QUIET, (90_000, 15.0), (10, 0.01))))

    assert finding.summary == (
        "stateStoreSave removed 90,000 rows of its state in one batch (usually 10), which took 7.5 s of 9.0 s"
    )
    assert finding.share == pytest.approx(7.5 / 9)


def test_one_task_that_removes_all_takes_as_long_as_it_computes(history):
    told = [{**each, "shuffle_partitions": 200, "stores": 1} for each in removing(*QUIET, (90_000, 7.5))]
    [finding] = RULE.check(history(seconds=[1] * 6 + [9], operators=told))
    assert "which took 7.5 s of 9.0 s" in finding.summary


@cases(
    "seconds, told, more",
    ("the batch is long otherwise", [1] * 6 + [9], [*QUIET, (90_000, 2.0)], {}),
    ("few rows, slowly: a busy machine", [1] * 6 + [9], [*QUIET, (50, 15.0)], {}),
    ("as many as always", [1] * 6 + [9], [*[(90_000, 1.0)] * 6, (90_000, 15.0)], {}),
    ("a window that closes in time", [1] * 6 + [3], [*QUIET, (90_000, 5.0)], {}),
    ("it is over", [1] * 3 + [9] + [1] * 3, [*QUIET[:3], (90_000, 15.0), *QUIET[:3]], {}),
    ("the first batch", [9], [(90_000, 15.0)], {"warm": 0}),
    ("a query without state", [1] * 6 + [9], QUIET, {"operators": None}),
)
def test_others_are_not(history, seconds, told, more):
    assert list(RULE.check(history(**{"seconds": seconds, "operators": removing(*told)} | more))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[5] * 4, operators=removing(*QUIET[:3], (10, 1.0)))
    assert RULE.ruled_out(view) == "removing state rows took at most 0.50 s in each of the latest 3 batches"
