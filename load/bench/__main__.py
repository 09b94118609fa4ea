"""What observation costs, how that grows, and whether the budgets of the design hold: `make bench`.

Every part runs in a process of its own and keeps its figures in a folder, from which the page is made, so one part can
be measured anew without the others. Where a machine's speed would show, figures are ratios of interleaved runs with
their noise floor.

Exit code: 0 when every budget holds, 1 when one does not, 2 when a part could not be measured.

Examples:
    python -m load.bench --write docs/performance.md
    python -m load.bench --only growth scrape
    python -m load.bench --page docs/performance.md
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from load.bench.lines import NO, UNKNOWN, YES, Measured, machine, read, table

KEPT = Path("load") / "bench" / "figures"  # in the repository, so that one part measured anew leaves the page whole


class Part(NamedTuple):
    """One section of the page: `make` is module:function, which yields lines."""

    name: str
    make: str
    title: str
    text: str


PARTS = (
    Part(
        "overhead", "overhead:windowed", "Overhead on a windowed job, at length",
        "The design's budget. All rows are there at the start and are written to Parquet, by five rounds of each kind "
        "in random order; a ratio is that within a round, its median over the rounds. `ledgerops.instrument` adds an "
        "aggregation over every row and is paid only where it is asked for.",
    ),
    Part(
        "jobs", "overhead:jobs", "Overhead on a job of each other kind",
        "Stateless (`large_credits`), deduplicating (`dedup_transactions`), joining two streams "
        "(`debit_credit_pairs`) and `transformWithState` in Python (`enriched_transactions`): three rounds of runs of "
        "five batches, with rows for about three seconds, so the noise is larger than above.",
    ),
    Part(
        "growth", "growth:growth", "Growth of the observer's cost",
        "The worker is fed event by event: parse, record, all rules, snapshot; milliseconds of its thread on a core. "
        "The exponent is the slope of log cost over log size: 0 is a cost that does not grow, 1 a proportional one. "
        "What is not varied is one query, 5 partitions and 200 remembered batches.",
    ),
    Part(
        "scrape", "servlet:servlet", "A scrape against Spark's own PrometheusServlet",
        "The same queries in the same driver, fetched over HTTP in turn while the queries wait for their trigger.",
    ),
    Part(
        "core", "core:core", "Scrape, memory, replay and start",
        "The observer without Spark, on synthetic but whole records.",
    ),
    Part(
        "source", "source:source", "The embedded source", "Through a windowed count, saturated, on two cores.",
    ),
    Part(
        "producer", "producer:producer", "The load generator against kafka-producer-perf-test",
        "A real broker on the same two cores. The tool sends lines of a file again and again, without keys; the "
        "generator makes every record and its key while it sends. Above 1 the generator is faster, or dearer.",
    ),
    Part(
        "views", "views:views", "The Yahoo streaming benchmark",
        "All rows are there at the start. From Kafka the broker runs on the same two cores and every row is JSON that "
        "is read and checked. CPU is that of driver, JVM and Python workers, without the broker.",
    ),
    Part(
        "profile", "profile:profile", "Where the observer's time goes",
        "The two costliest paths: an event and a scrape. What a batch of the job itself spends its time on is the last "
        "line of the first table.",
    ),
)  # fmt: skip

SOAK = Part(
    "soak", "", "Soak",
    "One job of the ledger runs all the time; beside it, every three seconds, one of eight queries is started, "
    "stopped, made to fail or restarted, and /metrics is scraped each second. The first quarter is not judged. A "
    "figure is flat when its growth over the judged time, by the Theil-Sen slope, is within what is allowed or cannot "
    "be told from none.\n\n![What the soak measured, over time](soak.svg)",
)  # fmt: skip

PAGE = """# Performance

Measured by `make bench`. The machine is shared, so compare ratios, not rates. The noise floor is that of two groups of
equal runs in the same interleaved series, ± half of its range over the rounds: a budget that is missed by less is
neither held nor broken ("{unknown}"). One section is measured anew by
`python -m load.bench --only NAME --write docs/performance.md`.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the parts and writes the page. Returns the exit code: 0, 1 over a budget, 2 if a part failed."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER", help=f"of the figures (default {KEPT})")
    parser.add_argument("--write", type=Path, metavar="FILE", help="measure, then write the page of all kept figures")
    parser.add_argument("--page", type=Path, metavar="FILE", help="measure nothing and write that page")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # a part's own process
    args = parser.parse_args(arguments)
    if args.here:
        _measure(next(part for part in PARTS if part.name == args.only[0])).write(args.kept)
        return 0
    failed = []
    for part in () if args.page else PARTS:
        if part.name in (args.only or names) and not _in_own_process(part, args.kept):
            failed.append(part.name)
    wanted = names if args.page else (args.only or names)
    found = [measured for name in wanted if (measured := read(args.kept, name)) is not None]
    for measured in found:
        print(f"{measured.part}\n\n{table(measured.lines)}")
    if args.write or args.page:
        (args.write or args.page).write_text(page(args.kept), "utf-8")
    print(verdict(found))
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
        return 2
    return 1 if any(line.holds == NO for measured in found for line in measured.lines) else 0


def page(kept: Path) -> str:
    """The page of everything that was kept."""
    return PAGE.format(unknown=UNKNOWN) + "\n".join(_sections(kept))


def verdict(found: Iterable[Measured]) -> str:
    """One line that says how many budgets hold, and which do not."""
    lines = [line for measured in found for line in measured.lines if line.holds]
    held = sum(line.holds == YES for line in lines)
    broken = "; ".join(line.what for line in lines if line.holds == NO)
    unknown = "; ".join(line.what for line in lines if line.holds == UNKNOWN)
    return (
        f"{held} of {len(lines)} budgets hold"
        + (f". Not held: {broken}" if broken else "")
        + (f". Not told from noise: {unknown}" if unknown else "")
    )


def _sections(kept: Path) -> Iterator[str]:
    found = {part.name: measured for part in (*PARTS, SOAK) if (measured := read(kept, part.name)) is not None}
    yield f"{_wrapped(verdict(found.values()))}.\n"
    for part in (*PARTS, SOAK):
        if part.name in found:
            measured = found[part.name]
            command = f"load.bench --only {part.name}" if part.make else f"load.bench.{part.name}"
            took = f"{measured.seconds:.0f} s, " if measured.seconds else ""
            made = f"`python -m {command}`: {took}{measured.at}; {measured.machine}"
            yield f"## {part.title}\n\n{_wrapped(part.text)}\n\n{_wrapped(made)}\n\n{table(measured.lines)}"


def _wrapped(text: str) -> str:
    return "\n".join(fill(each, 120, break_long_words=False, break_on_hyphens=False) for each in text.split("\n"))


def _in_own_process(part: Part, kept: Path) -> bool:
    """So that what one part leaves in memory is not another's, and one that fails costs no other its figures."""
    _say(f"{part.name}: {part.title}")
    command = [sys.executable, "-m", "load.bench", "--here", "--only", part.name, "--kept", str(kept)]
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode == 0


def _measure(part: Part) -> Measured:
    module, _, name = part.make.partition(":")
    began = time.monotonic()
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    lines = list(getattr(importlib.import_module(f"load.bench.{module}"), name)(_say))
    return Measured(part.name, at, round(time.monotonic() - began, 1), machine(), lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
