"""Finds how many records a second this machine's load generator sends on time.

Rates double until one does not hold, then the ceiling is narrowed down: at most 40 seconds. Without a server the broker
is a part of the Kafka client, in the same process, so the figure is that of the generator alone; with
--bootstrap-servers it is that of generator, network and broker together, on a topic of its own that is deleted
afterwards. A rate holds when 99 % of the records were acknowledged and no more than one of a hundred was handed over
later than --late-budget: the same verdict that `ledgerops load` ends with. Ask of a load at most four fifths of it.

Exit code: 0 when a rate holds, 1 when none does, 2 when it could not look.

Examples:
    ledgerops load calibrate
    ledgerops load calibrate --bootstrap-servers localhost:9092 --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.cli.load import LATE_BUDGET, span
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from ledgerops.common.shutdown import Stop
    from ledgerops.load.generator.calibration import Step, Try

PARTITIONS = 5  # of the topic on a real broker, as the ledger's topics have


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="a real broker instead of the mock one")
    parser.add_argument("--kafka-config", type=Path, metavar="FILE", help="properties of the Kafka client (security)")
    parser.add_argument(
        "--late-budget", type=span, metavar="TIME", default=LATE_BUDGET, help="what p99 may be late (default 50ms)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from ledgerops.common.shutdown import Stop
    from ledgerops.load.generator.calibration import ceiling, search

    if args.kafka_config is not None and args.bootstrap_servers is None:
        raise UserError("--kafka-config is for --bootstrap-servers")
    stop, steps = Stop(), []
    with stop.on_signals(), _attempts(args, stop) as attempt, _progress() as show:
        stop.calm()
        for step in search(attempt, lambda: stop.asked):
            steps.append(step)
            show(step)
    if stop.asked:
        raise KeyboardInterrupt
    best = ceiling(steps)
    if args.json:
        print(json.dumps(_document(args, steps, best), indent=1))
    else:
        _tell(args, steps, best)
    return 0 if best is not None else 1


@contextmanager
def _attempts(args: argparse.Namespace, stop: Stop) -> Iterator[Try]:
    from ledgerops.load.generator.calibration import MOCK_PARTITIONS, attempt_on, mock_target, own_topic

    if args.bootstrap_servers is None:
        yield attempt_on(mock_target, MOCK_PARTITIONS, stop.wait, args.late_budget)
        return
    from ledgerops.common.kafka import read_client
    from ledgerops.load.generator.kafka import KafkaTarget

    client = read_client(args.bootstrap_servers, args.kafka_config)
    with own_topic(client, PARTITIONS, lambda text: print(f"ledgerops: {text}", file=sys.stderr)) as topic:
        yield attempt_on(
            lambda: KafkaTarget(client, topic, PARTITIONS, stop.wait, checked=False),
            PARTITIONS,
            stop.wait,
            args.late_budget,
        )


def _document(args: argparse.Namespace, steps: list[Step], best: float | None) -> dict[str, object]:
    from ledgerops.load.generator.calibration import SAFE

    return {
        "version": 1,
        "target": args.bootstrap_servers or "mock",
        "late_budget": args.late_budget,
        "steps": [step.document() for step in steps],
        "holds": best,
        "ask_at_most": None if best is None else SAFE * best,
    }


def _tell(args: argparse.Namespace, steps: list[Step], best: float | None) -> None:
    from ledgerops.load.generator.calibration import SAFE
    from ledgerops.load.generator.validity import spent

    print(f"one sender to {args.bootstrap_servers or 'a broker within the client (mock)'}, records a second")
    print(f"{'asked':>10} {'sent':>10} {'late p50':>9} {'late p99':>9} {'cores':>6}  holds")
    for step in steps:
        told = "yes" if step.holds else f"no: {(step.why or '').split(':')[0]}"
        print(
            f"{step.asked:>10,.0f} {step.sent:>10,.0f} {spent(step.late_p50):>9} {spent(step.late_p99):>9} "
            f"{step.cores:>6.2f}  {told}"
        )
    if best is None:
        print("no rate holds: this machine is too busy, or too small, for a load that can be trusted")
    else:
        print(f"highest that holds: {best:,.0f}; ask of a load at most {SAFE * best:,.0f}")


@contextmanager
def _progress() -> Iterator[Callable[[Step], None]]:
    """Shows on stderr, of a terminal only, which step is done."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("calibrating") as status:

        def show(step: Step) -> None:
            word = "holds" if step.holds else "does not hold"
            status.update(f"calibrating: {step.asked:,.0f} records a second {word}")

        yield show
