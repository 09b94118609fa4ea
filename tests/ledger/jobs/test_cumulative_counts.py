from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.cumulative_counts import JOB
from tests.ledger.jobs.feed import instant, transaction

pytestmark = pytest.mark.spark


def test_the_day_begins_anew_at_midnight_whatever_the_time_zone_of_the_session(feed, job_session):
    job_session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        case = feed(JOB)
        case.work(
            [transaction("last", "23:59:59.999999", amount=Decimal("1.25")), transaction("first", "2024-03-02T00:00")],
            [transaction("clock", "2024-03-02T02:00", "C2")],
            lateness="0 seconds",
        )
    finally:
        job_session.conf.set("spark.sql.session.timeZone", "UTC")

    assert case.rows() == [
        (instant("00:00"), instant("2024-03-02T00:00"), "C1", 1, Decimal("1.25")),
        (instant("2024-03-02T00:00"), instant("2024-03-02T02:00"), "C1", 1, Decimal("10.00")),
    ]
