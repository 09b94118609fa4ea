"""The verdict in one sentence, for somebody who was woken up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerops.model.finding import SEVERITIES

Json = Mapping[str, Any]
STATES = {
    "healthy": ("works", "worked"),
    "idle": ("has nothing to read", "had nothing to read"),
    "starting": ("has just begun", "had just begun"),
    "catching_up": ("works off its backlog", "worked off its backlog"),
    "pressured": ("is under pressure", "was under pressure"),
    "falling_behind": ("falls behind", "fell behind"),
    "stuck": ("is stuck", "was stuck"),
    "failed": ("has failed", "had failed"),
    "stopped": ("was stopped", "was stopped"),
}


class Headline(NamedTuple):
    """`style` is the severity, or "good"; `remedy` is the first thing to do."""

    sentence: str
    style: str
    summary: str = ""
    remedy: Json | None = None


def headline(document: Json, worst: Mapping[str, Json]) -> Headline:
    """Of the sickest query; with how many others there are. What is over is told as such."""
    queries = document["queries"]
    sick = sorted((each for each in queries if each["root_causes"]), key=_gravity)
    if sick:
        return _told(sick[0], len(sick) - 1, 0)
    over = sorted(worst.values(), key=_gravity)
    if over:
        return _told(over[0], len(over) - 1, 1)
    count = len(queries)
    return Headline(f"Nothing is wrong with {'the query' if count == 1 else f'any of {count} queries'}", "good")


def _told(query: Json, others: int, past: int) -> Headline:
    cause = query["root_causes"][0]
    state = STATES.get(query["status"], ("is in trouble", "was in trouble"))[past]
    if query["status"] == "stopped":
        state = "was stopped in trouble"
    elif query["status"] in ("healthy", "idle", "starting"):
        state = ("has a finding", "had a finding")[past]
    more = len(query["root_causes"]) - 1
    causes = cause["rule"] + (f" and {more} more {'cause' if more == 1 else 'causes'}" if more else "")
    also = f"; {others} more {'query' if others == 1 else 'queries'} too" if others else ""
    end = " (over now)" if past else ""
    sentence = f"{query['query']} {state}: {causes}{also}{end}"
    return Headline(sentence, cause["severity"], cause["summary"], next(iter(cause["remedies"]), None))


def _gravity(query: Json) -> tuple[int, int, str]:
    severity = max(SEVERITIES.index(each["severity"]) for each in query["root_causes"])
    return -severity, query["health"], query["query"]
