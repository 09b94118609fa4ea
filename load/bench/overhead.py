"""What being watched costs a saturated job: throughput, batch time, CPU and memory, attached against bare.

Runs of one job are interleaved within rounds, in one session and in balanced orders; every figure is compared within
its round and has the noise floor of bare against bare from the same rounds. Attached means every collector, a
recording and a scrape each 5 s.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from load.bench.lines import NO, UNKNOWN, YES, Compared, Line, compare, limit
from load.bench.runs import AGAIN, ATTACHED, BARE, INSTRUMENTED, Run, Runs, cpu_per_million, embedded, rates
from load.bench.session import session
from load.bench.usage import resident

Say = Callable[[str], None]

WINDOWED = "daily_counts"
ROWS, ROUNDS = 1_500_000, 5  # the design sets a budget as a median of five rounds or more
MAX_SECONDS = 480.0  # of its rounds: those after the fifth end with this
# Jobs of other kinds: stateless, deduplicating, joining two streams, and transformWithState in Python.
KINDS = {
    "stateless": "large_credits",
    "deduplicating": "dedup_transactions",
    "joining": "debit_credit_pairs",
    "transformWithState": "enriched_transactions",
}
MAX_JOB_SECONDS = 240.0  # of the rounds of one of them
OTHER_BATCHES = 10  # of a run
RUN_SECONDS = 10.0  # that the rows of a run take, without what a batch costs in any case; from two runs of the warm-up
WARM_ROWS = 150_000
MIN_ROWS, MAX_ROWS = 50_000, 5_000_000
# Judged by CPU seconds, which other programs do not change: where the CPU is the limit, 2 % more of it is 2 % less
# throughput. Equal runs differ by more than that, so the threads in which the observer works are measured as well.
MAX_CPU_RATIO = 1.02
NOISE_FLOOR = 0.01  # of CPU seconds, below which rounds end


def windowed(say: Say, rows: int = ROWS, rounds: int = ROUNDS) -> Iterator[Line]:
    """The windowed job at length, with `instrument` and the time of the callback."""
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name))
        runs = Runs(spark, Path(name), WINDOWED, embedded(spark, ("transactions",)))
        before = resident()
        for kind in (ATTACHED, INSTRUMENTED):  # warms the JVM, the Python workers and our own code
            runs.run(kind, rows)
        kinds = BARE, AGAIN, ATTACHED, INSTRUMENTED
        seen = runs.rounds(kinds, rows, rounds, say, _is_quiet, MAX_SECONDS)
        grown = resident() - before
        spark.stop()
    yield from compared(WINDOWED, seen)
    found = compare(*(_cpu_seconds(seen[kind]) for kind in (BARE, AGAIN, INSTRUMENTED)))
    what = "attached and instrumented (latency histogram, hot keys): CPU seconds"
    yield Line(what, f"{found.ratio:.3f}", found.floor)
    callback = statistics.median(runs.callbacks)
    yield limit("callback in the listener's thread, median", callback, f"{callback:.2f} ms", 1.5, "<= 1.5 ms")
    count = sum(map(len, seen.values()))
    yield Line(f"Python driver's memory after {count} runs, with what was imported", f"+{grown:.0f} MiB")
    yield Line("where a bare batch's time goes", _phases(seen[BARE]))


def jobs(
    say: Say, names: Sequence[str] = tuple(KINDS.values()), seconds: float = RUN_SECONDS, rounds: int = ROUNDS
) -> Iterator[Line]:
    """One job of each other kind, in a session of its own each."""
    from ledgerops.ledger.jobs import find_job

    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            spark = session(Path(folder))
            yield from _job(spark, Path(folder), name, find_job(name).inputs, say, seconds, rounds)
            spark.stop()


def _job(
    spark: Any, folder: Path, name: str, inputs: Sequence[str], say: Say, seconds: float, rounds: int
) -> Iterator[Line]:
    runs = Runs(spark, folder, name, embedded(spark, inputs), batches=OTHER_BATCHES)
    runs.run(ATTACHED, MIN_ROWS)
    few, many = runs.run(ATTACHED, MIN_ROWS), runs.run(BARE, WARM_ROWS)
    rows = rows_for((many.rows - few.rows) / max(0.01, many.seconds - few.seconds), seconds)
    say(f"{name}: {rows:,} rows a run")
    yield from compared(name, runs.rounds((BARE, AGAIN, ATTACHED), rows, rounds, say, _is_quiet, MAX_JOB_SECONDS))


def rows_for(rate: float, seconds: float) -> int:
    """Rows for a run of about so many seconds, round."""
    return int(min(MAX_ROWS, max(MIN_ROWS, round(rate * seconds, -4))))


def _cpu_seconds(runs: Sequence[Run]) -> list[float]:
    return [run.cpu.total for run in runs]


def _is_quiet(seen: Mapping[str, list[Run]]) -> bool:
    """Whether equal runs differ by less than NOISE_FLOOR."""
    bare, again = _cpu_seconds(seen[BARE]), _cpu_seconds(seen[AGAIN])
    return compare(bare, again, bare).uncertainty < NOISE_FLOOR


def compared(job: str, seen: dict[str, list[Run]]) -> Iterator[Line]:
    """The figures of a job's runs: each kind of cost, attached against bare."""
    bare, again, attached = seen[BARE], seen[AGAIN], seen[ATTACHED]
    speed = compare(rates(bare), rates(again), rates(attached))
    rate = statistics.median(rates([*bare, *again]))
    yield Line(f"`{job}`, attached: throughput", f"{speed.ratio:.3f} of {rate:,.0f} rows/s", speed.floor)
    batch = compare(*([_p99([run]) for run in runs] for runs in (bare, again, attached)))
    count = sum(len(run.batches) for run in attached)
    what = f"`{job}`, attached: p99 of {count} batches"
    yield Line(what, f"{batch.ratio:.3f} of {_p99([*bare, *again]):.2f} s", batch.floor)
    used = compare(*map(_cpu_seconds, (bare, again, attached)))
    decided = used.uncertainty < max(NOISE_FLOOR, abs(used.ratio - MAX_CPU_RATIO))
    yield Line(
        f"`{job}`, attached: CPU seconds per million rows, {len(attached)} rounds",
        _cpu(used, bare, again, attached),
        used.floor,
        f"<= {MAX_CPU_RATIO}",
        (YES if used.ratio <= MAX_CPU_RATIO else NO) if decided else UNKNOWN,
    )
    own = compare(*_with_own(bare, again, attached))
    yield Line(
        f"`{job}`, attached: CPU seconds of the observer's threads (driver, listener bus, py4j, REST)",
        f"{own.ratio:.4f} of a bare run's",
        f"{own.noise:.4f} ± {own.spread:.4f}",
        f"<= {MAX_CPU_RATIO}",
        own.at_most(MAX_CPU_RATIO),
    )
    live = [statistics.median(run.heap for run in runs) for runs in (bare, again, attached)]
    yield Line(
        f"`{job}`, attached: live objects in the driver's JVM",
        f"{live[2] - (live[0] + live[1]) / 2:+.1f} of {live[0]:.0f} MiB",
        f"{live[1] - live[0]:+.1f} MiB",
    )


