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

import argparse
import importlib
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from load.bench.lines import KEPT, NO, UNKNOWN, YES, Measured, machine, markdown, read, say, table


class Part(NamedTuple):
    """One section of a page: `make` is module:function, which yields lines.

    What `demo` measures is the demonstration: its jobs, sources and load generator.
    """

    name: str
    make: str
    title: str
    text: str
    demo: bool = False


PARTS = (
    Part(
        "overhead", "overhead:windowed", "Overhead on a windowed job",
        "All rows are available at the start and are written to Parquet. Each round has all kinds of run, "
        "each as often in each place and after each other one. There are at least five rounds, then more until the CPU "
        "time of equal runs differs by less than 1 %, "
        "for at most eight minutes. A ratio is computed within each round; the figure is the median over the rounds. "
        "Besides the CPU time of all processes, that of the observer's threads alone is measured. It differs far less "
        "between equal runs, but leaves out what the garbage collector and the JIT do for the observer. "
        "`ledgerops.instrument` adds an aggregation over every row and costs only where you use it.",
    ),
    Part(
        "jobs", "overhead:jobs", "Overhead on other kinds of job",
        "A filter (`large_credits`), deduplication (`dedup_transactions`), a join of two streams "
        "(`debit_credit_pairs`) and `transformWithState` in Python (`enriched_transactions`). Each has five rounds or "
        "more within four minutes, with ten batches and about ten seconds of rows a run. The observer's part is larger "
        "at a run's start, when it reads plan and machine, than in a query that runs for hours.",
    ),
    Part(
        "tables", "tables:tables", "Overhead on a query between two Delta tables",
        "Ten versions of 10,000 rows, one a batch, copied to another table: the collector follows the logs of both. "
        "Five rounds with each kind of run.",
    ),
    Part(
        "engine", "engine:engine", "The ledger's jobs against the engine itself",
        "Our job, the same in a few lines of PySpark, and Flink SQL 2.2, in turns. All rows are available at the start "
        "and read in three batches; nothing is written. From Kafka these are 6,000,000, so that a batch lasts about as "
        "long as the default trigger interval: [what a batch costs without rows]"
        "(decisions/043-what-a-batch-and-a-pair-cost.md) would be most of a short run. `debit_credit_pairs`, whose "
        "pairs grow with the square of the rows, and the embedded source have 300,000. All three keep their state "
        "where our job does ([decision 32](decisions/032-a-state-store-for-each-job.md)): `dedup_transactions` and "
        "`debit_credit_pairs` in the heap, the others in RocksDB, whose memory is bounded. PySpark has the settings "
        "that `ledgerops run` gives a session. On Spark each batch is checkpointed; Flink writes a checkpoint every "
        "two seconds. CPU seconds per million rows are those of the driver, its JVM and the Python workers, or of "
        "Flink's JVM, without the broker.\n\n"
        "Our job does more than the other two. It refuses a record with a missing field, a number in quotes, a third "
        "decimal or a time without a zone, and counts refused records by reason. The PySpark version uses a typed "
        "from_json, which accepts such a record or turns the field into a null. From the embedded source, both read "
        "typed rows, so only the job itself is compared. Flink SQL cannot read that source.\n\n"
        "There are at least four rounds, then more until the noise cannot change the verdict, for at most 240 seconds "
        "a job from Kafka and 60 from the embedded source. Less CPU than Flink SQL means less beyond the noise floor. "
        "Figures still fall from round to round while the JIT "
        "compiles, so they are higher than those of a job that runs for long.",
        demo=True,
    ),
    Part(
        "growth", "growth:growth", "Growth of the observer's cost",
        "CPU milliseconds of the observer's worker thread per event: parse, record, all rules, copy. A scrape makes "
        "the series, here after a batch of each query. The exponent is the slope of log cost over log size: 0 means "
        "that the cost does not grow, 1 that it grows in proportion. Unless a line says otherwise, there is one query "
        "with 5 partitions and 200 batches of history.",
    ),
    Part(
        "many", "many:many", "Many queries with slow triggers",
        "Simulated time: queries with a batch every ten seconds, the tasks of each batch, and answers of the broker "
        "every two seconds; every 15 seconds a scrape. A query is judged when it reports something, and after a time "
        "without a report: five seconds, ten with 500 queries. What the broker answers is read at the next judgement.",
    ),
    Part(
        "core", "core:core", "Scrape, memory, replay and start",
        "The observer without Spark, on complete synthetic records.",
    ),
    Part(
        "source", "source:source", "The embedded source", "Through a windowed count, saturated, on two cores.",
        demo=True,
    ),
    Part(
        "producer", "producer:producer", "The load generator compared with kafka-producer-perf-test",
        "A real broker on the same two cores. The tool repeats lines of a file, without keys; the generator creates "
        "every record and its key while it sends. Above 1 the generator is faster, or needs more CPU. For as much CPU "
        "it sends fewer a second, because one Python thread does it all: of 2.7 µs a record 0.3 make the row and 0.6 "
        "its JSON and key, the others are the client's call and the callback of the delivery. More of them at once: "
        "`ledgerops load --workers`.",
        demo=True,
    ),
    Part(
        "outage", "outage:outage", "A zone's outage",
        "Alerts as Prometheus sends them, a real Alertmanager with the generated configuration (it waits 15 s for the "
        "rest of a group), the real `ledgerops notify` with one sender, and a service that takes 0.1 s for each page. "
        "No driver answers. Seconds count from the arrival of the first alert, `LedgerTargetDown`; after a minute "
        "`LedgerDriverLost` follows.",
    ),
    Part(
        "fleet", "fleet:fleet", "Many drivers on one Prometheus",
        "A real Prometheus with the shipped rules. One process serves all drivers: the text is made by the exporter's "
        "own code from synthetic records, anew every 15 s, and drivers differ in the label `app` only. It needs 8 GB "
        "of memory and ten minutes. Figures of the start end when each driver was scraped four times; the "
        "others begin there. Seconds of rules are elapsed time. Windows of hours and days are not filled within these "
        "minutes; their cost with a month of history is in [decision "
        "35](decisions/035-long-windows-are-made-of-steps.md).",
    ),
    Part(
        "profile", "profile:profile", "Where the observer's time goes",
        "The two most expensive paths: an event and a scrape. The last line of the first table shows where the time of "
        "a batch of the job itself goes.",
    ),
)  # fmt: skip

