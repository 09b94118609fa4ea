"""Runs a search: trial after trial in folders of their own, each measured and reported, until the rate is known."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ledgerops.errors import UserError, os_reason
from ledgerops.load.test import plans
from ledgerops.load.test.driver import LEAD_SECONDS, NAME
from ledgerops.load.test.estimate import estimate
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.search import Rate, SearchResult, Settings, planned, search
from ledgerops.load.test.trial import Say, Trial, TrialRequest, perform

SPARK_START_SECONDS = 12.0  # seconds that Spark takes to start and to stop, for the estimate shown beforehand
BULKY = ("output", "checkpoints", "input", "warehouse")  # of a trial's run: nothing that is measured is in them

Perform = Callable[[TrialRequest, Path, Say], Trial]


class Progress(Protocol):
    """What is shown of a search while it runs."""

    def begin(self, trial: int, of: int, what: str) -> None:
        """A trial begins; `of` is how many there will probably be."""

    def say(self, what: str, share: float) -> None:
        """What it does now, and how much of it is over."""

    def end(self, rate: Rate) -> None:
        """A rate was tried once more."""


@dataclass(frozen=True, slots=True)
class Options:
    """Of every trial of a search; seconds."""

    job: str
    trigger: float
    seconds: float
    cores: int


class SearchRun:
    """`folder` gets one folder a trial. Raises UserError when a trial cannot even begin."""

    def __init__(
        self, options: Options, settings: Settings, folder: Path, progress: Progress, perform: Perform = perform
    ) -> None:
        self.options, self.settings, self.folder = options, settings, folder
        self.progress, self.perform = progress, perform
        self.count = 0
        self.began = time.time()
        self.estimates = settings.low is None or settings.high is None

    @property
    def trials(self) -> int:
        """How many there will be when nothing surprises."""
        return planned(self.settings, self.estimates)

    @property
    def budget(self) -> float:
        """Seconds that they will take."""
        warm_up = plans.warm_up(self.options.trigger)
        probe = (
            SPARK_START_SECONDS + LEAD_SECONDS + plans.probing_seconds(self.options.trigger) if self.estimates else 0.0
        )
        return probe + (self.trials - self.estimates) * (
            SPARK_START_SECONDS + LEAD_SECONDS + warm_up + self.options.seconds
        )

    def found(self) -> SearchResult:
        """Estimates, then searches."""
        begin = self._estimate() if self.estimates else None
        return search(self._run, self.settings, begin, self.progress.end)

    def _estimate(self) -> float | None:
        trigger = self.options.trigger
        plan = plans.probing(trigger)
        wanted = TrialRequest(
            (self.options.job,), plan, 0.0, plans.probing_seconds(trigger), trigger, self.options.cores
        )
        measured = self._trial(wanted, "an estimate, by a load that doubles")
        if measured.error is not None:
            raise UserError(f"cannot run {self.options.job}: {measured.error}")
        return estimate(measured.done, trigger)

    def _run(self, rate: float, why: str) -> Measured:
        options = self.options
        warm_up = plans.warm_up(options.trigger)
        plan = plans.at_rate(rate, options.trigger)
        wanted = TrialRequest((options.job,), plan, warm_up, options.seconds, options.trigger, options.cores)
        return self._trial(wanted, f"{rate:,.0f} rows/s, {why}")

    def _trial(self, wanted: TrialRequest, what: str) -> Measured:
        self.count += 1
        self.progress.begin(self.count, max(self.count, self.trials), what)
        folder = self.folder / "trials" / f"{self.count:02}"
        trial = self.perform(wanted, folder, self.progress.say)
        if trial.origin is None and self.count == 1:
            raise UserError(f"cannot run {self.options.job}: {trial.errors.get(self.options.job, 'it did not start')}")
        measured = trial.measured()[self.options.job]
        tidy(trial)
        return measured


def tidy(trial: Trial) -> None:
    """Removes what a trial wrote besides its recording and its logs: some hundred megabytes each."""
    for name in BULKY:
        shutil.rmtree(trial.folder / NAME / name, ignore_errors=True)


def begun(folder: Path) -> Path:
    """A new folder beside the one of an earlier search, whose answer is good until there is another. Raises UserError.

    What a search that did not end left there is removed.
    """
    made = folder.with_name(f"{folder.name}-unfinished")
    with _writing(made):
        if made.exists():
            shutil.rmtree(made)
        made.mkdir(parents=True)
    return made


def ended(made: Path, folder: Path) -> None:
    """Gives a search that has ended its folder; what an earlier one left there is moved aside. Raises UserError."""
    with _writing(folder):
        if folder.exists():
            folder.rename(folder.with_name(f"{folder.name}-before-{time.strftime('%Y%m%d-%H%M%S')}"))
        made.rename(folder)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {os_reason(error)}") from None
