"""The verdict in one sentence, for somebody who was woken up."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerops.common.format import counted
from ledgerops.diagnosis.proof import cure
from ledgerops.model.finding import SEVERITIES

Json = Mapping[str, Any]
STATES = {  # by status: now, and of an incident that is over
    **dict.fromkeys(("healthy", "idle", "starting"), ("has a finding", "had a finding")),
    "catching_up": ("is catching up", "was catching up"),
    "pressured": ("is under pressure", "was under pressure"),
    "falling_behind": ("is falling behind", "was falling behind"),
    "stuck": ("is stuck", "was stuck"),
    "failed": ("has failed", "had failed"),
    "stopped": ("stopped with an open finding", "stopped with an open finding"),
    "lost": ("stopped reporting", "had stopped reporting"),
}
OTHER_STATE = ("has a problem", "had a problem")


class Headline(NamedTuple):
    """`style` is the severity, or "good"; `remedy` is the first thing to do."""

    sentence: str
    style: str
    summary: str = ""
    remedy: Json | None = None
    then: Json | None = None  # what removes the cause, where the first thing to do only prevents a loss


def headline(document: Json, worst: Mapping[str, Json]) -> Headline:
    """The sentence for the least healthy query, with the number of others that have findings. `worst` are queries
    without a warning now, as they were at their worst: that comes before what is merely worth knowing now."""
    queries = document["queries"]
    with_cause = sorted((each for each in queries if each["root_causes"]), key=_gravity)
    harmed = [each for each in with_cause if any(cause["severity"] != "info" for cause in each["root_causes"])]
    for shown, over in ((harmed, False), (sorted(worst.values(), key=_gravity), True), (with_cause, False)):
        if shown:
            return _sentence(shown[0], (len(shown) if over else len(with_cause)) - 1, over)
    return Headline(f"No problem found in {counted(len(queries), 'query', 'queries')}", "good")


def _sentence(query: Json, others: int, over: bool) -> Headline:
    cause = query["root_causes"][0]
    state = STATES.get(query["status"], OTHER_STATE)[over]
    more = len(query["root_causes"]) - 1
    causes = cause["rule"] + (f" and {counted(more, 'more cause')}" if more else "")
    also = f"; {counted(others, 'more query', 'more queries')} affected" if others else ""
    sentence = f"{query['query']} {state}: {causes}{also}{' (ended)' if over else ''}"
    first = next(iter(cause["remedies"]), None)
    return Headline(sentence, cause["severity"], cause["summary"], first, cure(cause["remedies"]))


def _gravity(query: Json) -> tuple[int, int, str]:
    severity = max(SEVERITIES.index(each["severity"]) for each in query["root_causes"])
    return -severity, query["health"], query["query"]
