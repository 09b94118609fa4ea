"""Predicts what jobs can carry from one run each, then measures it: how far `ledgerops capacity` is off.

Each job runs at a moderate load that swings, watched; from these recordings alone come the predictions. Runs of their
own measure them: the same again (which shows the noise of the machine), twice the load, another trigger interval, and
the sustainable rate. `python -m load.bench.predict --write docs/capacity.md`.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.analysis.capacity.answer import UNBOUNDED, Question, answer
from ledgerops.analysis.capacity.fit import MAX_EXTRAPOLATION, Interval, fit
from ledgerops.analysis.capacity.inputs import read_views
from ledgerops.analysis.capacity.situation import Situation, situation
from ledgerops.drills.scoring.report import today
from ledgerops.drills.scoring.sections import put
from ledgerops.model.records import Progress
from load.bench.lines import machine, markdown, say
from load.bench.runs import start_job

JOBS = ("daily_counts", "masked_transactions")  # a windowed count with state, and a Python UDF over each row
CALIBRATION_ROWS = (50_000, 300_000)  # rows of a small and a large batch, which show what a row costs here
LIGHT_SHARE = 0.3  # of an interval goes into rows: a moderate load, twice of which fits as well
MAX_RATE = 100_000.0  # rows a second
TRIGGER_SECONDS, OTHER_TRIGGER_SECONDS = 2.0, 4.0
LOAD_FACTOR = 2.0
SWING_SHARE = 0.7  # of the rate, either way
PERIOD_SECONDS = 11.0  # of a swing: no multiple of a trigger interval
ROUNDS = 2
COLD_BATCHES = 2  # of a run, which take longer because it has just started
RUN_SECONDS = {"base": 30.0, "load": 12.0, "trigger": 16.0}
# sizes of the batches from which the sustainable rate is interpolated, as multiples of what comes in an interval
CAP_FACTORS = (1.5, 3.0, 6.0)
FULL_BATCHES = 2  # of each cap, besides the first


class Check(NamedTuple):
    """One prediction and what was measured."""

    job: str
    what: str
    unit: str
    predicted: Interval
    measured: float

    @property
    def error(self) -> float:
        """How far the prediction is above the measured value, as a share of it; negative if it is below."""
        return self.predicted.value / self.measured - 1

    @property
    def inside(self) -> bool:
        """Whether the measured value lies in the 90 % interval."""
        return self.predicted.low <= self.measured <= self.predicted.high


class Setting(NamedTuple):
    """Another load or trigger interval than that of the base runs: the question, the run that measures it, and how
    the table calls it."""

    question: Question
    rate: float
    trigger_seconds: float
    run_seconds: float
    words: str


class Measured(NamedTuple):
    """What the runs of one job gave. Batches are those with rows once a run is warm."""

    recorded: Path  # the last base run
    base: Sequence[Sequence[Progress]]  # of each base run
    batches: Sequence[Sequence[Progress]]  # of each setting, in all rounds
    full_seconds: dict[float, list[float]]  # of batches of so many rows that waited for them


class RecordedRuns:
    """Runs of jobs in one session, each with a recording of its own."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.count = 0

    def steady(self, job: str, rate: float, trigger: float, seconds: float) -> Path:
        """The recording of a run at a load that swings about `rate`."""
        low, high = rate * (1 - SWING_SHARE), rate * (1 + SWING_SHARE)
        plan = (
            "seed: 7\nstart: now\nphases:\n"
            f"  - {{shape: sine, low: {low}, high: {high}, period: {PERIOD_SECONDS}s}}\n"
            "keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}\n"
        )
        return self._run(job, plan, time.time(), trigger, seconds)

    def full(self, job: str, rows: int) -> float:
        """Median seconds of a batch of so many rows, when all of them wait for it and batches run back to back."""
        total = rows * (FULL_BATCHES + 1)
        plan = (
            f"seed: 7\nstart: now\nphases:\n  - {{shape: constant, rate: {MAX_RATE}}}\n"
            "keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}\n"
        )
        recorded = self._run(job, plan, time.time() - total / MAX_RATE - 60, None, None, rows, total)
        [view], _, _ = read_views(str(recorded))
        return _middle([batch for batch in view.batches[1:] if batch.rows >= 0.95 * rows])

    def _run(
        self,
        job: str,
        plan: str,
        origin: float,
        trigger: float | None,
        seconds: float | None,
        cap: int | None = None,
        limit: int | None = None,
    ) -> Path:
        import ledgerops
        from ledgerops.ledger.plan.plan import parse_plan
        from ledgerops.ledger.sources.tables import open_source

        self.count += 1
        folder = self.folder / f"{job}-{self.count}"
        folder.mkdir(parents=True)
        frame = open_source(
            self.spark, "transactions", plan=parse_plan(plan), origin=origin, work_dir=folder,
            max_rows_per_trigger=cap, limit=limit,
        )  # fmt: skip
        watch = ledgerops.attach(self.spark, port=0, recording=str(folder / "recording"), tasks_interval=1.0)
        try:
            query = start_job(job, {"transactions": frame}, folder, trigger, available_now=seconds is None)
            if query.awaitTermination(seconds) is False:
                query.stop()
        finally:
            watch.close()
        return folder / "recording"


