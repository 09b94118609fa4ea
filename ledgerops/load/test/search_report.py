"""The answer of a search: text and document."""

from dataclasses import dataclass
from statistics import median
from typing import Any

from ledgerops.common import format
from ledgerops.load.test.result import environment, figures_of, outcome, seconds
from ledgerops.load.test.search import Rate, SearchResult, SearchSettings
from ledgerops.load.test.search_run import TrialOptions
from ledgerops.load.test.slo import broken
from ledgerops.model.spark_progress import format_instant

VERSION = 1
HEADS = ("rows/s", "trials", "lag slope", "p99 latency", "batch p50", "batch p95", "verdict")


@dataclass(frozen=True)
class SearchSummary:
    """What was asked and what was found."""

    options: TrialOptions
    settings: SearchSettings
    found: SearchResult
    began: float
    took: float

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        job, low, high = self.options.job, self.found.low, self.found.high
        if low is None:
            return f"{job}: found no rate that it sustains"
        if high is None:
            return f"{job} sustains at least {low.rate:,.0f} rows/s"
        return f"{job} sustains {low.rate:,.0f} rows/s but not {high.rate:,.0f}"


def text(searched: SearchSummary) -> str:
    """The table of rates, and the answer below it."""
    lines = [list(HEADS), *(_row(rate) for rate in searched.found.rates)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    shown = [
        "  ".join(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=False)) + f"  {line[-1]}"
        for line in lines
    ]
    answer = searched.headline + (f" ({searched.found.reason})" if searched.found.reason else "")
    return "\n".join([*shown, "", answer]) + "\n"


def _row(rate: Rate) -> list[str]:
    verdict = "held" if rate.held else f"failed: {broken(rate.outcomes)[0]}"
    return [f"{rate.rate:,.0f}", str(len(rate.trials)), *figures(rate), verdict]


def figures(rate: Rate) -> list[str]:
    """Growth of the lag, p99 latency, and median and p95 of the batches, each the median over the trials, as text."""
    slope = middle(rate, lambda trial: trial.slope)
    times = (
        middle(rate, lambda trial: trial.rows.latency.at(0.99)),
        middle(rate, lambda trial: trial.batch_seconds(0.5)),
        middle(rate, lambda trial: trial.batch_seconds(0.95)),
    )
    return [format.UNKNOWN if slope is None else f"{slope:+.1%}", *map(seconds, times)]


def middle(rate: Rate, read: Any) -> float | None:
    """The median of a figure over the trials of a rate that know it."""
    known = [value for each in rate.trials if (value := read(each)) is not None]
    return median(known) if known else None


def document(searched: SearchSummary) -> dict[str, Any]:
    """Plain JSON types; null for unknown. `sustainable_rows_per_second` held, `failed_rows_per_second` did not."""
    found, options, settings = searched.found, searched.options, searched.settings
    return {
        "version": VERSION,
        "job": options.job,
        "sustainable_rows_per_second": None if found.low is None else found.low.rate,
        "failed_rows_per_second": None if found.high is None else found.high.rate,
        "estimate_rows_per_second": found.estimate,
        "reason": found.reason or None,
        "began": format_instant(searched.began),
        "took_seconds": round(searched.took, 1),
        "slos": [each.text for each in settings.slos],
        "precision": settings.precision,
        "repeat": settings.repeat,
        "seed": settings.seed,
        "trial_seconds": options.seconds,
        "trigger_seconds": options.trigger,
        "environment": environment(options.cores),
        "rates": [_rate(each) for each in found.rates],
    }


def _rate(rate: Rate) -> dict[str, Any]:
    return {
        "rows_per_second": rate.rate,
        "held": rate.held,
        "slos": [outcome(each) for each in rate.outcomes],
        "trials": [
            {**figures_of(measured), "error": measured.error, "slos": [outcome(each) for each in judged]}
            for measured, judged in zip(rate.trials, rate.judged, strict=True)
        ],
    }
