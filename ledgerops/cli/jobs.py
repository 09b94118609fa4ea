"""Lists the ledger's jobs by group, with what each does: all of them, or only a job or group.

Example:
    ledgerops jobs
    ledgerops jobs stateful
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="JOB|GROUP", nargs="?", help="only this job, or the jobs of this group")


def run(args: argparse.Namespace) -> int:
    from ledgerops.ledger.jobs import ALL, DEFAULT_JOBS, JOBS, find_job
    from ledgerops.ledger.jobs.job import GROUPS

    listed = JOBS if args.name in (None, ALL, *GROUPS) else (find_job(args.name),)
    width = max(len(job.name) for job in JOBS)
    for group in GROUPS if args.name not in GROUPS else (args.name,):
        jobs = [job for job in listed if job.group == group]
        if jobs:
            print(group)
        for job in jobs:
            print(f"  {job.name:{width}} {'*' if job in DEFAULT_JOBS else ' '} {job.summary}")
    print("\n* runs by default; ledgerops run GROUP runs a group, ledgerops run all runs every job")
    return 0
