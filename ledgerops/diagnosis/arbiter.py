"""Which cause a harmed query suffers from: the one whose saving ends the harm, or is a third of a batch.

A saving is the time that a typical batch would take less without the cause. Where no saving is enough, the load is more
than the resources can process, and comes before them.
"""

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
    savings = [each for each in findings if each.saving_seconds is not None]
    best = max(savings, key=lambda each: each.share or 0.0, default=None)
    if best is None:
        return list(findings), {}
    share = best.share or 0.0
    if share < WORTH_SHARE and not ends(share, harm):  # what all of them leave of the harm is the load's
        return [replace(each, share=1 - share) if each.rule == LOAD else each for each in findings], {}
    so = "without that the query would keep up" if ends(share, harm) else "that is worth removing first"
    because = f"{best.rule} takes {duration(best.saving_seconds)} of a batch, and {so}"
    left_out = {each.rule: because for each in findings if each.rule == LOAD}
    return [each for each in findings if each.rule not in left_out], left_out


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


def ends(share: float, harm: Harm | None) -> bool:
    """Whether the query would be harmed no longer if its batches took so much less."""
    return harm is not None and share >= NOISE_SHARE and harm.ratio * (1 - share) < OVER_RATIO