def _batches(recorded: Path) -> list[Progress]:
    """The batches with rows of a run, without the first two, which take longer because the query has just started."""
    [view], _, _ = read_views(str(recorded))
    return [batch for batch in view.batches[COLD_BATCHES:] if batch.rows > 0]


def _middle(batches: Sequence[Progress]) -> float:
    return statistics.median(batch.duration for batch in batches)


def _at_interval(points: Sequence[tuple[float, float]], seconds: float) -> float:
    """Rows of a batch that takes so long, on the line between the two nearest of (rows, seconds)."""
    ordered = sorted(points)
    pairs = list(pairwise(ordered))
    (n, t), (more, longer) = next((pair for pair in pairs if pair[1][1] >= seconds), pairs[-1])
    return n + (seconds - t) / (longer - t) * (more - n) if longer > t else n


def checks(runs: RecordedRuns, job: str, refused: list[str]) -> Iterator[Check]:
    """Measures a job and compares; why something is not predicted is added to `refused`."""
    rate = _moderate_rate(runs, job)
    say(f"{job}: {rate:,.0f} rows/s")
    settings = _settings(rate)
    measured = _measure(runs, job, rate, settings)
    known = _known(measured.recorded, [batch for each in measured.base for batch in each], rate)
    if known.fit is None:
        refused.append(f"{job}: {known.reason}")
        return
    say(f"{job}: {known.fit.overhead:.2f} s + rows / {1 / known.fit.slope:,.0f}")
    again = answer(_known(measured.recorded, measured.base[0], rate), Question()).batch
    if again is not None:
        same = "batch time of the same again, by the first run alone"
        yield _said(Check(job, same, "s", again, _middle(measured.base[-1])))
    now = answer(known, Question())
    refused += [f"{job}, {now.question.text}: {reason}" for reason in now.unknown_because]
    for setting, batches in zip(settings, measured.batches, strict=True):
        question = setting.question
        answered = answer(known, question)
        refused += [f"{job}, {question.text}: {reason}" for reason in answered.unknown_because]
        if answered.batch is not None and batches:
            yield _said(Check(job, setting.words, "s", answered.batch, _middle(batches)))
        elif not batches:
            refused.append(f"{job}, {question.text}: no batch began in time once the run was warm")
    if now.sustainable is not None:
        points = [(rows, statistics.median(took)) for rows, took in measured.full_seconds.items()]
        found = _at_interval(points, TRIGGER_SECONDS) / TRIGGER_SECONDS
        words = f"sustainable rate at a trigger of {TRIGGER_SECONDS:g} s"
        yield _said(Check(job, words, "rows/s", now.sustainable, found))


def _moderate_rate(runs: RecordedRuns, job: str) -> float:
    """Rows a second that take LIGHT_SHARE of the time, by what a row costs on this machine."""
    small, large = CALIBRATION_ROWS
    runs.full(job, small)  # warms the JVM, the Python workers and our own code
    cost = (runs.full(job, large) - runs.full(job, small)) / (large - small)
    return min(MAX_RATE, max(1000.0, round(LIGHT_SHARE / cost, -3))) if cost > 0 else MAX_RATE


def _settings(rate: float) -> Sequence[Setting]:
    words = f"batch time at {LOAD_FACTOR:g} times the load"
    more = Setting(Question(load=LOAD_FACTOR), LOAD_FACTOR * rate, TRIGGER_SECONDS, RUN_SECONDS["load"], words)
    words = f"batch time at a trigger of {OTHER_TRIGGER_SECONDS:g} s"
    other = Setting(Question(trigger=OTHER_TRIGGER_SECONDS), rate, OTHER_TRIGGER_SECONDS, RUN_SECONDS["trigger"], words)
    return more, other


