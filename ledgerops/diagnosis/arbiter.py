"""Which cause a harmed query suffers from: the one whose saving ends the harm, or is a third of a batch.

A saving is the time that a typical batch would take less without the cause. Where no saving is enough, the load is more
than the resources can process, and comes before them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ledgerops.common.format import duration
from ledgerops.diagnosis.harm import Harm
from ledgerops.diagnosis.limits import MOSTLY, NOISE_SHARE, WORTH_SHARE
from ledgerops.model.finding import Finding
from ledgerops.signals.baseline import OVER_RATIO

LOAD = "input-overload"  # holds where no cause would save enough of a batch
ALONE = "long-batches"  # holds where nothing else was found


def arbitrate(findings: Sequence[Finding], harm: Harm | None) -> tuple[list[Finding], Mapping[str, str]]:
    """The findings that remain beside the cause with the largest saving, and by slug why others were left out."""
    findings = [each for each in findings if each.rule != ALONE] or findings
    enough = [each for each in findings if each.saving_seconds is not None and _enough(each.share or 0.0, harm)]
    if not enough:
        return _load_first(findings), {}
    best = max(enough, key=lambda each: each.share or 0.0)
    so = "without that the query would keep up" if ends(best.share or 0.0, harm) else "that is worth removing first"
    because = f"{best.rule} takes {duration(best.saving_seconds)} of a batch, and {so}"
    left_out = {each.rule: because for each in findings if each.rule == LOAD}
    return [each for each in findings if each.rule not in left_out], left_out


def _load_first(findings: Sequence[Finding]) -> list[Finding]:
    """No saving ends the harm: what all of them leave of it is the load's."""
    most = max((each.share or 0.0 for each in findings if each.saving_seconds is not None), default=None)
    return [replace(each, share=1 - most) if each.rule == LOAD and most is not None else each for each in findings]


def outweighed(findings: Sequence[Finding]) -> set[tuple[str, str]]:
    """Pairs of rules of which the first cannot explain the second: it takes too little of a batch for that."""
    shares: dict[str, float] = {}
    for each in findings:
        if each.saving_seconds is not None and each.share is not None:
            shares[each.rule] = max(each.share, shares.get(each.rule, 0.0))
    return {
        (small, large)
        for small, share in shares.items()
        for large in shares
        if share < min(WORTH_SHARE, MOSTLY * shares[large])
    }


def _enough(share: float, harm: Harm | None) -> bool:
    """Whether a saving ends the harm, or is large enough to be worth it in any case."""
    return share >= WORTH_SHARE or ends(share, harm)


def ends(share: float, harm: Harm | None) -> bool:
    """Whether the query would be harmed no longer if its batches took so much less."""
    return harm is not None and share >= NOISE_SHARE and harm.ratio * (1 - share) < OVER_RATIO
