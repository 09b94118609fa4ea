"""What in a verdict cannot be true beside the rest of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ledgerops.model.finding import Finding, Verdict

NEED_NO_FINDING = ("healthy", "idle", "starting", "stopped", "catching_up")
MIN_BUSY_RATIO = 0.5  # of the interval: below it more cores cannot be what a query needs
MAX_SUM_ERROR = 0.05  # of a batch, for the parts of its time
PART_OF_BATCH = re.compile(r"([\d.]+) s of a batch of ([\d.]+) s")
BELOW_FULL = re.compile(r"\b(?:near|close to|almost)\b[^.;:]*?(\d+)%")
MORE = ("add ", "give the ", "divide the rows")  # how a remedy begins that asks for machines
MACHINES = ("cores", "executors", "machines")


def contradictions(verdict: Verdict) -> Sequence[str]:
    """One line each; empty when status, health, findings, remedies and parts agree."""
    found = []
    causes = {root.rule for root in verdict.root_causes}
    if verdict.status not in NEED_NO_FINDING and not verdict.findings:
        found.append(f"{verdict.status} without a finding")
    if verdict.status not in NEED_NO_FINDING and verdict.health == 100:
        found.append(f"{verdict.status} with health 100")
    total = sum(part.share for part in verdict.attribution)
    if verdict.attribution and abs(total - 1) > MAX_SUM_ERROR:
        found.append(f"the parts of a batch add up to {total:.0%}")
    interval, seconds = (verdict.figures.get(name) for name in ("trigger_interval_seconds", "batch_seconds"))
    for root in verdict.root_causes:
        seconds = next((each.value for each in root.evidence if each.name == "profile_seconds"), seconds)
        for remedy in root.remedies:
            if "named root cause" in remedy.action:
                found.append(f"{root.rule} is the root cause and points to another")
            cores = remedy.action.startswith(MORE) and any(word in remedy.action for word in MACHINES)
            if cores and interval and seconds is not None and seconds < MIN_BUSY_RATIO * interval:
                found.append(f"{root.rule} asks for cores at {seconds:.1f} of {interval:g} s")
            if cores and "rate-limited" in causes:
                found.append(f"{root.rule} asks for cores while the source is capped")
    for finding in verdict.findings:
        found += [f"{finding.rule} says: {what}" for what in _impossible(finding)]
    return found


def _impossible(finding: Finding) -> Iterator[str]:
    """What a summary claims that its own figures refute."""
    for part, whole in PART_OF_BATCH.findall(finding.summary):
        if float(part) > float(whole) * (1 + MAX_SUM_ERROR) + 0.1:
            yield f"{part} s of {whole} s"
    for percent in BELOW_FULL.findall(finding.summary):
        if int(percent) > 100:
            yield f"near a limit at {percent}%"