def _cpu(used: Compared, bare: Sequence[Run], again: Sequence[Run], attached: Sequence[Run]) -> str:
    before, after = cpu_per_million([*bare, *again]), cpu_per_million(attached)
    parts = ", ".join(
        f"{name} {one:.2f} to {other:.2f}"
        for name, one, other in zip(("driver", "JVM", "Python workers"), before, after, strict=True)
    )
    return f"{used.ratio:.3f} ({parts})"


def _with_own(*kinds: Sequence[Run]) -> Iterator[list[float]]:
    """CPU of a run in which all but the observer's threads use as much as in the median bare run."""
    bare = kinds[0]
    rest = statistics.median(run.cpu.total - run.serving for run in bare)
    for runs in kinds:
        yield [rest + run.serving for run in runs]


def _p99(runs: Sequence[Run]) -> float:
    return float(np.percentile([seconds for run in runs for seconds in run.batches], 99))


def _phases(runs: Sequence[Run]) -> str:
    """Shares of the trigger's time, the largest first."""
    spent: dict[str, float] = {}
    for run in runs:
        for phase, seconds in run.phases.items():
            spent[phase] = spent.get(phase, 0.0) + seconds
    whole = spent.pop("triggerExecution")
    ordered = sorted(spent.items(), key=lambda item: -item[1])
    return ", ".join(f"{phase} {seconds / whole:.1%}" for phase, seconds in ordered if seconds >= 0.002 * whole)
