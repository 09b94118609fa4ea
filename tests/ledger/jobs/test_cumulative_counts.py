from dataclasses import replace
from decimal import Decimal

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.cumulative_counts import JOB
from tests.ledger.jobs.feed import instant, transaction
from tests.tables import cases

pytestmark = pytest.mark.spark

WANTED = "strftime(window_end, '%d %H:%M'), customer_id, transactions"


def test_a_step_is_written_when_the_watermark_reaches_its_end_and_so_are_steps_without_transactions(feed):
    case = feed(JOB)
    steps = (
        ([[transaction("t1", "16:00")], [transaction("t2", "18:00")]], [("01 18:00", "C1", 1)]),
        ([[transaction("clock", "23:59:59.999999", "C2")]], [("01 20:00", "C1", 2), ("01 22:00", "C1", 2)]),
        ([[transaction("clock", "2024-03-02T04:00", "C2")]], [("02 00:00", "C1", 2), ("02 00:00", "C2", 1)]),
    )
    expected = []
    for batches, new in steps:
        case.run_each([batches], lateness="0 seconds")
        expected += new
        assert case.rows(WANTED) == expected


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


@cases(
    "again, message",
    ("a derived end", False, "not supported for streaming aggregations without watermark"),
    ("a derived end with a watermark of its own", True, "Redefining watermark is disallowed"),
)
def test_spark_still_refuses_the_plain_ways_for_which_the_sliding_window_stands(feed, again, message):
    def plain(transactions, lateness):
        end = F.explode(
            F.array(*(F.window("event_time", "2 hours").end + F.expr(f"INTERVAL {n} HOURS") for n in (0, 2)))
        )
        rows = transactions.withWatermark("event_time", lateness).select("customer_id", end.alias("end"))
        return (rows.withWatermark("end", lateness) if again else rows).groupBy("end", "customer_id").count()

    case = feed(replace(JOB, transform=plain))
    case.add([transaction("t1", "10:00")])

    with pytest.raises((AnalysisException, StreamingQueryException), match=message):
        case.run()
