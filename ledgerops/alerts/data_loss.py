"""The alert of the rule data-loss: rows were deleted before they were read."""

from __future__ import annotations

from ledgerops.alerts.model import Alert, Case
from ledgerops.alerts.promql import BY, CAUSE
from ledgerops.alerts.site import Site
from ledgerops.diagnosis.rules import data_loss

HEADROOM = 'ledgerops_retention_headroom_seconds{topic="t", partition="0"}'


def _expression(site: Site) -> str:
    return f"min {BY} ({site.series('ledgerops_retention_headroom_seconds')}) == 0"


ALERT = Alert(
    name="LedgerDataLoss",
    severity="critical",
    expression=_expression,
    hold=10.0,
    keep=600.0,  # the query may jump over the gap at once; what is lost stays lost
    summary="Rows were deleted before a query had read them.",
    description=f"{{{{ $labels.query }}}} goes on from offsets that its topic no longer has. {CAUSE}",
    runbook=data_loss.__doc__ or "",
    rule="data-loss",
    page="ledgerops-kafka",
    inhibits=("LedgerRetentionRisk",),
    cases=(
        Case("fires", "the oldest unread offset is gone", {HEADROOM: "900-60x15 0x20"}, 400, True),
        Case("fires", "some minutes later, too", {HEADROOM: "60x8 0x3 60x30"}, 400, True),
        Case("stays quiet", "a minute is left", {HEADROOM: "900-60x14 60x40"}, 500, False),
        Case("resolves", "a quarter of an hour later", {HEADROOM: "60x8 0x3 60x100"}, 1200, False),
        Case("series vanishes", "the query ended long ago", {HEADROOM: "0x8 stale"}, 1200, False),
        Case("query restarts", "with room left", {HEADROOM: "60x8 stale 60x8"}, 240, False),
    ),
)  # fmt: skip
