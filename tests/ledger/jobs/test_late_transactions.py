from dataclasses import replace

import pytest

from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.jobs.late_transactions import JOB
from tests.ledger.jobs.feed import Feed, dropped, transaction
from tests.ledger.jobs.oracle import disordered

pytestmark = pytest.mark.spark


def written(case):
    """The ids of the rows that are late, and of those that are not."""
    rows = case.rows("transaction_id, topic")
    return [[i for i, topic in rows if topic == f"transactions.{kind}"] for kind in ("late", "on_time")]


def test_late_rows_are_those_that_dedup_drops_in_the_same_batches(feed, job_session, tmp_path):
    sent, unique = set(), []
    for rows in [batch for run in disordered() for batch in run]:
        unique.append([row for row in rows if not (row["transaction_id"] in sent or sent.add(row["transaction_id"]))])
    seen = []

    def watch(rows, watermark):
        seen.append(watermark)
        return rows

    case = feed(JOB)
    other = Feed(job_session, replace(find_job("dedup_transactions"), on_batch=watch), tmp_path / "dedup")
    for one in (case, other):
        one.add(*unique)
    case.run(lateness="10 minutes")
    progress = other.run(lateness="10 minutes")

    by_spark = [dropped([one]) for one in progress]
    late, kept = written(case)
    assert (len(late), len(kept)) == (sum(by_spark), len(other.rows()))
    assert kept == [i for (i,) in other.rows("transaction_id")]
    # batch by batch: on_batch is told the very watermark by which the operator dropped
    limits = [watermark or 0.0 for watermark in seen]
    pairs = zip([*unique, []], limits, strict=True)
    assert by_spark == [sum(row["event_time"].timestamp() <= limit for row in rows) for rows, limit in pairs]
    assert seen[0] is None and limits == sorted(limits)
    assert len({one["eventTime"]["watermark"] for one in progress[1:]}) > 3, "the watermark hardly moved"


def test_a_row_at_the_watermark_is_late_one_after_it_is_not_and_none_is_late_in_the_first_batch(feed):
    case = feed(JOB)
    untimed = transaction("of no time", "10:00") | {"event_time": None}
    case.work(
        [transaction("first", "10:00"), transaction("old, first batch", "01:00")],
        [transaction("next", "10:05"), transaction("old, second batch", "01:00")],
        [transaction("at the watermark", "09:50"), transaction("just after", "09:50:00.000001"), untimed],
        lateness="10 minutes",
    )

    late, kept = written(case)
    assert late == ["at the watermark"]
    assert len(kept) == 6


def test_a_job_without_late_rows_writes_none(feed):
    case = feed(JOB)
    case.add([transaction("a", "10:00")], [transaction("b", "10:01")], [transaction("c", "09:59:30")])
    case.run(lateness="10 minutes")
    assert written(case) == [[], ["a", "b", "c"]]
