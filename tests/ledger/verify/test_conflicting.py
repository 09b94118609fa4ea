"""The job that looks for copies with another amount must find each of them, and nothing else."""

import pyarrow as pa

from tests.ledger.verify.made import PLAN, again, manifest_of, rows_of, with_value, without

TEXT = PLAN.replace("duplicates: {share: 0.1,", "duplicates: {share: 0.1, conflicting: 0.25,")
CONFLICTING = pa.Table.from_batches([rows.where(rows.conflicting).batch for rows in rows_of(TEXT)])
HOW = {"job": "conflicting_transactions", "manifest": manifest_of(text=TEXT), "lateness_seconds": 3_600.0}


def test_every_copy_with_another_amount_holds(judged):
    assert 200 < CONFLICTING.num_rows < 400
    assert judged(CONFLICTING, **HOW).verdict == "holds"


def test_the_one_of_two_copies_that_is_called_the_first_is_not_compared(judged):
    assert judged(with_value(CONFLICTING, 0, "amount", CONFLICTING["amount"][1].as_py()), **HOW).verdict == "holds"


def test_a_conflict_that_was_not_found_is_lost_and_one_found_twice_is_repeated(judged):
    result = judged(again(without(CONFLICTING, 3), 5), **HOW)
    assert (result.verdict, result.lost, result.repeated) == ("broken", 1, 1)
