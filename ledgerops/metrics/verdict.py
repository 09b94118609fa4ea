"""The verdict as series, so that dashboards, alerts and notifications carry it."""

from typing import get_args

from ledgerops.metrics.cause_texts import BY_PART, CAUSE_TEXTS, CauseText
from ledgerops.metrics.first_steps import sentence
from ledgerops.metrics.model import Metric, Series, known
from ledgerops.model.finding import Finding, Status, Verdict


def _described(verdict: Verdict) -> Series:
    """One series for each root cause, the most important with rank 1."""
    return {
        (cause.rule, cause.severity, str(rank), *_text(cause, verdict)): 1.0
        for rank, cause in enumerate(verdict.root_causes, 1)
    }


def _text(cause: Finding, verdict: Verdict) -> CauseText:
    """The texts of a cause: the first step that the finding has, and of a symptom the largest part of a batch."""
    summary, action = CAUSE_TEXTS[cause.rule]
    if cause.remedies and cause.remedies[0].general:
        action = sentence(cause.remedies[0].general)
    largest = max(verdict.attribution, key=lambda each: each.seconds, default=None)
    if cause.rule in BY_PART and largest is not None:
        summary = f"{summary} Largest part: {largest.part.replace('_', ' ')}."
    return CauseText(summary, action)


FINDING: Metric[Verdict] = Metric(
    "ledgerops_finding", "1 for each rule with an active finding; the series appears and disappears with the finding.",
    labels=("rule", "severity"),
    read=lambda verdict: {(finding.rule, finding.severity): 1.0 for finding in verdict.findings}, survives=True,
)  # fmt: skip
ROOT_CAUSE: Metric[Verdict] = Metric("ledgerops_root_cause",
    "1 for each rule that is a root cause now: no other finding explains it.", labels=("rule",),
    read=lambda verdict: {(cause.rule,): 1.0 for cause in verdict.root_causes}, survives=True)  # fmt: skip
ROOT_CAUSE_INFO: Metric[Verdict] = Metric("ledgerops_root_cause_info",
    "What each root cause means and the first step, from a fixed vocabulary; rank 1 is the most important.",
    labels=("rule", "severity", "rank", "summary", "action"), read=_described, survives=True)  # fmt: skip
ROOT_CAUSE_SINCE: Metric[Verdict] = Metric("ledgerops_root_cause_since_timestamp_seconds",
    "When each root cause began.", labels=("rule",),
    read=lambda verdict: {(cause.rule,): cause.since for cause in verdict.root_causes}, survives=True)  # fmt: skip
HEALTH: Metric[Verdict] = Metric("ledgerops_health_score",
    "100 without findings; each finding lowers it by its severity and confidence.",
    read=lambda verdict: {(): float(verdict.health)}, survives=True)  # fmt: skip
STATUS: Metric[Verdict] = Metric(
    "ledgerops_query_status", "1 for the status that the query has, 0 for the others.", labels=("status",),
    read=lambda verdict: {(status,): float(status == verdict.status) for status in get_args(Status)}, survives=True,
)  # fmt: skip
PARTS: Metric[Verdict] = Metric("ledgerops_batch_part_seconds",
    "Time of a typical recent batch by part; the parts, including unattributed time, add up to its duration.",
    labels=("part",), read=lambda verdict: {(each.part,): each.seconds for each in verdict.attribution})  # fmt: skip
DRAIN: Metric[Verdict] = Metric("ledgerops_backlog_drain_seconds",
    "Seconds until the backlog is gone at the current rates; absent when unknown, and while the query falls behind.",
    read=lambda verdict: known(verdict.forecast.drain_seconds))  # fmt: skip
METRICS = (FINDING, ROOT_CAUSE, ROOT_CAUSE_INFO, ROOT_CAUSE_SINCE, HEALTH, STATUS, PARTS, DRAIN)