def _measure(runs: RecordedRuns, job: str, rate: float, settings: Sequence[Setting]) -> Measured:
    """Rounds of all settings, one after the other, so that what else the machine does falls on all of them."""
    base: list[list[Progress]] = []
    batches: list[list[Progress]] = [[] for _ in settings]
    full_seconds: dict[float, list[float]] = {cap * rate * TRIGGER_SECONDS: [] for cap in CAP_FACTORS}
    for _ in range(ROUNDS):
        recorded = runs.steady(job, rate, TRIGGER_SECONDS, RUN_SECONDS["base"])
        base.append(_batches(recorded))
        for setting, found in zip(settings, batches, strict=True):
            found += _batches(runs.steady(job, setting.rate, setting.trigger_seconds, setting.run_seconds))
        for rows, took in full_seconds.items():
            took.append(runs.full(job, int(rows)))
    return Measured(recorded, base, batches, full_seconds)


def _known(recorded: Path, batches: Sequence[Progress], rate: float) -> Situation:
    """What is known from the base runs: their batches together, and the rest as in the last of them."""
    [view], _, _ = read_views(str(recorded))
    line = fit([batch.rows for batch in batches], [batch.duration for batch in batches])
    known = replace(situation(view), arrival=rate)
    return replace(known, fit=None, reason=line) if isinstance(line, str) else replace(known, fit=line)


def backtest(recorded: Path) -> Iterator[tuple[float, Check]]:
    """Of a recorded run whose load rose: the large batches, predicted by the line through those before the first.

    Large are those beyond a third of the largest, for so far the line is trusted. With how many times the largest batch
    of the line each is.
    """
    views, _, _ = read_views(str(recorded))
    for view in views:
        batches = [batch for batch in view.baseline.steady if batch.rows > 0]
        large = max((batch.rows for batch in batches), default=0) / MAX_EXTRAPOLATION
        first = next((place for place, batch in enumerate(batches) if batch.rows > large), 0)
        line = fit([batch.rows for batch in batches[:first]], [batch.duration for batch in batches[:first]])
        if isinstance(line, str):
            say(f"{view.query}: {line}")
            continue
        for batch in batches[first:]:
            rows = batch.rows
            predicted = line.estimate(lambda a, b, rows=rows: a + b * rows)  # type: ignore[misc]
            yield line.reach(rows), Check(view.query, f"a batch of {rows:,} rows", "s", predicted, batch.duration)


def _said(check: Check) -> Check:
    say(f"{check.job}, {check.what}: {check.predicted} {check.unit}, measured {check.measured:.3f}, {check.error:+.0%}")
    return check


def table(found: Sequence[Check]) -> str:
    """The checks as a Markdown table, one row for each."""
    rows = []
    for each in found:
        show = "{:,.0f}" if each.unit == "rows/s" else "{:.2f}"
        value, low, high = (show.format(number) if number < UNBOUNDED else "without end" for number in each.predicted)
        cells = [f"`{each.job}`", each.what, f"{value} {each.unit}", f"{low} to {high}"]
        cells += [f"{show.format(each.measured)} {each.unit}", f"{each.error:+.0%}", "yes" if each.inside else "no"]
        rows.append(cells)
    return markdown(["job", "what", "predicted", "90 % interval", "measured", "error", "inside"], rows)


def main() -> int:
    """Runs the jobs, or backtests a recording, and prints the table. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this page")
    parser.add_argument(
        "--backtest", type=Path, metavar="RECORDING", help="instead of runs: predict the large batches of a recording"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings there")
    args = parser.parse_args()
    if args.backtest:
        tested = list(backtest(args.backtest))
        print("largest of the line x " + ", ".join(f"{reach:.1f}" for reach, _ in tested))
        print(table([check for _, check in tested]))
        return 0
    from load.bench.session import session

    began = time.monotonic()
    found: list[Check] = []
    refused: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        spark = session(folder)
        runs = RecordedRuns(spark, folder)
        for job in JOBS:
            found += checks(runs, job, refused)
        spark.stop()
    print(table(found))
    for reason in refused:
        print(reason)
    if args.write:
        put(args.write, "measured", published(found, refused, time.monotonic() - began))
    return 0


def published(found: Sequence[Check], refused: Sequence[str], took: float) -> str:
    """The part of docs/capacity.md that is made."""
    lines = [
        f"Measured on {today()} by `python -m load.bench.predict --write docs/capacity.md`, in "
        f"{took / 60:.0f} minutes, on {machine()}, on two of its cores.\n\n",
        table(found),
        *(["\nNot predicted, in its own words:\n\n", *(f"- {reason}\n" for reason in refused)] if refused else []),
    ]
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
