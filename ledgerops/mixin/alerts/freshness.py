"""Freshness: the objective that readers feel, and the alerts on how fast its error budget burns.

A query's freshness is the age of the rows that it has not read yet, or the time since it was last seen,
whichever is larger. A moment counts as bad when that exceeds the limit, or when an expected query does not run at all,
or its driver is gone: a dead query has no lag, so its absence must count. Burn rates follow the table of Google's SRE
workbook (chapter "Alerting on SLOs"): 14.4 x over 1 h and 5 min, 6 x over 6 h and 30 min, 3 x over 1 d and 2 h, 1 x
over 3 d and 6 h.
"""

from dataclasses import dataclass

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import (
    ACTIVE,
    EXPECTED,
    LAG,
    LOST,
    SEEN,
    SILENCE,
    TRIGGER,
    alive,
    of_ending,
    once_a_step,
    step_seconds,
    worst,
)
from ledgerops.mixin.site import Site, duration

FRESHNESS, BAD, STEP = "query:freshness:seconds", "query:freshness_bad:bool", "query:freshness_bad:step_5m"
BUDGET = "query:freshness_budget:ratio"
HOUR, DAY = 3600.0, 86400.0
MAX_FINE_SECONDS = 2 * HOUR  # longer windows are made of STEP: a month at 15 s has 172,800 samples for each query
BUDGET_SECONDS = 120.0  # between two evaluations of the budget: it reads 8,640 samples for each query

DESCRIPTION = (
    "Results of {{ $labels.query }} were older than the limit for {{ $value | humanizePercentage }} of the window."
)
TICKET_RUNBOOK = """Freshness budget burns slowly: at this rate the error budget will not last for the period.

Meaning: over the last day or the last three days, results were too old for a larger share of the time than the
    objective allows. The share is not large enough to page.
Impact: small, but it adds up: the objective will be missed at the end of the period.
Diagnosis: 1. `avg_over_time(query:freshness_bad:bool{app="APP",query="QUERY"}[1d])` is the share of bad time.
    2. Run `ledgerops diagnose http://INSTANCE --query QUERY` at a bad moment, or with `--at TIME` from the recording.
Mitigation: find out at what times results are too old. Batches that overrun at peak hours need more capacity; single
    long gaps need a stable sink or source.
"""


@dataclass(frozen=True, slots=True)
class Burn:
    """Alert when the budget burns `factor` times too fast over both windows (seconds)."""

    factor: float
    long: float
    short: float


FAST = (Burn(14.4, HOUR, 300.0), Burn(6.0, 6 * HOUR, 1800.0))
SLOW = (Burn(3.0, DAY, 2 * HOUR), Burn(1.0, 3 * DAY, 6 * HOUR))


def records(site: Site) -> list[tuple[str, str]]:
    """Recording rules, (name, expression) in the order in which they build on each other."""
    lag = worst(site, LAG)
    quiet = site.series(SILENCE)
    expected = f"{worst(site, EXPECTED)} == 1"
    fresh = site.series(FRESHNESS)
    found = [
        (FRESHNESS, f"({lag} > {quiet} or {quiet} or {lag}) and on (job, app, query) {alive(site)}"),
        (
            BAD,
            # a query with a long trigger cannot be fresher than that: two of its intervals are allowed besides
            f"(({fresh} - 2 * {site.series(TRIGGER)}) > bool {site.freshness_seconds:g}) or "
            f"({expected} unless on (job, app, query) {alive(site)}) or "
            f"(max by (job, app, query) ({site.series(LOST)}) unless on (job, app, query) {alive(site)})",
        ),
    ]
    windows = sorted({window for burn in (*FAST, *SLOW) for window in (burn.long, burn.short)})
    found += [(_ratio(window), _share(site, window)) for window in windows if window <= MAX_FINE_SECONDS]
    found.append((STEP, _step(site)))
    found += [(_ratio(window), _share(site, window)) for window in windows if window > MAX_FINE_SECONDS]
    return found


def budget(site: Site) -> list[tuple[str, str]]:
    """The recording rule of the budget, which has a group of its own: it is evaluated every BUDGET_SECONDS."""
    return [(BUDGET, f"1 - ({_share(site, site.period_days * DAY)}) / {site.budget:g}")]


def _step(site: Site) -> str:
    """The bad share of each step, once. The window is a millisecond shorter than the step, because Prometheus 2 counts
    a sample at its beginning as well."""
    step = step_seconds(site)
    share = f"sum_over_time({site.series(BAD)}[{duration(step - 0.001)}]) / {step / site.evaluation_seconds:g}"
    return share + once_a_step(site)


def _ratio(window: float) -> str:
    return f"query:freshness_bad:ratio_{duration(window)}"


def _share(site: Site, window: float) -> str:
    """The bad share of a whole window. Divided by what the window can hold, not by what there is: a query that is five
    minutes old has not been bad for an hour."""
    scaled = window * site.time_scale
    fine = window <= MAX_FINE_SECONDS
    samples = scaled / (site.evaluation_seconds if fine else step_seconds(site))
    return f"sum_over_time({site.series(BAD if fine else STEP)}[{duration(scaled)}]) / {samples:g}"


