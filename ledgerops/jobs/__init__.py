"""The ledger's streaming jobs, one module each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ledgerops.errors import UserError
from ledgerops.jobs import (
    account_lookup,
    campaign_views,
    cumulative_counts,
    customer_sessions,
    customer_transactions,
    daily_counts,
    debit_credit_pairs,
    debit_credit_ratio,
    dedup_transactions,
    enriched_transactions,
    large_credits,
    masked_transactions,
    operation_words,
    risk_scores,
    sliding_counts,
    spending_profile,
    top_customers,
    unified_flow,
    versioned_customers,
)
from ledgerops.jobs.job import GROUPS, Job

JOBS: tuple[Job, ...] = (
    large_credits.JOB,
    dedup_transactions.JOB,
    daily_counts.JOB,
    sliding_counts.JOB,
    cumulative_counts.JOB,
    customer_sessions.JOB,
    top_customers.JOB,
    debit_credit_pairs.JOB,
    customer_transactions.JOB,
    versioned_customers.JOB,
    account_lookup.JOB,
    masked_transactions.JOB,
    operation_words.JOB,
    spending_profile.JOB,
    risk_scores.JOB,
    unified_flow.JOB,
    debit_credit_ratio.JOB,
    enriched_transactions.JOB,
    campaign_views.JOB,
)


# what a run without names does: one job of each kind that two cores carry together
TOUR: tuple[Job, ...] = (
    large_credits.JOB,
    dedup_transactions.JOB,
    daily_counts.JOB,
    customer_sessions.JOB,
    debit_credit_pairs.JOB,
    enriched_transactions.JOB,
)
ALL = "all"


def choose_jobs(names: Iterable[str]) -> tuple[Job, ...]:
    """The jobs of these names; a name may be a group's or `all`, no name gives the tour. Raises UserError."""
    chosen: dict[str, Job] = {}
    for name in names:
        group = [job for job in JOBS if name in (job.group, ALL)]
        for job in group or [find_job(name)]:
            chosen[job.name] = job
    return tuple(chosen.values()) or TOUR


def find_job(name: str) -> Job:
    """The job of that name. Raises UserError, with the nearest name if one is near."""
    jobs = {job.name: job for job in JOBS}
    if name in jobs:
        return jobs[name]
    near = difflib.get_close_matches(name, [*jobs, *GROUPS, ALL], n=1)
    hint = (
        f"did you mean {near[0]}?" if near else f"there are {', '.join(jobs)}, the groups {', '.join(GROUPS)}, and all"
    )
    raise UserError(f"no job named {name!r}; {hint}")
