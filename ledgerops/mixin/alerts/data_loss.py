"""The alert of the rule data-loss: rows were deleted before they were read, or skipped by the sink.

It asks for the finding, not for the headroom: that is 0 as soon as the topic's retention allows the broker to delete,
which it may do minutes later; and where it has deleted, a query that goes on is past the gap before the next scrape.
"""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import of_rule

LOSS = 'ledgerops_finding{rule="data-loss", severity="critical"}'
HEADROOM = 'ledgerops_retention_headroom_seconds{topic="t", partition="0"}'

ALERT = Alert(
    name="LedgerDataLoss", severity="critical", expression=lambda site: of_rule(site, "ledgerops_finding", "data-loss"),
    hold=10.0,  # the rule tells of it for ten minutes: what is lost stays lost
    summary="Rows were deleted or skipped before a query wrote them.",
    description="Rows of {{ $labels.query }} were deleted before it read them, or its sink skipped them.",
    names_cause=True,
    rule="data-loss", page="ledgerops-query", inhibits=("LedgerRetentionRisk",),
    cases=(
        Case("fires", "the next unread offset is gone", {LOSS: "_x16 1x40", HEADROOM: "900x15 0 900x40"}, 400, True),
        Case("stays quiet", "the broker may delete, and has not", {HEADROOM: "60x8 0x30"}, 400, False),
        Case("stays quiet", "another finding", {'ledgerops_finding{rule="retention-risk"}': "1x40"}, 400, False),
        Case("resolves", "a quarter of an hour later", {LOSS: "1x40 stale"}, 900, False),
        Case("series vanishes", "the driver is gone", {LOSS: "1x8 stale"}, 400, False),
        Case("query restarts", "with room left", {HEADROOM: "60x8 stale 60x8"}, 240, False),
    ),
)  # fmt: skip