SOAK = Part(
    "soak", "", "Soak",
    "One job of the ledger runs all the time. Every three seconds one of eight further queries is started, stopped, "
    "made to fail or restarted, and /metrics is scraped every second. The first quarter is warm-up and does not "
    "count. A figure passes if its growth (Theil-Sen slope) is within the limit or within noise; series are taken as "
    "if always as many queries ran.\n\n![What the soak measured, over time](soak.svg)",
)  # fmt: skip

HOW = """Measured by `make bench` on a shared machine, so compare ratios and not rates. Each section says when and with
which version it was measured; `python -m load.bench --only NAME --write docs/performance.md` measures it again. The
noise floor compares two groups of identical runs in the same interleaved series (±: half the 90 % interval of their
median). A budget that is missed by less than that counts as neither held nor broken ("{unknown}").

"""
PAGE = """# Performance

{lead}

{answer}
"""
DEMO = "ledger-performance.md"  # beside the page
OF_DEMO = f"What the jobs, sources and load generator of the demonstration reach is on [a page of its own]({DEMO})."
DEMO_PAGE = """# Performance of the demonstration

What the jobs, sources and load generator of the demonstration reach, beside PySpark, Flink SQL and Kafka's own tool.
None of them is needed to observe a query; what that costs is on [Performance](performance.md).

"""
OBSERVER_THREADS = "CPU seconds of the observer's threads"
# question -> part and how a line of it begins: what answers it on top of the page
ANSWERS = (
    ("What it costs", (("overhead", "callback in the listener's thread"), ("overhead", "Python driver's memory"))),
    (
        "How it grows",
        (
            ("growth", "an event with 1, 10, 50, 100 queries: mean"),
            ("growth", "50 queries at a batch a second"),
            ("core", "memory of the observer, 50 queries"),
        ),
    ),
    (
        "What it was tested to",
        (
            ("many", "500 queries at a batch every 10 s"),
            ("core", "scrape, 50 queries"),
            ("fleet", "500 drivers of 20 queries"),
            ("soak", "changes and scrapes"),
        ),
    ),
)


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
        write_pages(args.write or args.page, args.kept)
    print(verdict(found))
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
        return 2
    return 1 if any(line.holds == NO for measured in found for line in measured.lines) else 0


def write_pages(file: Path, kept: Path) -> None:
    """Writes the page of everything that was kept, and beside it that of the demonstration."""
    file.write_text(page(kept), "utf-8")
    file.with_name(DEMO).write_text(demo_page(kept), "utf-8")


def page(kept: Path) -> str:
    """The page of what it costs to observe, with an answer on top."""
    found = _read(kept, demo=False)
    head = PAGE.format(lead=_wrapped(_lead(found) + OF_DEMO), answer=answer(found))
    return head + HOW.format(unknown=UNKNOWN) + "\n".join(_sections(found))


