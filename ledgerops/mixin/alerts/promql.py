"""Pieces of PromQL and of alert texts that several alerts share."""

import re

from ledgerops.mixin.site import Site, duration
from ledgerops.model.records import CONTINUOUS

BY = "by (job, app, query)"
ACTIVE, LAST_ACTIVE = "ledgerops_query_active", "query:active:last_step_5m"
KNOWN = "query:active:last_12h"
EXPECTED, LOST, STATUS = "ledgerops_query_expected", "query:lost", "ledgerops_query_status"
LAG = "ledgerops_query_lag_seconds"
SILENCE, TRIGGER = "query:silence:seconds", "query:trigger:seconds"
TAKEN_OVER = ("job, app, query", "job, app, instance")  # by which a query that runs now stands for one that is gone
SEEN, LAST_SEEN = "ledgerops_last_seen_timestamp_seconds", "query:last_seen:last_step_5m"
STEP_SECONDS = 300.0  # between two samples of a series of which long windows are made
REMEMBERED_SECONDS = 12 * 3600.0  # for so long a driver that stopped answering is reported
HAS_FAILED = 'status="failed"'  # of STATUS: 1 for each query of each driver whose last run failed, 0 for the others
STOPPED_SECONDS = 7 * 86400.0  # for so long it is known of one that its queries had ended
# what is known last of a query: it failed, it ran, it ran and would have ended by itself; 0 if it had ended
FAILED, RUNS, ENDS = 2, 1, 0.5


def lines(expression: str) -> str:
    """The expression with each operand of a set operator on a line of its own."""
    return re.sub(r" (and|or|unless) ", r"\n\1 ", expression)


def worst(site: Site, metric: str, *more: str) -> str:
    """The largest value of a metric for each query, over partitions and drivers."""
    return f"max {BY} ({site.series(metric, *more)})"


def total(site: Site, metric: str, *more: str) -> str:
    """The sum of a metric for each query."""
    return f"sum {BY} ({site.series(metric, *more)})"


def too_old(site: Site) -> str:
    """The age of the oldest row or commit that each query has not read, where it is beyond the objective and two
    trigger intervals, of one that does not end by itself."""
    return f"{worst(site, LAG)} > {site.freshness_seconds:g} + 2 * {site.series(TRIGGER)}"


def ends(site: Site) -> str:
    """The queries that process what is there, and end: nobody promised when."""
    return site.series("ledgerops_query_info", 'trigger=~"available_now|once"')


def unless_ends(site: Site) -> str:
    """Appended to an expression: without those."""
    return f"unless on (job, app, query) {ends(site)}"


def of_ending(trigger: str = "available_now") -> str:
    """The series that says so, in a case."""
    return f'ledgerops_query_info{{trigger="{trigger}"}}'


def growth_window(site: Site, seconds: float = 300.0) -> str:
    """Over which a backlog must grow: one long batch makes a saw-tooth, not a slope."""
    return duration(max(seconds * site.time_scale, 3 * site.evaluation_seconds))


def grows(site: Site, series: str) -> str:
    """Where a series has grown for five minutes; where batches are longer, and nothing was told for so long, for an
    hour."""
    window, long = growth_window(site), growth_window(site, 3600.0)
    return f"(deriv({series}[{window}]) > 0 or (changes({series}[{window}]) == 0 and deriv({series}[{long}]) > 0))"


def born_or_increased(counter: str, started: str, window: str, look_back: str, young: float) -> str:
    """What a query's counter rose by in a window. A counter is born with its first: of a query that `started` less than
    `young` seconds ago, all counts that was not there for `look_back` before the window."""
    on = f"on (job, app, instance, query) (time() - {started} < {young:g})"
    born = f"{counter} and {on} unless last_over_time({counter}[{look_back}] offset {window})"
    return f"(({born}) or increase({counter}[{window}]))"


def of_rule(site: Site, metric: str, rule: str, *more: str) -> str:
    """1 for each query for which the rule is reported: `metric` is that of findings or of root causes."""
    matcher = f'rule="{rule}"'
    return f"{worst(site, metric, matcher, *more)} == 1"


def alive(site: Site) -> str:
    """1 for each query of which a run is on."""
    return f"{worst(site, 'ledgerops_query_active')} == 1"


def step_seconds(site: Site) -> float:
    """Between two samples of a series of which long windows are made."""
    return max(STEP_SECONDS * site.time_scale, site.evaluation_seconds)


def once_a_step(site: Site) -> str:
    """Appended to an expression: only the evaluation in which a step ends has a sample.

    A group with that interval would do the same, but promtool evaluates every group at each of its steps."""
    return f" and on () (vector(time()) % {step_seconds(site):g} < {site.evaluation_seconds:g})"


