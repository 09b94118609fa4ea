"""The job that looks for copies with another amount must find each of them, and nothing else."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.ledger.verify.made import PLAN, again, manifest_of, rows_of, with_value, without

TEXT = PLAN.replace("duplicates: {share: 0.1,", "duplicates: {share: 0.1, conflicting: 0.25,")
CONFLICTING = pa.Table.from_batches([rows.where(rows.conflicting).batch for rows in rows_of(TEXT)])
EXACT = pa.Table.from_batches([rows.where(~rows.first & ~rows.conflicting).batch for rows in rows_of(TEXT)])
HOW = {"job": "conflicting_transactions", "manifest": manifest_of(text=TEXT), "lateness_seconds": 3_600.0}


def test_every_copy_with_another_amount_holds(judged):
    assert 200 < CONFLICTING.num_rows < 400
    assert judged(CONFLICTING, **HOW).verdict == "holds"


def test_the_one_of_two_copies_that_is_called_the_first_is_not_compared(judged):
    assert judged(with_value(CONFLICTING, 0, "amount", CONFLICTING["amount"][1].as_py()), **HOW).verdict == "holds"


def test_a_conflict_that_was_not_found_is_lost_and_one_found_twice_is_repeated(judged):
    result = judged(again(without(CONFLICTING, 3), 5), **HOW)
    assert (result.verdict, result.lost, result.repeated) == ("broken", 1, 1)


def also_exact(*, copies):
    """Place of a conflict whose transaction was also sent that often as it was first."""
    exact = EXACT["transaction_id"].to_pylist()
    conflicts = CONFLICTING["transaction_id"].to_pylist()
    return next(i for i, id in enumerate(conflicts) if exact.count(id) == copies and conflicts.count(id) == 1)


def test_where_the_copy_was_taken_for_the_first_the_first_and_its_exact_copies_are_conflicts(judged):
    place = also_exact(copies=1)
    original = EXACT.filter(pc.equal(EXACT["transaction_id"], CONFLICTING["transaction_id"][place]))
    written = pa.concat_tables([without(CONFLICTING, place), original, original])

    result = judged(written, **HOW)
    assert (result.verdict, result.lost, result.repeated, result.changed) == ("holds", 0, 0, 0)
    assert result.notes == ["exact copies written, as where another amount is taken for the first: 1"]


@pytest.mark.parametrize(("copies", "times"), [(0, 1), (1, 2)], ids=["without an exact copy", "with one exact copy"])
def test_a_conflict_that_is_written_more_often_than_its_transaction_came_again_is_repeated(judged, copies, times):
    result = judged(again(CONFLICTING, *[also_exact(copies=copies)] * times), **HOW)
    assert (result.verdict, result.lost, result.repeated) == ("broken", 0, 1)
