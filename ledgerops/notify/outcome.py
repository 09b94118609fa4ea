"""What became of a query or a driver whose alert is over, as far as Prometheus knows: an alert also ends when its
driver is gone, and then nothing was repaired."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ledgerops.notify.incident import Firing


@dataclass(frozen=True, slots=True)
class Run:
    """A query on a driver. `now` and `last` are 1 while it runs and 0 after its end; None where nothing is known."""

    query: str
    instance: str
    now: float | None = None  # as the driver says at this moment
    last: float | None = None  # as it said last
    seen: float | None = None  # when the query reported last, in epoch seconds


def outcome(alert: Firing, runs: Sequence[Run]) -> str:
    """A few words on the query or driver that an alert is about; `runs` are those of its application."""
    query, instance = alert.labels.get("query"), alert.labels.get("instance")
    about = [run for run in runs if (run.query == query if query else run.instance == instance)]
    names = {run.query for run in about}
    active = [run for run in runs if run.now == 1 and (run.query in names or run.instance == instance)]
    if active:
        here = [run for run in active if run.instance == instance] or active
        where = here[0].instance
        there = " ".join(sorted({run.query for run in here if run.instance == where}))
        if where == instance:
            return f"runs {there}"
        return f"runs on {where}" if query else f"replaced: {where} runs {there}"
    if not about:
        return ""
    if all(run.last == 0 for run in about):
        return "stopped"
    seen = [run.seen for run in about if run.seen is not None]
    return "lost, not seen again" + (f" since {utc_clock(max(seen))}" if seen else "")


def utc_clock(at: float) -> str:
    """14:36:12 UTC, of epoch seconds"""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
