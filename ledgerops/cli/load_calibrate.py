"""Measures how many records a second the load generator can send on time on this machine.

Doubles the rate until a rate fails, then narrows down the limit, in at most 40 seconds. It sends to a mock broker
inside the Kafka client and so measures the generator alone. A rate holds if 99 % of the records were acknowledged and
p99 lateness is within --late-budget, as for `ledgerops load`. Use at most 80 % of the result in a load test.

Exit code: 0 a rate holds, 1 none does, 2 it could not run.

Examples:
    ledgerops load calibrate
    ledgerops load calibrate --json
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ledgerops.cli.arg_types import seconds
from ledgerops.cli.load import LATE_BUDGET
from ledgerops.common.shutdown import ended_in_order

if TYPE_CHECKING:
    from ledgerops.load.generator.calibration import Step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--late-budget", type=seconds, metavar="TIME", default=LATE_BUDGET, help="maximum p99 lateness (default 50ms)")
    add("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from ledgerops.load.generator.calibration import attempts, ceiling, search

    steps = []
    with ended_in_order() as stop, Console(stderr=True).status("calibrating") as status:  # of a terminal only
        for step in search(attempts(stop.wait, args.late_budget), lambda: stop.asked):
            steps.append(step)
            holds = "holds" if step.holds else "does not hold"
            status.update(f"calibrating: {step.asked:,.0f} records a second {holds}")
    best = ceiling(steps)
    if args.json:
        print(json.dumps(_document(args, steps, best), indent=1))
    else:
        _tell(steps, best)
    return 0 if best is not None else 1


def _document(args: argparse.Namespace, steps: list[Step], best: float | None) -> dict[str, object]:
    from ledgerops.load.generator.calibration import SAFE_SHARE

    return {
        "version": 1,
        "target": "mock",
        "late_budget": args.late_budget,
        "steps": [step.document() for step in steps],
        "holds": best,
        "ask_at_most": None if best is None else SAFE_SHARE * best,
    }


def _tell(steps: list[Step], best: float | None) -> None:
    from ledgerops.load.generator.calibration import SAFE_SHARE
    from ledgerops.load.generator.validity import spent

    print("one sender to a mock broker, in records a second")
    print(f"{'asked':>10} {'sent':>10} {'late p50':>9} {'late p99':>9} {'cores':>6}  holds")
    for step in steps:
        verdict = "yes" if step.holds else f"no: {(step.why or '').split(':')[0]}"
        print(
            f"{step.asked:>10,.0f} {step.sent:>10,.0f} {spent(step.late_p50):>9} {spent(step.late_p99):>9} "
            f"{step.cores:>6.2f}  {verdict}"
        )
    if best is None:
        print("no rate holds: this machine is too busy or too small for a valid load test")
    else:
        print(f"highest rate that holds: {best:,.0f}; use at most {SAFE_SHARE * best:,.0f} in a load test")
