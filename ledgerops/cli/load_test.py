"""Runs jobs under a load, and passes or fails them by their objectives.

The load is a plan of the embedded source (by name or path), or a rate in rows a second, such as nine tenths of what
`ledgerops load search JOB` found. Rows arrive on schedule, whether or not the jobs are ready, and their latency counts
from the scheduled time. A warm-up is not measured. An objective that could not be measured counts as failed.

An objective is a measure, a comparison and a value. Measures: lag, lag slope, batch, p95 batch, max batch, state, state
rows, state growth, processed, and p50, p90, p95, p99, p99.9 or max of latency, waiting or working (the two parts of a
row's latency: before its batch began, and within it).

On failure the summary names the cause that `ledgerops diagnose` finds in the recording of the run. The results go to a
new folder: test.html (a single file with plots), test.json, test.csv (one line per batch), and the recording.

With --manifest the command runs no job. It judges jobs that read from Kafka (`ledgerops run --source kafka`) while
`ledgerops load` sent a plan, from the manifest of the load and the recording of the jobs. The jobs must have been
running when the load started, and have read what the topic held before.

Exit code: 0 every objective was met, 1 at least one was not, 2 it could not run.

Examples:
    ledgerops load test --job daily_counts --rate 20000 --slo 'p99 latency < 5s' --slo 'lag < 10s'
    ledgerops load test burst --job daily_counts --job large_credits --duration 2m
    ledgerops load test --manifest runs/manifest.json --recording runs/kafka/recording --slo 'lag < 10s'
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.cli import loadtest_args
from ledgerops.cli.arg_types import factor, seconds
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledgerops.ledger.plan.plan import LoadPlan
    from ledgerops.load.test.search_run import Perform
    from ledgerops.load.test.slo import Slo
    from ledgerops.load.test.trial import Trial

DURATION_SECONDS = 60.0
WARM_UP_SECONDS = 20.0  # of a plan: compiling, and the backlog of the first batches
LOCAL_OPTIONS = ("rate", "rate_scale", "duration", "trigger", "cores")  # of a run that the command makes itself


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("plan", nargs="?", metavar="PLAN", help="load plan, by name or path (see ledgerops plans)")
    add("--job", action="append", metavar="JOB", help="job or group; repeatable (default: those of ledgerops run)")
    add("--rate", type=factor, metavar="ROWS", help="a fixed rate in rows a second, instead of a plan")
    add("--manifest", type=Path, metavar="FILE",
        help="run no job; judge jobs that read what ledgerops load sent to Kafka")  # fmt: skip
    add("--recording", type=Path, metavar="PLACE", help="recording of those jobs, for --manifest")
    add("--rate-scale", type=factor, metavar="FACTOR", help="multiply the plan's rates by this, not by its scale")
    add("--duration", type=seconds, metavar="TIME",
        help=f"length of the measured part (default {DURATION_SECONDS:.0f}s)")  # fmt: skip
    add("--warm-up", type=seconds, metavar="TIME",
        help=f"length of the warm-up, which is not measured (default {WARM_UP_SECONDS:.0f}s for a plan)")  # fmt: skip
    loadtest_args.add_arguments(parser)
    parser.set_defaults(trigger=None, cores=None)  # with --manifest neither is usual, and given ones are refused


def run(args: argparse.Namespace, perform: Perform | None = None) -> int:
    """`perform` runs a trial, with Spark where it is not given."""
    from ledgerops.ledger.jobs import choose_jobs
    from ledgerops.ledger.run.source import ROWS
    from ledgerops.load.test.driver import TrialRequest
    from ledgerops.load.test.search_run import tidy
    from ledgerops.load.test.trial import perform as with_spark

    slos = loadtest_args.objectives(args)
    if args.manifest is not None:
        trial = _sent_load(args)
        return _report(args, trial, f"plan {trial.wanted.plan.name}, sent to Kafka", slos)
    if args.recording is not None:
        raise UserError("--recording needs --manifest")
    names = tuple(job.name for job in choose_jobs(args.job or (), ROWS))
    duration, trigger = args.duration or DURATION_SECONDS, args.trigger or loadtest_args.TRIGGER_SECONDS
    plan, title, warm_up = _load(args, trigger)
    loadtest_args.check_length("--duration", duration, trigger)
    wanted = TrialRequest(names, plan, warm_up, duration, trigger, args.cores or loadtest_args.CORES)
    folder = _folder(args, names)
    with loadtest_args.TrialProgress() as progress:
        progress.begin(1, 1, f"{', '.join(names)} at {title}")
        trial = (perform or with_spark)(wanted, folder, progress.say)
    if trial.origin is None:
        raise UserError(f"cannot run {', '.join(names)}: {next(iter(trial.errors.values()), 'it did not start')}")
    tidy(trial)
    return _report(args, trial, title, slos)


def _report(args: argparse.Namespace, trial: Trial, title: str, slos: Sequence[Slo]) -> int:
    """Judges the trial, writes the report and prints the summary. Returns the exit code."""
    from ledgerops.load.test import result
    from ledgerops.load.test.html import page

    outcome = result.examine_trial(trial, title, slos)
    folder = trial.folder
    document = result.document(outcome)
    loadtest_args.write_results(folder, "test", document, page(outcome), [result.COLUMNS, *result.rows(outcome)])
    if args.json:
        print(json.dumps(document))
    else:
        sys.stdout.write(result.text(outcome))
        print(f"\nreport {folder}/test.html")
    return 0 if outcome.passed else 1


def _folder(args: argparse.Namespace, names: Sequence[str]) -> Path:
    out: Path = args.out
    return out / f"test-{names[0] if len(names) == 1 else 'jobs'}-{time.strftime('%Y%m%d-%H%M%S')}"


def _sent_load(args: argparse.Namespace) -> Trial:
    """The trial of jobs that read a load from Kafka. Raises UserError."""
    from ledgerops.load.test.external_load import read_sent_load, trial_of
    from ledgerops.load.test.trial import make_folder

    if args.recording is None:
        raise UserError("--manifest needs --recording PLACE, the recording of the jobs that read the load")
    given = ["a PLAN"] if args.plan is not None else []
    given += [f"--{name.replace('_', '-')}" for name in LOCAL_OPTIONS if getattr(args, name) is not None]
    if given:
        raise UserError(f"--manifest judges what was sent: {', '.join(given)} cannot be combined with it")
    names = args.job or []
    sent = read_sent_load(args.manifest)
    folder = _folder(args, names)
    trial = trial_of(sent, args.recording, folder, names, args.warm_up or WARM_UP_SECONDS)
    make_folder(folder)
    return trial


def _load(args: argparse.Namespace, trigger: float) -> tuple[LoadPlan, str, float]:
    """The plan, what it is called, and its warm-up in seconds. Raises UserError."""
    from ledgerops.ledger.plan.plan import load_plan
    from ledgerops.load.test import plans

    if (args.plan is None) == (args.rate is None):
        raise UserError("give exactly one load: a PLAN, or --rate ROWS")
    if args.rate_scale is not None and args.plan is None:
        raise UserError("--rate-scale needs a PLAN")
    if args.plan is not None:
        plan = load_plan(args.plan, args.rate_scale)
        scale = f" x {args.rate_scale:g}" if args.rate_scale else ""
        return plan, f"plan {plan.name}{scale}", args.warm_up or WARM_UP_SECONDS
    least = plans.warm_up_seconds(trigger)
    if args.warm_up is not None and args.warm_up < least:
        raise UserError(
            f"--warm-up {args.warm_up:g}s: too short; a fixed rate needs {least:g}s at this trigger interval"
        )
    return plans.at_rate(args.rate, trigger), f"{args.rate:,.0f} rows/s", args.warm_up or least
