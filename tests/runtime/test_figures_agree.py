"""One figure, one number: the head of the report, its JSON, the live page, its plots, the metrics and the findings say
the same of one moment, over all recordings."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from ledgerops.analysis.inputs import open_source
from ledgerops.analysis.plot_series import Track
from ledgerops.diagnosis.report import document, figures_of
from ledgerops.metrics.latency import LAST_BATCH
from ledgerops.metrics.pressure import BACKLOG, INTERVAL, LAG, QUERY_BACKLOG, QUERY_LAG
from ledgerops.metrics.throughput import INPUT_RATE, PROCESSED_RATE
from ledgerops.metrics.verdict import DRAIN
from ledgerops.model.head_table import offsets_read_at
from ledgerops.runtime.replay import JUDGED, Replay
from ledgerops.runtime.snapshot import QuerySnapshot
from ledgerops.runtime.status import SERIES, query_status
from tests.drills.saved import NAMES, bundle
from tests.paths import OTHER_RECORDINGS, needed_data

MOMENTS = 8  # of a recording
OF_QUERY = {metric.name for metric in (LAST_BATCH, INTERVAL, QUERY_BACKLOG, DRAIN)}
OF_PARTITIONS = {metric.name for metric in (BACKLOG, LAG)}


def same(one: float | None, other: float | None) -> bool:
    """Equal to a thousandth, which is how the live page rounds."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-3, abs_tol=2e-3)


def disagreements(place: str) -> Iterator[str]:
    """What is said of one figure in two places and differs, at some moments of a recording."""
    seen = list(open_source(place).observations)
    replay, tracks, every = Replay(counts=True), {}, max(1, len(seen) // MOMENTS)
    for number, each in enumerate(seen, 1):
        state = replay.take(each)
        if state is None or each.kind not in JUDGED or replay.at is None:
            continue
        replay.registry.judge(state, replay.at, brief=True)
        tracks.setdefault(state.history.query, Track()).take(replay.registry.view(state, replay.at))
        if number % every == 0 or number > len(seen) - 3:
            for query, known in replay.registry.queries.items():
                if known.verdict is not None:
                    found = _at(replay, known, tracks.get(query))
                    yield from (f"{query} at {replay.at:.0f}: {what}" for what in found)


def _at(replay: Replay, state: Any, track: Track | None) -> Iterator[str]:
    now = replay.at or 0.0
    verdict = replay.registry.judge(state, now)
    view = replay.registry.view(state, now)
    at = view.at(state.history.ended.at, view.freshness) if state.history.ended is not None else view
    [query] = document([verdict], now, "")["queries"]
    page, figures = query_status(state, view), query["figures"]
    families = QuerySnapshot(state, at, 10**6, _raised).exported.families
    metric = {name: [value for _, value in family.series] for name, family in families.items() if family.series}

    def value(name: str) -> float | None:
        return metric[name][0] if name in metric else None

    def total(name: str) -> float | None:
        return sum(metric[name]) if name in metric else None

    runs, lag_at, rates = state.history.ended is None, value(QUERY_LAG.name), page["rates"]
    said: dict[str, dict[str, float | None]] = {
        "batch": {"head": figures.get("batch_seconds"), "page": (page["batch"] or {}).get("seconds")},
        "backlog": {"head": figures.get("backlog_offsets"), "page": page["backlog"]},
    }
    if view.last is not None and track and track.batches:  # they also show batches of runs before
        said["batch"] |= {"plot": _newest(page, "batch_seconds"), "report": track.batches[-1].seconds}
    if runs:
        said["batch"]["metric"] = value(LAST_BATCH.name)
        said["backlog"] |= {"metric": value(QUERY_BACKLOG.name), "partitions": total(BACKLOG.name)}
        said["processed"] = {"page": rates["processed"], "metric": value(PROCESSED_RATE.name)}
        lag = None if lag_at is None else max(0.0, now - lag_at)
        for what, *places in (
            ("interval", figures.get("trigger_interval_seconds"), page["trigger_interval"], value(INTERVAL.name)),
            ("lag", figures.get("lag_seconds"), page["lag_seconds"], lag),
            ("input", figures.get("input_rows_per_second"), rates["input"], total(INPUT_RATE.name)),
            ("drain", query["forecast"]["drain_seconds"], page["drain_seconds"], value(DRAIN.name)),
        ):
            said[what] = dict(zip(("head", "page", "metric"), places, strict=True))
    heads = view.lag.heads
    # the plot of a page ends with the figure of now, that of its batches with what the newest one left
    if view.last is not None and (heads is None or heads.at <= offsets_read_at(view.last)) and page["backlog"]:
        said["backlog"]["plot"] = _newest(page, "backlog")
    for what, places in said.items():
        if not all(same(next(iter(places.values())), other) for other in places.values()):
            yield f"{what}: {places}"
    for finding in verdict.findings:
        for each in finding.evidence:
            if finding.since < now - 1 and each.at < now:  # a finding that lingers has the numbers of its last batch
                continue
            if each.name in OF_QUERY and runs and not same(each.value, value(each.name)):
                yield f"{finding.rule} says {each.name} {each.value:g}, the metric {value(each.name)}"
            if each.name in OF_PARTITIONS and runs and each.name in metric:
                shown = metric[each.name]
                known = [max(0.0, now - one) for one in shown] if each.name == LAG.name else [*shown, sum(shown)]
                if not any(same(each.value, one) for one in known):
                    yield f"{finding.rule} says {each.name} {each.value:g}, the metric {sorted(known)[-3:]}"
    if "input_rows_per_second" in figures and "rows/s in" not in figures_of(query):
        yield "the head leaves out the rate"


def _newest(page: dict[str, Any], name: str) -> float | None:
    assert name in SERIES
    values = page["series"][name]
    return values[-1] if values else None


def _raised(name: str, error: Exception) -> None:
    raise AssertionError(name) from error


@pytest.mark.parametrize("name", NAMES)
def test_all_places_say_the_same_figures_of_a_drill(name):
    assert list(disagreements(str(bundle(name).recording))) == []


@pytest.mark.parametrize("place", [str(path) for path in OTHER_RECORDINGS])
def test_all_places_say_the_same_figures_of_other_recordings(place):
    assert list(disagreements(place)) == []


def test_all_places_say_the_same_figures_of_strangers_applications(data_dir):
    for place in sorted(needed_data(data_dir / "applications").glob("*/recording")):
        assert list(disagreements(str(place))) == [], place.parent.name
