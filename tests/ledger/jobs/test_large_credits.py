from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.large_credits import JOB
from tests.ledger.jobs.feed import transaction

pytestmark = pytest.mark.spark


def test_only_credits_above_the_threshold_are_written(feed):
    case = feed(JOB)
    at_it = transaction("at the threshold", "10:01", amount=Decimal("40000.00"))
    debit = transaction("a debit", "10:02", amount=Decimal("90000.00"), type="Debit")
    late = transaction("a day late", "2024-02-29T10:00", amount=Decimal("50000.00"))
    case.add([transaction("above", "10:00", amount=Decimal("40000.01")), at_it, debit], [late])
    case.run()

    assert case.rows("transaction_id") == [("a day late",), ("above",)]
