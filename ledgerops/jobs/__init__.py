"""The ledger's streaming jobs, one module each."""

from __future__ import annotations

import difflib

from ledgerops.errors import UserError
from ledgerops.jobs import (
    customer_sessions,
    daily_counts,
    debit_credit_pairs,
    dedup_transactions,
    enriched_transactions,
    large_credits,
)
from ledgerops.jobs.job import Job

JOBS: tuple[Job, ...] = (
    large_credits.JOB,
    dedup_transactions.JOB,
    daily_counts.JOB,
    customer_sessions.JOB,
    debit_credit_pairs.JOB,
    enriched_transactions.JOB,
)


def find_job(name: str) -> Job:
    """The job of that name. Raises UserError, with the nearest name if one is near."""
    jobs = {job.name: job for job in JOBS}
    if name in jobs:
        return jobs[name]
    near = difflib.get_close_matches(name, jobs, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(jobs)}"
    raise UserError(f"no job named {name!r}; {hint}")