def remembered(site: Site) -> list[tuple[str, str]]:
    """The recording rules (name, expression) that `lost` and the dashboards are made of: twelve hours of every scrape
    are thousands of samples for each query. Their window is two steps, so that the last value before a driver is gone
    is among them. A query that was taken over is remembered as ended on the driver that is gone: whatever ends later
    where it went is no second loss."""
    step, active = once_a_step(site), site.series(ACTIVE)
    gone = f"{site.series(KNOWN)} > 0 unless on (job, app, instance, query) {active}"
    over = " or ".join(f"0 * ({gone} and on ({by}) ({active} == 1))" for by in TAKEN_OVER)
    seen = f"last_over_time({site.series(SEEN)}[{duration(2 * step_seconds(site))}]){step}"
    return [
        (KNOWN, _last(site, REMEMBERED_SECONDS)),
        (LAST_ACTIVE, f"({over} or {_recent(site)}){step}"),
        (LAST_SEEN, seen),
        (LOST, lost(site)),
    ]


def _recent(site: Site) -> str:
    """What each driver said last, in two steps: FAILED, RUNS, ENDS of one that runs and will end by itself, or 0."""
    window = duration(2 * step_seconds(site))
    failing = f"max without (status) (last_over_time({site.series(STATUS, HAS_FAILED)}[{window}])) == 1"
    active = f"last_over_time({site.series(ACTIVE)}[{window}])"
    ending = f"last_over_time({ends(site)}[{window}])"
    return f"{FAILED} * ({failing}) or {active} unless on (job, app, instance, query) {ending} or {ENDS:g} * {active}"


def _last(site: Site, seconds: float) -> str:
    """The same, up to so many seconds back."""
    return f"{_recent(site)} or last_over_time({site.series(LAST_ACTIVE)}[{site.window(seconds)}])"


def lost(site: Site) -> str:
    """1 for each query that ran, or had failed, on a driver which stopped answering, and that nothing has taken over.

    Another driver that runs the query has taken it over, and so has one of the same application that runs others at the
    same address: it was started there on purpose. A query that ends when it has processed what there was
    (`available_now`, `once`) is not among them, unless it failed.
    """
    active, known = site.series(ACTIVE), site.series(KNOWN)
    taken_over = " ".join(f"unless on ({by}) ({active} == 1)" for by in TAKEN_OVER)
    return f"({known} >= {RUNS}) ^ 0 unless on (job, app, instance, query) {active} {taken_over}"


def stopped(site: Site, by: str) -> str:
    """0 for each `by` whose drivers said before they went that none of their queries runs any more."""
    return f"max by ({by}) ({_last(site, STOPPED_SECONDS)}) == 0"


def base_records(site: Site) -> list[tuple[str, str]]:
    """Recording rules (name, expression) of what several alerts ask of each query: SILENCE, the seconds since it was
    last seen by a driver that runs it, at the time of the scrape, and TRIGGER, its interval, 0 where that is not known.
    One that processes what there is, and ends, has no interval: nobody promised when, and what compares with it leaves
    it out. In continuous mode Spark tells nothing of a query, so its silence means nothing."""
    on = f"and on (job, app, instance, query) {site.series(ACTIVE)} == 1"
    known, running = worst(site, "ledgerops_trigger_interval_seconds"), worst(site, ACTIVE)
    continuous = site.series("ledgerops_query_info", f'trigger=~"{CONTINUOUS}( .+)?"')  # the label has the interval
    quiet = f"timestamp({site.series(SEEN)}) - {site.series(SEEN)}"
    return [
        (SILENCE, f"max {BY} (({quiet}) {on}) unless on (job, app, query) {continuous}"),
        (TRIGGER, f"({known} or 0 * {running}) {unless_ends(site)}"),
    ]


def cause(site: Site) -> str:
    """Template text with the root cause and what to do first, asked of Prometheus when the alert is sent."""
    said = "{{ range . }}{{ .Labels.summary }} Do first: {{ .Labels.action }} ({{ .Labels.rule }}){{ end }}"
    return _asked(site, "rule, summary, action", 'rank="1"', said, "No cause is known yet.")


def step(site: Site, rule: str, unknown: str) -> str:
    """Template text with the first step that fits the query, where a rule is its root cause; else `unknown`."""
    return _asked(site, "action", f'rule="{rule}"', "{{ range . }}{{ .Labels.action }}{{ end }}", unknown)


def _asked(site: Site, by: str, which: str, said: str, unknown: str) -> str:
    selector = site.series("ledgerops_root_cause_info", which, "query=%q", "app=%q").replace('"', '\\"')
    ask = f'{{{{ with printf "max by ({by}) ({selector})" $labels.query $labels.app | query }}}}'
    return f"{ask}{said}{{{{ else }}}}{unknown}{{{{ end }}}}"