def _burns(site: Site, burns: tuple[Burn, ...], seconds: float | None = None) -> str:
    """Not of a query that was lost within `seconds`, or the short window: LedgerDriverLost says so, which waits for a
    minute, too; and the budget counts that time."""
    least = max(60.0 * site.time_scale / site.evaluation_seconds, 1.0)
    return " or ".join(
        f"({site.series(_ratio(burn.long))} > {burn.factor * site.budget:g} "
        f"and {site.series(_ratio(burn.short))} > {burn.factor * site.budget:g} "
        f"unless on (job, app, query) max by (job, app, query) (sum_over_time({site.series(LOST)}"
        f"[{duration((seconds or burn.short) * site.time_scale)}])) >= {least:g})"
        for burn in burns
    )


WELL = {SEEN: "0+15x2000", ACTIVE: "1x2000", EXPECTED: "1x2000"}

PAGE = Alert(
    name="LedgerFreshnessPage", severity="critical", expression=lambda site: _burns(site, FAST), hold=30.0,
    summary="Results are too old, and the error budget is burning fast.",
    description=DESCRIPTION, names_cause=True, rule="freshness-breach", inhibits=("LedgerFreshnessTicket",),
    cases=(
        Case("fires", "a quarter of an hour at two minutes' lag", {**WELL, LAG: "0x240 120x80"}, 4700, True),
        Case("fires", "eight minutes of each of four hours",
             {**WELL, LAG: " ".join(["0x207 120x31"] * 4)}, 14385, True),
        Case("stays quiet", "four minutes of each of four hours",
             {**WELL, LAG: " ".join(["0x223 120x15"] * 4)}, 14385, False),
        Case("fires", "the query is dead",
             {SEEN: "0+15x240 stale", ACTIVE: "1x240 0x100", EXPECTED: "1x340"}, 4700, True),
        Case("stays quiet", "ten minutes of lag under a trigger of ten minutes",
             {**WELL, LAG: "600x340", "ledgerops_trigger_interval_seconds": "600x340"}, 4700, False),
        Case("stays quiet", "a minute and a half of lag", {**WELL, LAG: "0x240 120x6 0x80"}, 4700, False),
        Case("stays quiet", "a query that is new and five minutes behind",
             {SEEN: "_x200 3000+15x200", ACTIVE: "_x200 1x200", EXPECTED: "_x200 1x200",
              LAG: "_x200 120x20 0x200"}, 3300, False),
        Case("resolves", "fresh again for ten minutes", {**WELL, LAG: "0x240 120x60 0x120"}, 5400, False),
        Case("stays quiet", "it was gone for three quarters of an hour, and is back",
             {SEEN: "0+15x40 _x180 3300+15x60", ACTIVE: "1x40 stale _x179 1x60", EXPECTED: "1x40 stale _x179 1x60"},
             3400, False),
        Case("stays quiet", "an idle query that is scraped every two minutes",
             {SEEN: " ".join(f"{120 * n} _x7" for n in range(40)), ACTIVE: " ".join(["1 _x7"] * 40),
              EXPECTED: " ".join(["1 _x7"] * 40)}, 4700, False),
        Case("stays quiet", "the driver is gone: LedgerDriverLost fires",
             {SEEN: "0+15x240 stale", ACTIVE: "1x240 stale", EXPECTED: "1x240 stale"}, 5400, False),
        Case("stays quiet", "hours of lag of a query that reads all there is, and ends",
             {**WELL, LAG: "30000x340", of_ending(): "1x340"}, 4700, False),
        Case("series vanishes", "the query had ended",
             {SEEN: "0+15x240 stale", ACTIVE: "1x236 0x4 stale", EXPECTED: "1x236 stale"}, 5400, False),
        Case("query restarts", "away for a minute",
             {SEEN: "0+15x2000", ACTIVE: "1x240 0x4 1x200", EXPECTED: "1x500"}, 4200, False),
    ),
)  # fmt: skip
TICKET = Alert(
    name="LedgerFreshnessTicket", severity="warning", expression=lambda site: _burns(site, SLOW, 300.0), hold=300.0,
    summary="Results are too old too often; the error budget will not last.",
    description=DESCRIPTION, names_cause=True, runbook=TICKET_RUNBOOK,
    cases=(
        Case("fires", "three quarters of an hour of the first day", {**WELL, LAG: "120x400"}, 3300, True),
        Case("stays quiet", "five minutes of an hour", {**WELL, LAG: "0x40 120x20 0x400"}, 3600, False),
        Case("resolves", "good for six hours", {**WELL, LAG: "120x184 0x1700"}, 24600, False),
        Case("fires", "the driver was gone for three quarters of an hour",
             {SEEN: "0+15x40 _x180 3300+15x60", ACTIVE: "1x40 stale _x179 1x60", EXPECTED: "1x40 stale _x179 1x60"},
             4000, True),
        Case("series vanishes", "the query had ended",
             {SEEN: "0+15x40 stale", ACTIVE: "1x36 0x4 stale", EXPECTED: "1x36 stale"}, 3600, False),
        Case("query restarts", "away for a minute",
             {SEEN: "0+15x400", ACTIVE: "1x40 0x4 1x400", EXPECTED: "1x400"}, 3600, False),
    ),
)  # fmt: skip
