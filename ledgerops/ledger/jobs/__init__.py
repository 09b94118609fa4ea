"""The ledger's streaming jobs, one module each."""

from collections.abc import Collection, Iterable

from ledgerops.errors import UserError, did_you_mean
from ledgerops.ledger.jobs import (
    account_lookup,
    campaign_views,
    conflicting_transactions,
    cumulative_counts,
    customer_activity,
    customer_sessions,
    customer_transactions,
    daily_counts,
    dead_letters,
    debit_credit_pairs,
    debit_credit_ratio,
    dedup_transactions,
    enriched_transactions,
    landed_transactions,
    large_credits,
    late_transactions,
    masked_transactions,
    operation_words,
    risk_scores,
    sliding_counts,
    spending_profile,
    split_transactions,
    top_customers,
    unified_flow,
    versioned_customers,
)
from ledgerops.ledger.jobs.job import GROUPS, Job
from ledgerops.ledger.plan.schemas import REJECTS_TABLE

JOBS: tuple[Job, ...] = (
    large_credits.JOB, customer_activity.JOB, dedup_transactions.JOB, split_transactions.JOB, dead_letters.JOB,
    daily_counts.JOB, sliding_counts.JOB, cumulative_counts.JOB, customer_sessions.JOB, top_customers.JOB,
    debit_credit_pairs.JOB, customer_transactions.JOB, versioned_customers.JOB, account_lookup.JOB,
    landed_transactions.JOB, masked_transactions.JOB, operation_words.JOB, spending_profile.JOB,
    risk_scores.JOB, unified_flow.JOB, debit_credit_ratio.JOB, enriched_transactions.JOB, late_transactions.JOB,
    conflicting_transactions.JOB, campaign_views.JOB,
)  # fmt: skip


# what runs without names: state, windows and a join, light enough for two slow cores
DEFAULT_JOBS: tuple[Job, ...] = (dedup_transactions.JOB, daily_counts.JOB, debit_credit_pairs.JOB)
ALL = "all"


def choose_jobs(names: Iterable[str], offered: Collection[str] | None = None) -> tuple[Job, ...]:
    """The jobs of these names; a name may be a group's or `all`, no name gives DEFAULT_JOBS. Raises UserError.

    With `offered`, the tables that the source has, jobs that read another are left out of groups and of the default,
    and refused when they are named. The default of a source with rejects includes the job that keeps them.
    """
    chosen: dict[str, Job] = {}
    for name in names:
        group = [job for job in JOBS if name in (job.group, ALL)]
        for job in group or [_offered(find_job(name), offered)]:
            chosen[job.name] = job
    if not chosen:
        chosen = {job.name: job for job in DEFAULT_JOBS}
        if offered is not None and REJECTS_TABLE in offered:
            chosen[dead_letters.JOB.name] = dead_letters.JOB
    fitting = tuple(job for job in chosen.values() if not _missing_inputs(job, offered))
    if not fitting:
        raise UserError(f"none of the jobs can run: the source provides {_listed(offered or ())}")
    return fitting


def left_out(names: Iterable[str], offered: Collection[str]) -> tuple[Job, ...]:
    """The jobs that `choose_jobs` leaves out because of what the source does not offer."""
    return tuple(job for job in choose_jobs(names) if _missing_inputs(job, offered))


def _missing_inputs(job: Job, offered: Collection[str] | None) -> list[str]:
    return [] if offered is None else [name for name in job.inputs if name not in offered]


def _offered(job: Job, offered: Collection[str] | None) -> Job:
    missing = _missing_inputs(job, offered)
    if missing:
        raise UserError(
            f"{job.name} reads {_listed(missing)}, which the source does not provide; it has {_listed(offered or ())}"
        )
    return job


def _listed(tables: Iterable[str]) -> str:
    return ", ".join(sorted(tables))


def find_job(name: str) -> Job:
    """The job of that name. Raises UserError, with the nearest name if one is near."""
    jobs = {job.name: job for job in JOBS}
    if name in jobs:
        return jobs[name]
    every = f"there are {', '.join(jobs)}, the groups {', '.join(GROUPS)}, and all"
    raise UserError(f"no job named {name!r}; {did_you_mean(name, (*jobs, *GROUPS, ALL), every)}")
