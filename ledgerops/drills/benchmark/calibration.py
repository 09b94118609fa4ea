"""Whether the stated confidence is true: of the first causes that were stated with it, how many were right."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Claim(NamedTuple):
    """A first cause at warning or above: how sure it was on the median, and whether it is accepted."""

    confidence: float
    true: bool


def claims(truths: Mapping[str, Mapping[str, Any]], answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Claim]:
    """One claim for each case and each cause that stood first in it for at least a tenth of its answers. Void cases are
    left out, as are causes that are true of the machine."""
    found = []
    for case, truth in truths.items():
        if truth["void"]:
            continue
        firsts: dict[str, list[float]] = {}
        for answer in answers.get(case, ()):
            serious = [cause for cause in answer["causes"] if cause.get("severity", "warning") != "info"]
            if serious and "confidence" in serious[0]:
                firsts.setdefault(serious[0]["cause"], []).append(serious[0]["confidence"])
        for cause, sure in firsts.items():
            if 10 * len(sure) >= len(answers[case]) and cause not in truth["also_true"]:
                found.append(Claim(sorted(sure)[len(sure) // 2], cause in truth["accepted"]))
    return found
