"""What `ledgerops run` prints before its view and after it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ledgerops.common.format import clock, counted, duration, short_path
from ledgerops.config import load

if TYPE_CHECKING:
    from ledgerops.common.shutdown import Stop
    from ledgerops.ledger.run.app import ActiveRun


def announce(running: ActiveRun, took: float, start: str | None) -> None:
    """After the start: addresses, what runs, and what is resumed of an earlier run. `start` is what --start says."""
    setup = running.setup
    names = [job.name for job in setup.jobs]
    what = f"{len(names)} jobs" if len(names) > 4 else ", ".join(names)
    print(f"live page {running.watch.url}/  metrics {running.watch.url}/metrics")
    usual = load().port if setup.port is None else setup.port
    if usual and running.watch.port != usual:
        print(f"port {usual} is in use, so the live page is on port {running.watch.port}")
    print(f"{what} on {setup.source}; started in {took:.0f} s")
    if setup.resumed:
        since = duration(time.time() - setup.note.origin)
        print(f"resuming the run that began {since} ago; --fresh starts over")
        if start is not None:
            print(f"--start {start} applies only to jobs without a checkpoint; the others resume from theirs")
    for name, number in setup.kept_partitions().items():
        print(f"{name} keeps the {number} shuffle partitions of its checkpoint; --cores does not change them")
    rejected = running.rejected_rows()
    if rejected:
        print(
            f"skipped {counted(rejected, 'unreadable row')} of the data files: "
            f"see {short_path(setup.folder.work / 'rejects.jsonl')}"
        )
    print(f"writing to {short_path(setup.folder.path)}; stop with Ctrl-C", flush=True)


def sum_up(
    running: ActiveRun,
    status: dict[str, Any],
    stop: Stop,
    cut: Sequence[str],
    failures: Mapping[str, str],
    took: float,
) -> int:
    """After the end: verdicts, failures and where the files are. Returns the exit code."""
    from ledgerops.cli.live_view import verdict_line
    from ledgerops.common.format import clean

    setup = running.setup
    print(f"\nstopped after {clock(took)}: {stop.reason}")
    for query in status["queries"]:
        print(clean(verdict_line(query)))
    for name, error in failures.items():
        print(f"failed: {name}: {clean(error)}", file=sys.stderr)
    if cut:
        print(f"stopped during a batch, which the next run repeats: {', '.join(cut)}")
    folder = setup.folder
    print(f"\noutput      {setup.sink.describe(short_path(folder.outputs))}")
    print(f"checkpoints {short_path(folder.checkpoints)}/JOB")
    if setup.record:
        print(f"recording   {short_path(folder.recording)}")
    print(f"Spark's log {short_path(folder.log)}")
    follow = f"ledgerops diagnose {short_path(folder.recording)}" if setup.record else "ledgerops run"
    print(f"\nnext: {follow}")
    return 1 if failures else 0