def demo_page(kept: Path) -> str:
    """The page of what the demonstration reaches."""
    return DEMO_PAGE + HOW.format(unknown=UNKNOWN) + "\n".join(_sections(_read(kept, demo=True)))


def answer(found: Mapping[Part, Measured]) -> str:
    """Three questions, each with lines of the sections below, word by word; without what was never measured."""
    rows: list[Sequence[str]] = []
    for question, wanted in ANSWERS:
        answers = [*([] if rows else _observer_share(found)), *_told(found, wanted)]
        rows += [
            ("" if n else question, what, figure, _section(part)) for n, (what, figure, part) in enumerate(answers)
        ]
    return markdown(["question", "what", "measured", "section"], rows) if rows else ""


def _lead(found: Mapping[Part, Measured]) -> str:
    """What it costs, in a sentence of the same figures; empty while one of them was never measured."""
    costs = [figure for _, figure, _ in (*_observer_share(found), *_told(found, ANSWERS[0][1]))]
    if len(costs) != 1 + len(ANSWERS[0][1]):
        return ""
    cpu, callback, memory = costs
    return (
        f"Observing queries takes {cpu} CPU, {callback} in the listener for each event, "
        f"and {memory.lstrip('+')} in the Python driver. "
    )


def _told(found: Mapping[Part, Measured], wanted: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, Part]]:
    """The line of a part that begins so, its figure, and the part, as far as they were measured."""
    by_name = {part.name: (part, measured.lines) for part, measured in found.items()}
    for name, begins in wanted:
        part, lines = by_name.get(name, (SOAK, []))
        yield from [(line.what, line.figure, part) for line in lines if line.what.startswith(begins)][:1]


def _section(part: Part) -> str:
    """A link to it on the same page."""
    anchor = re.sub(r"[^a-z0-9 -]", "", part.title.lower()).replace(" ", "-")
    return f"[{part.title}](#{anchor})"


def _observer_share(found: Mapping[Part, Measured]) -> list[tuple[str, str, Part]]:
    """The least and the most that the observer's threads take, over all jobs that were measured."""
    measured = [(part, line) for part, each in found.items() for line in each.lines if OBSERVER_THREADS in line.what]
    shares = [float(line.figure.split()[0]) * 100 - 100 for _, line in measured]
    if not shares:
        return []
    figure = f"{min(shares):.2f} to {max(shares):.2f} % of a bare run's"
    return [(f"{OBSERVER_THREADS}, {len(shares)} kinds of job", figure, measured[0][0])]


def verdict(found: Iterable[Measured]) -> str:
    """One line that says how many budgets hold, and which do not."""
    lines = [line for measured in found for line in measured.lines if line.holds]
    held, unknown = (sum(line.holds == verdict for line in lines) for verdict in (YES, UNKNOWN))
    text = f"{held} of {len(lines)} budgets hold" + (f", {unknown} within noise" if unknown else "")
    broken = "; ".join(line.what for line in lines if line.holds == NO)
    return f"{text}. Not held: {broken}" if broken else text


def _read(kept: Path, demo: bool) -> dict[Part, Measured]:
    parts = (part for part in (*PARTS, SOAK) if part.demo == demo)
    return {part: measured for part in parts if (measured := read(kept, part.name)) is not None}


def _sections(found: Mapping[Part, Measured]) -> Iterator[str]:
    yield f"{_wrapped(verdict(found.values()))}.\n"
    for part, measured in found.items():
        command = f"load.bench --only {part.name}" if part.make else f"load.bench.{part.name}"
        took = f"{measured.seconds:.0f} s, " if measured.seconds else ""
        made = f"`python -m {command}`: {took}{measured.at}; {measured.machine}"
        yield f"## {part.title}\n\n{_wrapped(part.text)}\n\n{_wrapped(made)}\n\n{table(measured.lines)}"


def _wrapped(text: str) -> str:
    return "\n".join(fill(each, 120, break_long_words=False, break_on_hyphens=False) for each in text.split("\n"))


def _in_own_process(part: Part, kept: Path) -> bool:
    """So that what one part leaves in memory is not another's, and one that fails costs no other its figures."""
    say(f"{part.name}: {part.title}")
    command = [sys.executable, "-m", "load.bench", "--here", "--only", part.name, "--kept", str(kept)]
    return subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode == 0


def _measure(part: Part) -> Measured:
    module, _, name = part.make.partition(":")
    began = time.monotonic()
    at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    lines = list(getattr(importlib.import_module(f"load.bench.{module}"), name)(say))
    return Measured(part.name, at, round(time.monotonic() - began, 1), machine(), lines)


if __name__ == "__main__":
    sys.exit(main())
