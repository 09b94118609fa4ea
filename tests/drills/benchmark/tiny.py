"""Tiny data sets: a case is some series, each a list of values, one a scrape."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from ledgerops.drills.benchmark.baselines.data import SCRAPE_SECONDS, BenchmarkCase, cases
from tests.drills.checkpoints import T0

QUERY = {"app": "shop", "instance": "driver", "job": "ledgerops", "query": "orders"}
Metrics = Mapping[str, Sequence[float | None]]


def write(folder: Path, name: str, metrics: Metrics, fault: int | None, accepted: Sequence[str] = ()) -> None:
    """Adds a case whose fault begins with scrape number `fault`; None: it is healthy. A metric's name may end with the
    value of its label `part`, as in `seconds/sink`. None is a scrape without a sample."""
    place = folder / "cases" / name
    place.mkdir(parents=True)
    scrapes = max(len(values) for values in metrics.values())
    rows = [
        (T0 + number * SCRAPE_SECONDS, metric.partition("/")[0], _labels(metric), float(value))
        for metric, values in metrics.items()
        for number, value in enumerate(values)
        if value is not None
    ]
    columns = dict(zip(("time", "metric", "labels", "value"), map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), place / "metrics.parquet")
    began, ended = T0, T0 + (scrapes - 1) * SCRAPE_SECONDS
    at = None if fault is None else T0 + fault * SCRAPE_SECONDS
    (place / "case.json").write_text(json.dumps({"started": began, "ended": ended}))
    truth = {
        "case": name, "healthy": fault is None, "void": "", "fault_at": at, "harm_at": at, "accepted": list(accepted),
        "onset": "" if fault is None else "later" if fault else "birth", "started": began, "ended": ended,
        "also_true": [], "elsewhere": [], "due": "warning", "split": "test", "source": "rate",
        "kind": accepted[0] if accepted else "", "strength": "just" if accepted else "",
    }  # fmt: skip
    (folder / "truth").mkdir(exist_ok=True)
    (folder / "truth" / f"{name}.json").write_text(json.dumps(truth))
    (folder / "causes.json").write_text(json.dumps({"slow-sink": {}, "input-overload": {}}))


def case(folder: Path, metrics: Metrics, fault: int | None = None) -> BenchmarkCase:
    """One case alone."""
    write(folder, "1-01", metrics, fault)
    return cases(folder)[0]


def _labels(metric: str) -> str:
    part = metric.partition("/")[2]
    return json.dumps(QUERY | ({"part": part} if part else {}), sort_keys=True)
