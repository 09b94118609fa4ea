"""Finds the highest rate that a job sustains, in rows a second, with every objective met.

A ramp that doubles the load gives a first estimate. Trials at fixed rates, each with its own driver on the embedded
source, then narrow it down. The trials at the two final rates are repeated in random order, and their median decides.
The load is open loop: rows arrive on schedule, whether or not the job is ready. An objective that could not be measured
counts as failed. The result is an interval: the highest rate that held and the lowest that failed.

--quick gives a rough answer in about five minutes on two cores; the default takes about ten. The command prints the
expected time first. Results go to runs/search-JOB: search.json, search.html and a recording of each trial.

Exit code: 0 a rate was found, 1 no rate holds, 2 it could not run.

Examples:
    ledgerops load search daily_counts --quick
    ledgerops load search masked_transactions --slo 'p99 latency < 5s' --slo 'batch < trigger'
    ledgerops load search large_credits --min 20000 --max 80000 --precision 0.05 --repeat 5 --trial 60s
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from ledgerops.cli import loadtest_args
from ledgerops.cli.arg_types import factor, seconds, whole
from ledgerops.common.format import clock
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from ledgerops.load.test.search_run import Perform

FULL = {"precision": 0.1, "repeat": 3, "trial": 30.0}
QUICK = {"precision": 0.2, "repeat": 1, "trial": 24.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("job", metavar="JOB", help="the job (see ledgerops jobs)")
    add("--min", type=factor, metavar="ROWS", help="lowest rate to try, in rows a second")
    add("--max", type=factor, metavar="ROWS", help="highest rate to try; with both given, the ramp is skipped")
    add("--precision", type=factor, metavar="SHARE",
        help="width of the final interval as a share of the rate (default 0.1, quick 0.2)")  # fmt: skip
    add("--repeat", type=whole, metavar="N", help="trials at each end of the interval (default 3, quick 1)")
    add("--trial", type=seconds, metavar="TIME", help="measured part of each trial (default 30s, quick 24s)")
    add("--quick", action="store_true", help="a rough answer in about five minutes")
    add("--seed", type=int, default=1, metavar="N", help="seed of the random order of trials (default 1)")
    loadtest_args.add_arguments(parser)


def run(args: argparse.Namespace, perform: Perform | None = None) -> int:
    """`perform` runs a trial, with Spark where it is not given."""
    from ledgerops.ledger.jobs import choose_jobs
    from ledgerops.ledger.run.source import ROWS
    from ledgerops.load.test import search_report
    from ledgerops.load.test.html import search_page
    from ledgerops.load.test.search import SearchSettings
    from ledgerops.load.test.search_run import SearchRun, TrialOptions, open_folder, publish_folder
    from ledgerops.load.test.trial import perform as with_spark

    jobs = choose_jobs([args.job], ROWS)
    if len(jobs) != 1:
        raise UserError(f"{args.job} is a group of {len(jobs)} jobs; give one job: {jobs[0].name}, ...")
    usual = QUICK if args.quick else FULL
    precision, trial = args.precision or usual["precision"], args.trial or usual["trial"]
    settings = SearchSettings(
        loadtest_args.objectives(args), args.min, args.max, precision, int(args.repeat or usual["repeat"]), args.seed
    )
    loadtest_args.check_length("--trial", trial, args.trigger)
    options = TrialOptions(jobs[0].name, args.trigger, trial, args.cores)
    folder = args.out / f"search-{options.job}"
    unfinished = open_folder(folder)
    with loadtest_args.TrialProgress() as progress:
        perform = perform or with_spark
        searching = SearchRun(options, settings, unfinished, progress.begin, progress.say, progress.end, perform)
        print(
            f"about {searching.trials} trials of {trial:g} s, some {clock(searching.budget_seconds)} min; objectives: "
            f"{', '.join(each.text for each in settings.slos)}",
            file=sys.stderr,
        )
        found = searching.found()
    answer = search_report.SearchSummary(options, settings, found, searching.began, time.time() - searching.began)
    document = search_report.document(answer)
    loadtest_args.write_results(unfinished, "search", document, search_page(answer))
    publish_folder(unfinished, folder)
    if args.json:
        print(json.dumps(document))
    else:
        sys.stdout.write(search_report.text(answer))
        print(f"\nreport {folder}/search.html")
        if found.low is not None:
            print(f"next: ledgerops load test --job {options.job} --rate {0.9 * found.low.rate:.6g}")
    return 0 if found.low is not None else 1
