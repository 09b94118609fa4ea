"""The alert of the rule retention-risk: unread rows will soon be deleted."""

from __future__ import annotations

from ledgerops.diagnosis.rules import retention_risk
from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import BY, CAUSE
from ledgerops.mixin.site import Site

HEADROOM = 'ledgerops_retention_headroom_seconds{topic="t", partition="0"}'
BACKLOG = 'ledgerops_source_backlog_offsets{topic="t", partition="0"}'
WINDOW = 300.0
SHRINKS = 0.05  # seconds of headroom lost each second, as in the rule: less is the to and fro of batches


def _expression(site: Site) -> str:
    headroom = site.series("ledgerops_retention_headroom_seconds")
    # only of partitions where it shrinks and something is unread: a topic that keeps its rows for less is no risk
    same = "and on (job, instance, query, topic, partition)"
    shrinks = f"{same} deriv({headroom}[{site.window(WINDOW)}]) < -{SHRINKS:g}"
    unread = f"{same} {site.series('ledgerops_source_backlog_offsets')} > 0"
    return f"min {BY} ({headroom} {shrinks} {unread}) < {site.retention_seconds:g}"


ALERT = Alert(
    name="LedgerRetentionRisk",
    severity="critical",
    expression=_expression,
    hold=60.0,
    summary="Rows will be deleted before a query has read them.",
    description=(
        "At the present rate the topic will delete rows that {{ $labels.query }} has not read in "
        f"{{{{ $value | humanizeDuration }}}}. {CAUSE}"
    ),
    runbook=retention_risk.__doc__ or "",
    rule="retention-risk",
    page="ledgerops-query",
    cases=(
        Case("fires", "half an hour left and shrinking", {HEADROOM: "2400-10x80", BACKLOG: "0+1000x80"}, 600, True),
        Case("stays quiet", "half an hour, and growing", {HEADROOM: "1200+5x80", BACKLOG: "9000-10x80"}, 600, False),
        Case("stays quiet", "everything is read", {HEADROOM: "2400-10x80", BACKLOG: "0x80"}, 600, False),
        Case("resolves", "retention was raised", {HEADROOM: "2400-10x40 90000x80", BACKLOG: "0+1000x120"}, 1500, False),
        Case("series vanishes", "it ended", {HEADROOM: "2400-10x20 stale", BACKLOG: "0+9x20 stale"}, 900, False),
        Case("query restarts", "catching up", {HEADROOM: "2400x8 2400+40x60", BACKLOG: "9000-100x60"}, 600, False),
    ),
)  # fmt: skip
