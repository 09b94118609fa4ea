"""Runs several drills, in sequence or in parallel."""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ledgerops.common.format import duration
from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.drills.harness.run import run
from ledgerops.errors import UserError


def perform(
    cases: Sequence[Case],
    out: Path,
    lanes: int,
    stop: Stop,
    after: Callable[[Case, Bundle], str] = lambda case, bundle: "run",
    seed: int = 1,
) -> dict[str, str]:
    """Runs the cases, light ones `lanes` at a time, heavy ones alone; gives the problem of each that could not be run,
    by name. `after`: what to print of one on stderr. On a stop request running ones end as soon as they can, and no
    others start."""
    began, problems, done = time.monotonic(), dict[str, str](), list[Case]()

    def one(case: Case) -> None:
        if stop.asked:
            problems[case.name] = stop.reason or "stopped"
            return
        try:
            outcome = after(case, run(case, out / case.name, seed, 1 if case.heavy else lanes, stop))
        except (UserError, OSError, KeyError) as error:
            problems[case.name] = str(error) or type(error).__name__
            outcome = f"could not be run: {problems[case.name]}"
        done.append(case)
        progress = f"{len(done)} of {len(cases)} after {duration(time.monotonic() - began)}"
        print(f"{case.name}: {outcome}  ({progress})", file=sys.stderr, flush=True)

    # the longest first, so that no lane is left with one at the end
    light = sorted((case for case in cases if not case.heavy), key=lambda case: -case.seconds)
    with ThreadPoolExecutor(lanes) as pool:
        list(pool.map(one, light))
    for case in cases:
        if case.heavy:
            one(case)
    return problems
