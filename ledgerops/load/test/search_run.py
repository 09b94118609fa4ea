"""Runs a search: trial after trial in folders of their own, each measured and reported, until the rate is known."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ledgerops.errors import UserError, writing_to
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.load.test import plans
from ledgerops.load.test.driver import LEAD_SECONDS, NAME, TrialRequest
from ledgerops.load.test.estimate import estimate
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.search import SearchResult, SearchSettings, Tell, planned_trials, search
from ledgerops.load.test.trial import Say, Trial

SPARK_START_SECONDS = 12.0  # that Spark takes to start and to stop, for the estimate shown beforehand
BULKY = ("output", "checkpoints", "input", "warehouse")  # of a trial's run: nothing that is measured is in them

Perform = Callable[[TrialRequest, Path, Say], Trial]
Begin = Callable[[int, int, str], None]  # a trial begins: its number, how many there will probably be, what it is


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """What all trials of a search have in common. `seconds` is the length of the measured part."""

    job: str
    trigger: float  # seconds between two batches
    seconds: float
    cores: int

    def request(self, plan: LoadPlan, warm_up: float, seconds: float) -> TrialRequest:
        """The request of one trial."""
        return TrialRequest((self.job,), plan, warm_up, seconds, self.trigger, self.cores)


class SearchRun:
    """A search with a folder in `folder` for each trial; `begin`, `say` and `tell` show how far it is."""

    def __init__(
        self,
        options: TrialOptions,
        settings: SearchSettings,
        folder: Path,
        begin: Begin,
        say: Say,
        tell: Tell,
        perform: Perform,
    ) -> None:
        self.options, self.settings, self.folder = options, settings, folder
        self.begin, self.say, self.tell, self.perform = begin, say, tell, perform
        self.count = 0
        self.began = time.time()
        self.needs_estimate = settings.low is None or settings.high is None

    @property
    def trials(self) -> int:
        """How many there will be when nothing surprises."""
        return planned_trials(self.settings, self.needs_estimate)

    @property
    def budget_seconds(self) -> float:
        """How long all trials will take."""
        options, start = self.options, SPARK_START_SECONDS + LEAD_SECONDS
        probe = start + plans.doubling_seconds(options.trigger) if self.needs_estimate else 0.0
        trial = start + plans.warm_up_seconds(options.trigger) + options.seconds
        return probe + (self.trials - self.needs_estimate) * trial

    def found(self) -> SearchResult:
        """The answer: estimates the rate if that is needed, then searches. Raises UserError if no trial can begin."""
        first = self._estimate() if self.needs_estimate else None
        return search(self._run, self.settings, first, self.tell)

    def _estimate(self) -> float | None:
        trigger = self.options.trigger
        wanted = self.options.request(plans.doubling(trigger), 0.0, plans.doubling_seconds(trigger))
        measured = self._trial(wanted, "an estimate, by a load that doubles")
        if measured.error is not None:
            raise UserError(f"cannot run {self.options.job}: {measured.error}")
        return estimate(measured.done, trigger)

    def _run(self, rate: float, why: str) -> Measured:
        options = self.options
        plan, warm_up = plans.at_rate(rate, options.trigger), plans.warm_up_seconds(options.trigger)
        return self._trial(options.request(plan, warm_up, options.seconds), f"{rate:,.0f} rows/s, {why}")

    def _trial(self, wanted: TrialRequest, what: str) -> Measured:
        self.count += 1
        self.begin(self.count, max(self.count, self.trials), what)
        folder = self.folder / "trials" / f"{self.count:02}"
        trial = self.perform(wanted, folder, self.say)
        if trial.origin is None and self.count == 1:
            raise UserError(f"cannot run {self.options.job}: {trial.errors.get(self.options.job, 'it did not start')}")
        measured = trial.measured()[self.options.job]
        tidy(trial)
        return measured


def tidy(trial: Trial) -> None:
    """Removes what a trial wrote except its recording and its logs: some hundred megabytes."""
    for name in BULKY:
        shutil.rmtree(trial.folder / NAME / name, ignore_errors=True)


def open_folder(folder: Path) -> Path:
    """Makes a folder for a new search beside that of an earlier one, whose answer is valid until then.

    Removes what a search that did not end has left there. Raises UserError.
    """
    made = folder.with_name(f"{folder.name}-unfinished")
    with writing_to(made):
        if made.exists():
            shutil.rmtree(made)
        made.mkdir(parents=True)
    return made


def publish_folder(made: Path, folder: Path) -> None:
    """Gives a finished search its folder; that of an earlier search is moved aside. Raises UserError."""
    with writing_to(folder):
        if folder.exists():
            folder.rename(folder.with_name(f"{folder.name}-before-{time.strftime('%Y%m%d-%H%M%S')}"))
        made.rename(folder)
