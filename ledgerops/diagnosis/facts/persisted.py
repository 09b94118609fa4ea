"""Persisted data, and what it holds of the memory that it shares with tasks."""

from typing import NamedTuple

from ledgerops.common.format import size
from ledgerops.model.finding import Evidence
from ledgerops.signals.query_view import QueryView

HELD_SHARE = 0.4  # of the memory that tasks share with persisted data, which keeps at least half once it has it
FORMULA = "memoryUsed of the active executors divided by their maxMemory"


class Persisted(NamedTuple):
    """That it holds much of that memory: a clause for a summary, and the share as evidence."""

    clause: str
    evidence: Evidence


def persisted(view: QueryView) -> Persisted | None:
    """None where it holds less than HELD_SHARE."""
    held = sum(each.memory_used_bytes for each in view.cluster.executors)
    shared = sum(each.memory_max_bytes for each in view.cluster.executors)
    if not 0 < HELD_SHARE * shared <= held:
        return None
    share = Evidence("persisted_share_of_memory", held / shared, "ratio", f"< {HELD_SHARE:g}", view.now)
    return Persisted(f" while persisted data holds {size(held)} of the {size(shared)} that it shares with tasks", share)
