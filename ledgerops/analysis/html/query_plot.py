"""The plot of a query: age of results, rates, batch duration by phase and skew over one time, with its incidents."""

from collections import Counter
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from ledgerops.analysis.batch_samples import BatchSample
from ledgerops.analysis.html.axes import utc_ticks
from ledgerops.analysis.html.plot import Band, Bar, Figure, Line, Mark, Panel, svg, thinned_bars
from ledgerops.analysis.plot_series import Track
from ledgerops.common import format

# in the order in which they run
PHASES = ("latest_offset", "wal_commit", "get_batch", "query_planning", "add_batch", "commit_offsets")
UNATTRIBUTED = "unattributed"
MIN_UNATTRIBUTED_SHARE = 0.02  # of a batch: less is rounding
MIN_NAMED_SHARE = 0.01  # of all batches shown: less cannot be seen, and its name would run into the title
SKEWS = {
    "source_partition": "source partitions", "task_records": "rows per task", "task_time": "time per task",
    "executor": "executors",
}  # fmt: skip


def query_plot(
    track: Track, low: float, high: float, incidents: Sequence[tuple[float, float]], marks: Sequence[Mark]
) -> Markup:
    """All panels that have a value between two epoch seconds, as SVG; empty markup when there is none."""
    panels = [panel for panel in _panels(track, low, high) if panel.values]
    figure = Figure(
        low, high, panels, utc_ticks(low, high), "time (UTC)",
        "plots over time: " + ", ".join(panel.title for panel in panels),
        bands=[Band(began, ended, "incident") for began, ended in incidents], marks=marks,
    )  # fmt: skip
    return svg(figure)


def _panels(track: Track, low: float, high: float) -> Iterator[Panel]:
    batches = [each for each in track.batches if low <= each.ended and each.started <= high]
    age = [(each.at, each.value) for each in track.age if low <= each.at <= high]
    yield Panel("age of results", format.duration, 1.0, [Line("age", "l1", age)])
    rates = [
        Line("arrival", "l1", [(each.started, each.arrival) for each in batches]),
        Line("input rate", "l2", [(each.started, each.read) for each in batches]),
        Line("processing rate", "l3", [(each.ended, each.processed) for each in batches]),
    ]
    known = [line for line in rates if any(value is not None for _, value in line.points)]
    yield Panel("rows per second", format.count, 1.0, known)
    yield batch_panel(batches, track.interval)
    skew = [
        Line(SKEWS.get(kind, kind), f"l{number}", [(each.at, each.value) for each in samples if low <= each.at <= high])
        for number, (kind, samples) in enumerate(sorted(track.skew.items()), 1)
    ]
    yield Panel("skew: maximum / median", format.ratio, 2.0, [line for line in skew if line.points])


def batch_panel(batches: Sequence[BatchSample], trigger_interval_seconds: float | None) -> Panel:
    """One bar a batch, from its start to its end, its phases stacked."""
    bars = thinned_bars([_bar(each) for each in batches])
    seconds = Counter[str]()
    for bar in bars:
        seconds.update(dict(bar.parts))
    used = {style for style, taken in seconds.items() if taken >= MIN_NAMED_SHARE * seconds.total()}
    names = {f"p-{phase}": phase for phase in PHASES} | {"p-rest": UNATTRIBUTED}
    interval = trigger_interval_seconds
    limit = (interval, f"trigger interval {format.duration(interval)}") if interval else None
    return Panel(
        "batch duration by phase", format.duration, 0.1, bars=bars,
        limit=limit,
        bar_legend=[(name, style) for style, name in names.items() if style in used],
    )  # fmt: skip


def _bar(batch: BatchSample) -> Bar:
    parts = [(f"p-{phase}", batch.phases[phase]) for phase in PHASES if batch.phases.get(phase, 0.0) > 0]
    rest = batch.seconds - sum(seconds for _, seconds in parts)
    if rest > MIN_UNATTRIBUTED_SHARE * batch.seconds:
        parts.append(("p-rest", rest))
    phases = ", ".join(f"{name} {format.duration(each)}" for name, each in batch.phases.items())
    text = f"{format.count(batch.rows)} rows in {format.duration(batch.seconds)}: {phases}"
    return Bar(batch.started, batch.ended, parts, text)
