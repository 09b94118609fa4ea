"""Series cut: a driver left out series of source partitions, because a query or the driver reached its budget.

Meaning: a query has more source partitions, operators or phases than its budget of series has room for (settings
    `series_per_query` and `series_total`). The partitions that are furthest behind were kept.
Impact: panels by partition do not show all partitions. Sums and maxima of a query hold for all of them
    (`ledgerops_query_backlog_offsets`, `ledgerops_query_lag_seconds`,
    `ledgerops_query_retention_headroom_seconds`), so no other alert is affected.
Diagnosis: 1. `ledgerops_series_dropped_total{instance="INSTANCE"}` is the number of series that were left out.
    2. `count by (query) (ledgerops_source_backlog_offsets{instance="INSTANCE"})` shows which queries have many
    partitions.
Mitigation: raise `series_per_query` if Prometheus has room: each source partition has three series. Raise
    `series_total` only together with the `sample_limit` of the scrape job. The alert ends when the driver starts again.
"""

from ledgerops.mixin.alerts.model import Alert, Case

DROPPED = "ledgerops_series_dropped_total"

ALERT = Alert(
    name="LedgerSeriesCut", severity="info",
    expression=lambda site: f"max by (job, app, instance) ({site.series(DROPPED)}) > 0", hold=60.0,
    summary="A driver has more series than its budget.",
    description='{{ $labels.instance }} left out {{ $value | printf "%.0f" }} series of source partitions.',
    runbook=__doc__, page="ledgerops-resources", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "a query has more partitions than its budget", {DROPPED: "0x8 1300x40"}, 300, True),
        Case("stays quiet", "all series fit", {DROPPED: "0x48"}, 300, False),
        Case("resolves", "the driver was started with a larger budget", {DROPPED: "0x8 1300x12 0x40"}, 700, False),
        Case("series vanishes", "the driver ended", {DROPPED: "1300x8 stale"}, 700, False),
    ),
)  # fmt: skip
