import pytest

from ledgerops.ledger.jobs.landed_transactions import JOB
from tests.ledger.jobs.oracle import ask, disordered, rows_of

pytestmark = pytest.mark.spark


def test_every_row_is_written_as_it_came(feed):
    case = feed(JOB)
    runs = disordered()
    case.run_each(runs)
    assert case.rows() == ask("SELECT * FROM rows ORDER BY ALL", rows_of(runs))
