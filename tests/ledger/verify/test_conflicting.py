"""The job that looks for copies with another amount must find each of them, and nothing else."""

import pyarrow as pa

from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, chunks
from ledgerops.ledger.verify.check import VerifyInput, check
from ledgerops.ledger.verify.outputs import ParquetOutput
from tests.ledger.verify.made import COUNT, PLAN, Run, again, manifest_of, with_value, without

TEXT = PLAN.replace("duplicates: {share: 0.1,", "duplicates: {share: 0.1, conflicting: 0.25,")
JOB = "conflicting_transactions"


def conflicting():
    rows = [each for _, each in chunks(PlanStream(parse_plan(TEXT), 0.0), COUNT)]
    return pa.Table.from_batches([each.where(each.conflicting).batch for each in rows])


def judged(folder, table):
    Run(folder, manifest_of(text=TEXT)).write(JOB, table)
    return check(JOB, ParquetOutput(folder / "output" / JOB), VerifyInput(manifest_of(text=TEXT)))


def test_every_copy_with_another_amount_holds(tmp_path):
    table = conflicting()
    assert 200 < table.num_rows < 400
    assert judged(tmp_path, table).verdict == "holds"


def test_the_one_of_two_copies_that_is_called_the_first_is_not_compared(tmp_path):
    table = conflicting()
    assert judged(tmp_path, with_value(table, 0, "amount", table["amount"][1].as_py())).verdict == "holds"


def test_a_conflict_that_was_not_found_is_lost_and_one_found_twice_is_repeated(tmp_path):
    result = judged(tmp_path, again(without(conflicting(), 3), 5))
    assert (result.verdict, result.lost, result.repeated) == ("broken", 1, 1)
