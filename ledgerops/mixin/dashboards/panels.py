"""What a panel asks and shows: its title with the limit, its description, its expressions, and links."""

from string import ascii_uppercase as LETTERS

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import BUDGET, Limit, Link, Panel, Target
from ledgerops.mixin.site import Site

HOUR_SECONDS = 3600
KEEP = "${__url_time_range}&${datasource:queryparam}&${job:queryparam}"
OF_ROW = "var-app=${__data.fields.app}&var-query=${__data.fields.query}"
OPEN_QUERY = Link("Open the query", f"/d/ledgerops-query?{KEEP}&{OF_ROW}&var-instance=${{__data.fields.instance}}")
# most alerts have no instance, and a link would pass what an empty cell shows
OPEN_QUERY_OF_ALERT = Link("Open the query", f"/d/ledgerops-query?{KEEP}&{OF_ROW}")
OPEN_STATE = Link("Open its state", OPEN_QUERY.url.replace("ledgerops-query", "ledgerops-state"))
OPEN_SLO = Link("Open its freshness budget", f"/d/ledgerops-slo?{KEEP}&{OF_ROW}")
OPEN_RULE = Link("Read what to do", "{problems}/${__data.fields.rule}.md")
OPEN_PROBLEM = Link("Read what to do", "{problems}/${__data.fields.problem}.md")


def titled(panel: Panel, site: Site) -> str:
    """The title, and after it where good ends: a limit that only the tooltip shows is not seen at night."""
    if panel.kind in ("table", "state-timeline", "heatmap") or panel.names:
        return panel.title
    if not (known := limits(panel, site)):
        return panel.title
    first = max(known) if panel.low else min(known)
    if first == thresholds.ANY:
        return f"{panel.title} · good: 0"
    return f"{panel.title} · good {'from' if panel.low else 'below'} {_written(first, panel.unit)}"


def _written(value: float, unit: str) -> str:
    if unit == "percentunit":
        return thresholds.percent(value)
    if unit == "s":
        if value % HOUR_SECONDS == 0:
            return f"{value / HOUR_SECONDS:g} h"
        return f"{value:g} s" if value >= 1 else thresholds.millis(value)
    return f"{value:g}"


def text(panel: Panel) -> str:
    """Its description, which also says what must happen before it shows data."""
    return panel.help if panel.waits is None else f"{panel.help} No data without {panel.waits}."


def empty(panel: Panel) -> str:
    """What the panel says when there is no data: what it needs, never a value."""
    return panel.empty or (f"needs {panel.waits}" if panel.waits else "not measured")


def lettered(panel: Panel) -> list[tuple[str, Target]]:
    """Its targets, each with the letter by which Grafana knows it."""
    if len(panel.targets) > len(LETTERS):
        raise ValueError(
            f"{panel.title} has {len(panel.targets)} targets, and there are {len(LETTERS)} letters for them"
        )
    return list(zip(LETTERS, panel.targets, strict=False))


def expression(target: Target, site: Site) -> str:
    """A target's PromQL at a site, with Grafana's variables still in it."""
    return target.expr.replace(BUDGET, f"{site.budget:g}")


def format_of(panel: Panel) -> str:
    """Grafana's format of the answer: `heatmap` only for a histogram's buckets, which it subtracts from each other."""
    if panel.kind == "heatmap":
        return "heatmap" if any(target.legend == "{{le}}" for target in panel.targets) else "time_series"
    return "table" if panel.kind == "table" else "time_series"


def limit(value: Limit | None, site: Site) -> float | None:
    """A limit at a site."""
    return value(site) if callable(value) else value


def limits(panel: Panel, site: Site) -> list[float]:
    """The limits that a panel has, at a site."""
    return [found for found in (limit(panel.warn, site), limit(panel.bad, site)) if found is not None]


def address(link: Link, site: Site) -> str:
    """A link's address at a site."""
    return link.url.replace("{problems}", site.runbooks)
