"""Lists the ledger's jobs by group, with what each does.

Example:
    ledgerops jobs
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(args: argparse.Namespace) -> int:
    from ledgerops.ledger.jobs import DEFAULT_JOBS, JOBS
    from ledgerops.ledger.jobs.job import GROUPS

    width = max(len(job.name) for job in JOBS)
    for group in GROUPS:
        jobs = [job for job in JOBS if job.group == group]
        if jobs:
            print(group)
        for job in jobs:
            print(f"  {job.name:{width}} {'*' if job in DEFAULT_JOBS else ' '} {job.summary}")
    print("\n* runs by default; ledgerops run GROUP runs a group, ledgerops run all runs every job")
    return 0
