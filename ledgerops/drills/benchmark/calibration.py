"""Whether the stated confidence is true: of the first causes that were stated with it, how many were right."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ledgerops.drills.benchmark.score import share

# the confidences that rules state are at most a few values: 0.5 (unsure), 0.8 (likely), 0.95 (clear), and shares
BINS = ((0.0, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0))


class Claim(NamedTuple):
    """A first cause at warning or above: how sure it was on the median, and whether it is accepted."""

    confidence: float
    true: bool


class Bin(NamedTuple):
    """Claims whose confidence is from `low` up to `high`; `of` of them, `true` right, with Wilson's interval."""

    low: float
    high: float
    said: float
    of: int
    true: int
    interval: tuple[float, float]


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


def bins(found: Iterable[Claim]) -> list[Bin]:
    """The claims by their confidence; a bin without any is left out."""
    found, result = list(found), []
    for low, high in BINS:
        some = [claim for claim in found if low <= claim.confidence < high or claim.confidence == high == 1.0]
        if some:
            true = sum(claim.true for claim in some)
            given = share(true, len(some))
            assert given is not None
            said = sum(claim.confidence for claim in some) / len(some)
            result.append(Bin(low, high, said, len(some), true, (given["low"], given["high"])))
    return result
