"""The table of expectations names the jobs that there are."""

from ledgerops.ledger.jobs import JOBS, find_job
from ledgerops.ledger.verify.expectations import EXPECTATIONS, PassedOn

UNCHECKED = {"campaign_views"}  # reads ad events


def test_every_job_has_an_expectation_or_is_known_to_have_none():
    assert {job.name for job in JOBS} == {*EXPECTATIONS, *UNCHECKED}


def test_only_a_job_with_a_watermark_may_miss_rows_that_are_late():
    waiting = [name for name, each in EXPECTATIONS.items() if isinstance(each, PassedOn) and each.waits]
    assert waiting == ["conflicting_transactions", "dedup_transactions", "versioned_customers"]
    assert all(find_job(name).lateness for name in waiting)
