import pytest

from ledgerops.ledger.jobs.landed_transactions import JOB
from tests.ledger.jobs.oracle import ask, disordered

pytestmark = pytest.mark.spark


def test_every_row_is_written_as_it_came(feed):
    case = feed(JOB)
    runs = disordered()
    for run in runs:
        case.add(*run)
        case.run()

    rows = [row for run in runs for batch in run for row in batch]
    assert case.rows() == ask("SELECT * FROM rows ORDER BY ALL", rows)
