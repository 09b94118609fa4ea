"""docs/flink-panels.md: which of our panels says what a panel of Flink's dashboards says."""

from __future__ import annotations

from ledgerops.mixin.dashboards.flink import APPLICATIONS, KAFKA, MANAGERS, SIGNALS, Signal
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.reference import HEAD

TITLES = {page.uid.removeprefix("ledgerops-"): page.title.removeprefix("ledgerops / ") for page in PAGES}


def flink_page() -> str:
    """The tables, one a dashboard of Flink."""
    ours = {panel for signal in SIGNALS for panel in signal.ours}
    shown = sum(signal.count for signal in SIGNALS if signal.ours)
    every = sum(signal.count for signal in SIGNALS)
    parts = [
        f"{HEAD}# Flink's panels, and ours\n\n",
        f"Of the {every} panels of three dashboards for Flink {shown} have a twin on Spark, or the nearest to one that "
        f"there can be, in {len(ours)} panels of ours; of the other {every - shown} stands why not. What ledgerops has "
        "besides (verdicts, root causes, capacity, retention, integrity, SLO, load tests) is not in this list.\n",
    ]
    for board in (APPLICATIONS, MANAGERS, KAFKA):
        signals = [signal for signal in SIGNALS if signal.board == board]
        count = sum(signal.count for signal in signals)
        parts.append(f"\n## {board}: {count} panels\n\n| Flink | panels | ours | |\n|---|---|---|---|\n")
        parts += [_row(signal) for signal in signals]
    return "".join(parts)


def _row(signal: Signal) -> str:
    named = []
    for place in signal.ours:
        page, _, title = place.partition("/")
        named.append(f"{TITLES[page]}: {title}")
    return f"| {signal.flink} | {signal.count} | {'<br>'.join(named) or 'none'} | {signal.note} |\n"
