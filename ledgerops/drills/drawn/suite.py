"""Runs the cases of a seed, in lanes, each in a folder of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ledgerops.common.format import duration
from ledgerops.common.shutdown import Stop
from ledgerops.drills.drawn.case import Case
from ledgerops.drills.drawn.run import run
from ledgerops.errors import UserError


def perform(
    cases: Sequence[Case], out: Path, lanes: int, stop: Stop, after: Callable[[Path], str] = lambda folder: "run"
) -> dict[str, str]:
    """Runs the cases and gives the problem of each that could not be run, by name. `after`: what to print of one."""
    began, problems, done = time.monotonic(), dict[str, str](), list[Case]()

    def one(case: Case) -> None:
        if stop.asked:
            problems[case.name] = stop.reason or "stopped"
            return
        folder = out / case.name
        try:
            run(case, folder, stop)
            outcome = after(folder)
        except (UserError, OSError) as error:
            problems[case.name] = outcome = f"could not be run: {error}"
        done.append(case)
        progress = f"{len(done)} of {len(cases)} after {duration(time.monotonic() - began)}"
        print(f"{case.name}: {outcome}  ({progress})", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(lanes) as pool:
        list(pool.map(one, cases))
    return problems
