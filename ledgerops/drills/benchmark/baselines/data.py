"""A case of the data set as the baselines read it: its time, its metrics as series, and the answers that they give."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from ledgerops.drills.benchmark.splits import TEST
from ledgerops.errors import UserError

Array = np.ndarray[Any, np.dtype[np.float64]]

SCRAPE_SECONDS = 5.0
# instants, which always grow, and what Spark exports a second time (a _Number is a _Value) or smoothed over minutes
LEFT_OUT = ("_timestamp_seconds", "_bucket", "_info", "_watermark_Value", "MinuteRate", "_Number")
OBSERVER = (
    *("ledgerops_listener", "ledgerops_callback", "ledgerops_worker", "ledgerops_scrape", "ledgerops_recording"),
    *("ledgerops_series", "ledgerops_http", "ledgerops_collector", "ledgerops_otlp"),
    "metrics_spark_driver_LiveListenerBus",
)
TOTALS = ("_total", "_count", "_sum", "_Count")
# how well a query does: what the detection of a change looks at
SERVICE = (
    *("ledgerops_last_batch_duration_seconds", "ledgerops_query_lag_seconds", "ledgerops_query_backlog_offsets"),
    "ledgerops_watermark_lag_seconds",
)
IDENTITY = ("app", "instance", "job")  # labels that are the same for all series of a metric


# what a method says of a case at one moment, as score.py reads it: causes, the likeliest first; none is "nothing wrong"
Answer = Mapping[str, Any]


def answered(case: str, at: float, causes: Iterable[str]) -> Answer:
    """An answer of a method that knows no severities."""
    return {"case": case, "at": at, "causes": [{"cause": cause} for cause in causes]}


@dataclass(frozen=True)
class Series:
    """One metric with its labels on the grid of the case: NaN before its first sample; of totals, the rate."""

    name: str  # with its labels, in Prometheus' own form
    values: Array

    @property
    def metric(self) -> str:
        """Its name without labels."""
        return self.name.partition("{")[0]

    def around(self, times: Sequence[float], split: float) -> tuple[Array, Array]:
        """Its known values before the time `split` (epoch seconds) of the grid `times`, and those from it on."""
        known, early = np.isfinite(self.values), np.asarray(times) < split
        return self.values[known & early], self.values[known & ~early]


@dataclass(frozen=True)
class BenchmarkCase:
    """A case in its folder. `onset` is when the fault began (epoch seconds), None for a healthy case."""

    folder: Path
    started: float
    ended: float
    onset: float | None

    @property
    def name(self) -> str:
        """Seed and number, as 18-07."""
        return self.folder.name

    @property
    def split(self) -> float:
        """What methods that compare before with after are told: when the fault began. Where it was there from the
        start, or the case is healthy, there is no such time: they compare the last two thirds with the first."""
        first_third = self.started + (self.ended - self.started) / 3
        return self.onset if self.onset is not None and self.onset > self.started + 4 * SCRAPE_SECONDS else first_third

    def rows(self) -> Iterator[tuple[float, str, str, float]]:
        """Every sample: time, metric, labels, value. Raises UserError when there are no metrics."""
        try:
            table = parquet.read_table(self.folder / "metrics.parquet").to_pydict()
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read the metrics of {self.folder}: {error}") from None
        yield from zip(table["time"], table["metric"], table["labels"], table["value"], strict=True)


def cases(folder: Path, split: str = TEST) -> list[BenchmarkCase]:
    """The cases of a split of a data set by name. Raises UserError when there is none, or one is damaged."""
    found = []
    for place in sorted(file.parent for file in (folder / "cases").glob("*/case.json")):
        try:
            case = json.loads((place / "case.json").read_text("utf-8"))
            truth = json.loads((folder / "truth" / f"{place.name}.json").read_text("utf-8"))
            if truth["split"] == split:
                onset = None if truth["healthy"] else float(truth["fault_at"])
                found.append(BenchmarkCase(place, case["started"], case["ended"], onset))
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"{place} is no case of a data set ({error})") from None
    if not found:
        raise UserError(f"no cases of the split {split} in {folder}; make them with ledgerops drill --export")
    return found


def moved(before: Array, after: Array) -> float:
    """How far the mean after is from the median before, with its sign; 0 where one of them is not known."""
    return float(np.mean(after) - np.median(before)) if len(before) and len(after) else 0.0


def series(
    rows: Iterable[tuple[float, str, str, float]], started: float, ended: float
) -> tuple[Sequence[float], list[Series]]:
    """The times of a grid and the series on it: the newest value at each time, and of totals the rate since the time
    before. Left out are instants, buckets, and what the observation costs."""
    samples: dict[str, list[tuple[float, float]]] = defaultdict(list)
    kinds: dict[str, str] = {}
    for at, metric, labels, value in rows:
        if metric.endswith(LEFT_OUT) or metric.startswith(OBSERVER) or metric == "up":
            continue
        own = {key: text for key, text in json.loads(labels).items() if key not in IDENTITY}
        inside = ",".join(f'{key}="{text}"' for key, text in sorted(own.items()))
        name = f"{metric}{{{inside}}}" if inside else metric
        kinds[name] = metric
        samples[name].append((at, float(value)))
    times = np.arange(started, ended + 1e-6, SCRAPE_SECONDS)
    found = []
    for name, pairs in sorted(samples.items()):
        pairs.sort()
        seen = np.array([at for at, _ in pairs])
        places = np.searchsorted(seen, times + SCRAPE_SECONDS / 2, side="right") - 1
        values = np.where(places >= 0, np.array([value for _, value in pairs])[np.maximum(places, 0)], np.nan)
        if kinds[name].endswith(TOTALS):
            steps = np.diff(values, prepend=np.nan) / SCRAPE_SECONDS
            values = np.where(steps < 0, np.nan, steps)  # a restart begins at 0 again
        found.append(Series(name, values))
    return [float(at) for at in times], found
