"""Pieces of PromQL and of alert texts that several alerts share."""

from __future__ import annotations

import re

from ledgerops.mixin.site import Site

BY = "by (job, app, query)"
CAUSE = "[cause]"  # in a description: stands for what `cause` gives
REMEMBERED_SECONDS = 12 * 3600.0  # for so long a driver that stopped answering is reported


def lines(expression: str) -> str:
    """The expression with each operand of a set operator on a line of its own."""
    return re.sub(r" (and|or|unless) ", r"\n\1 ", expression)


def worst(site: Site, metric: str, *more: str) -> str:
    """The largest value of a metric for each query, over partitions and drivers."""
    return f"max {BY} ({site.series(metric, *more)})"


def total(site: Site, metric: str, *more: str) -> str:
    """The sum of a metric for each query."""
    return f"sum {BY} ({site.series(metric, *more)})"


def of_rule(site: Site, metric: str, rule: str) -> str:
    """1 for each query for which the rule is reported: `metric` is that of findings or of root causes."""
    matcher = f'rule="{rule}"'
    return f"{worst(site, metric, matcher)} == 1"


def alive(site: Site) -> str:
    """1 for each query of which a run is on."""
    return f"{worst(site, 'ledgerops_query_active')} == 1"


def lost(site: Site) -> str:
    """1 for each query that ran on a driver which stopped answering, and that no other driver runs now.

    A query that ends when it has processed what there was (`available_now`, `once`) is not among them.
    """
    active, memory = site.series("ledgerops_query_active"), site.window(REMEMBERED_SECONDS)
    ends = site.series("ledgerops_query_info", 'trigger=~"available_now|once"')
    return (
        f"(last_over_time({active}[{memory}]) == 1) unless on (job, app, instance, query) {active} "
        f"unless on (job, app, query) ({active} == 1) "
        f"unless on (job, app, instance, query) last_over_time({ends}[{memory}])"
    )


def silent(site: Site) -> str:
    """Seconds since each active query was last seen; of several drivers only those that run it count."""
    seen, active = "ledgerops_last_seen_timestamp_seconds", "ledgerops_query_active"
    on = f"and on (job, app, instance, query) {site.series(active)} == 1"
    return f"max {BY} ((time() - {site.series(seen)}) {on})"


def interval(site: Site, like: str) -> str:
    """The trigger interval of each query that `like` has; 0 where it is not known."""
    return f"({worst(site, 'ledgerops_trigger_interval_seconds')} or 0 * ({like}))"


def cause(site: Site) -> str:
    """Template text with the root cause and what to do first, asked of Prometheus when the alert is sent."""
    selector = site.series("ledgerops_root_cause_info", 'rank="1"', "query=%q", "app=%q").replace('"', '\\"')
    return (
        f'{{{{ with printf "max by (rule, summary, action) ({selector})" $labels.query $labels.app | query }}}}'
        "{{ range . }}Root cause: {{ .Labels.summary }} First step: {{ .Labels.action }} ({{ .Labels.rule }}){{ end }}"
        "{{ else }}No cause is known yet.{{ end }}"
    )
