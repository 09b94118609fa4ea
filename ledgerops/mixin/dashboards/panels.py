"""How a panel looks, in either schema: unit, limits, colours, legend, links, columns."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase as LETTERS
from typing import Any

from ledgerops.mixin.dashboards.model import BAD, BUDGET, COLD, GOOD, WARN, Column, Limit, Panel, Target
from ledgerops.mixin.dashboards.sdk import Kit, common, common_builders
from ledgerops.mixin.site import Site

KEEP = "${__url_time_range}&${datasource:queryparam}&${job:queryparam}&${instance:queryparam}"
COLOURS = {"good": GOOD, "warn": WARN, "bad": BAD, "cold": COLD}


def text(panel: Panel) -> str:
    """The description."""
    return panel.help if panel.waits is None else f"{panel.help} Empty until there is {panel.waits}."


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


def is_instant(panel: Panel) -> bool:
    return panel.kind in ("stat", "table", "bargauge")


def format_of(panel: Panel) -> str:
    return panel.kind if panel.kind in ("table", "heatmap") else "time_series"


def limit(value: Limit | None, site: Site) -> float | None:
    """A limit at a site."""
    return value(site) if callable(value) else value


def dressed(made: Any, panel: Panel, site: Site, kit: Kit) -> Any:
    """The builder with everything that does not depend on the data."""
    made = made.unit(panel.unit).thresholds(_thresholds(panel, site, kit))
    if panel.kind not in ("state-timeline", "table"):
        made = made if panel.least is None else made.min(panel.least)
        made = made if panel.most is None else made.max(panel.most)
    if panel.names:
        made = made.mappings([_mapping(panel.names, kit)])
    for target in panel.targets:
        if isinstance(target, Column):
            made = made.override_by_name(target.legend, _column(target, site, kit))
    return _styled(made, panel, kit)


def links(panel: Panel) -> list[tuple[str, str]]:
    """Title and address of what a click opens, for the query that was clicked."""
    if panel.link is None:
        return []
    chosen = "${__data.fields.query}" if panel.kind == "table" else "${__field.labels.query}"
    return [(f"Open {panel.link.removeprefix('ledgerops-')}", f"/d/{panel.link}?{KEEP}&var-query={chosen}")]


def transformations(panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    """Of a table: one row for each set of labels, a column for each target."""
    if panel.kind != "table":
        return []
    names = {f"Value #{ref}": target.legend for ref, target in lettered(panel)}
    if len(panel.targets) == 1:
        names["Value"] = panel.targets[0].legend
    left_out = dict.fromkeys(("Time", "__name__", *panel.hides), True)
    return [("merge", {}), ("organize", {"excludeByName": left_out, "renameByName": names})]


def _limited(panel: Panel | Column) -> bool:
    return panel.warn is not None or panel.bad is not None


def _thresholds(panel: Panel | Column, site: Site, kit: Kit) -> Any:
    steps = [kit.models.Threshold(value=value, color=colour) for value, colour in _steps(panel, site)]
    return kit.builders.ThresholdsConfig().mode(kit.models.ThresholdsMode.ABSOLUTE).steps(steps)


def _steps(panel: Panel | Column, site: Site) -> list[tuple[float | None, str]]:
    """Values from which a colour holds, the lowest first; None is from below."""
    given = ((limit(panel.warn, site), WARN), (limit(panel.bad, site), BAD))
    known = [(value, colour) for value, colour in given if value is not None]
    if panel.low:
        known.reverse()
        return list(zip((None, *(value for value, _ in known)), (*(colour for _, colour in known), GOOD), strict=True))
    return [(None, GOOD), *known]


def _mapping(names: Sequence[tuple[str, str]], kit: Kit) -> Any:
    options = {}
    for number, (value, shown) in enumerate(names):
        colour, _, word = shown.partition(":")
        options[value] = kit.models.ValueMappingResult(text=word, color=COLOURS[colour], index=number)
    return kit.models.ValueMap(options=options)


def _column(column: Column, site: Site, kit: Kit) -> list[Any]:
    properties: dict[str, Any] = {"unit": column.unit}
    if column.names:
        properties["mappings"] = [_mapping(column.names, kit)]
    if column.names or _limited(column):
        properties["custom.cellOptions"] = {"type": "color-text"}
        steps = [{"value": value, "color": colour} for value, colour in _steps(column, site)]
        properties["thresholds"] = {"mode": "absolute", "steps": steps}
    return [kit.models.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()]


def _styled(made: Any, panel: Panel, kit: Kit) -> Any:
    coloured = kit.builders.FieldColor().mode(kit.models.FieldColorModeId.THRESHOLDS)
    if panel.kind == "timeseries":
        palette = getattr(kit.models.FieldColorModeId, "PALETTE_COLORBLIND", None)  # the classic schema has none yet
        made = made if palette is None else made.color_scheme(kit.builders.FieldColor().mode(palette))
        return _lines(made, panel)
    if panel.kind == "stat":
        mode = common.BigValueColorMode.VALUE if panel.names or _limited(panel) else common.BigValueColorMode.NONE
        made = made.color_mode(mode).graph_mode(common.BigValueGraphMode.NONE)
    return made.color_scheme(coloured) if panel.kind in ("stat", "state-timeline", "bargauge") else made


def _lines(made: Any, panel: Panel) -> Any:
    made = made.line_width(1).fill_opacity(40 if panel.stacked else 10).show_points(common.VisibilityMode.NEVER)
    made = made.span_nulls(False).legend(
        common_builders.VizLegendOptions()
        .show_legend(True)
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull", "max"])
    )
    made = made.tooltip(
        common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    )
    if panel.stacked:
        made = made.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    if _limited(panel):
        style = common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        made = made.thresholds_style(style)
    return made
