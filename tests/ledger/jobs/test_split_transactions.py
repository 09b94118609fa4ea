import pytest

from ledgerops.ledger.jobs.split_transactions import JOB
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import ask, disordered, rows_of

pytestmark = pytest.mark.spark


def test_every_row_goes_to_the_output_of_its_type_unchanged(feed):
    case = feed(JOB)
    odd = transaction("neither", "10:00", type=None)
    runs = disordered()
    runs[0][0].append(odd)

    case.run_each(runs)

    question = """
        SELECT *, CASE type WHEN 'Debit' THEN 'transactions.debits' WHEN 'Credit' THEN 'transactions.credits'
        ELSE 'split_transactions' END FROM rows ORDER BY ALL
    """
    assert case.rows() == ask(question, rows_of(runs))
    folders = {folder.name for folder in case.output.glob("topic=*")}
    assert folders == {"topic=transactions.debits", "topic=transactions.credits", "topic=split_transactions"}
