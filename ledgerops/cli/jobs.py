"""Lists the ledger's jobs, with what each does.

Example:
    ledgerops jobs
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(args: argparse.Namespace) -> int:
    from ledgerops.jobs import JOBS

    width = max(len(job.name) for job in JOBS)
    for job in JOBS:
        print(f"{job.name:{width}}  {job.summary}")
    return 0
