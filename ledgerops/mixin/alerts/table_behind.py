"""Table behind: a query falls behind the table that it reads.

Meaning: the oldest commit of the source table that the query has not read is older than the freshness objective, and
    the number of unread versions has been growing for five minutes. Other queries write faster than this one reads.
Impact: its results are that old and get older. If it goes on, the table's log may lose versions before they are read.
Diagnosis: 1. `ledgerops_source_unread_versions{app="APP",query="QUERY"}` and
    `ledgerops_source_unread_files{app="APP",query="QUERY"}` show how much waits. Many files in few versions mean small
    files: the writer is the place to look.
    2. `ledgerops_busy_ratio{app="APP",query="QUERY"}` near 1 means that the query is too slow for what arrives. Well
    below 1 means that maxFilesPerTrigger or maxBytesPerTrigger holds it back.
    3. Run `ledgerops diagnose http://INSTANCE --query QUERY` for what its batches spend their time on.
Mitigation: raise the limit of the source if batches end well within the trigger interval. Otherwise give the query more
    cores, or compact the source table (OPTIMIZE) if its files are small. Keep the checkpoint.
"""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, BY, LAG, growth_window, too_old, total
from ledgerops.mixin.site import Site

VERSIONS = "ledgerops_source_unread_versions"
UNREAD = of(VERSIONS, source="orders")


def _expression(site: Site) -> str:
    growth = f"sum {BY} (deriv({site.series(VERSIONS)}[{growth_window(site)}]))"
    unread = f"{total(site, VERSIONS)} > 1"
    return f"{too_old(site)} and on (job, app, query) {growth} > 0 and on (job, app, query) {unread}"


ALERT = Alert(
    name="LedgerTableBehind", severity="critical", expression=_expression, hold=60.0,
    summary="A query is falling behind the table that it reads.",
    description=(
        "{{ $labels.query }} has not read commits that are {{ $value | humanizeDuration }} old, and the number of "
        "unread versions has been growing for five minutes."
    ),
    runbook=__doc__, names_cause=True, inhibits=("LedgerTriggerOverrun", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "versions and lag grow", {UNREAD: "0+2x80", LAG: "0+2x80", ACTIVE: "1x80"}, 900, True),
        Case("stays quiet", "it keeps up with a busy table", {UNREAD: "0 1 2 0 1 2 0 1 2x70", LAG: "5x80"}, 900, False),
        Case("stays quiet", "a large backlog that shrinks", {UNREAD: "900-10x80", LAG: "3000-30x80"}, 900, False),
        Case("stays quiet", "one old version is being read", {UNREAD: "1x80", LAG: "0+15x80"}, 900, False),
        Case("stays quiet", "a trigger of ten minutes",
             {UNREAD: "0+2x80", LAG: "0+15x80", "ledgerops_trigger_interval_seconds": "600x80"}, 900, False),
        Case("resolves", "the backlog clears",
             {UNREAD: "0+2x60 120-4x30 0x60", LAG: "0+2x60 120-4x30 0x60"}, 1800, False),
        Case("series vanishes", "the query ended", {UNREAD: "0+2x40 stale", LAG: "0+2x40 stale"}, 1500, False),
        Case("query restarts", "catching up after a restart",
             {UNREAD: "0x8 600-8x70", LAG: "0x8 180-2x70"}, 600, False),
    ),
)  # fmt: skip
