"""How a panel is drawn: colours, words for values, legend, axis, and what it shows when there is no data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ledgerops.mixin.dashboards.model import BAD, COLD, GOOD, UNKNOWN, WARN, Column, Panel
from ledgerops.mixin.dashboards.panels import empty, limit, limits
from ledgerops.mixin.dashboards.sdk import common, common_builders, dashboard, heatmap, heatmap_models, models
from ledgerops.mixin.site import Site

COLOURS = {"good": GOOD, "warn": WARN, "bad": BAD, "cold": COLD, "unknown": UNKNOWN}
LOWEST = -1e12  # below every measured value: the colour under it is that of a panel without one
LEGEND_PIXELS = 320
AXIS_PIXELS = 110  # the longer names of topics are cut at the left
LEGEND_COLUMNS = 24  # of the grid: in a narrower panel a legend beside the plot would leave a third of it


def styled(made: Any, panel: Panel, site: Site) -> Any:
    """The builder with everything that does not depend on the data."""
    made = made.unit(panel.unit).no_value(empty(panel)).thresholds(_thresholds(panel, site))
    if panel.kind not in ("state-timeline", "table", "heatmap"):
        made = made if panel.least is None else made.min(panel.least)
        made = made if panel.most is None else made.max(panel.most)
    if panel.names:
        made = made.mappings([mapping(panel.names)])
    return _STYLES[panel.kind](made, panel, site)


def limited(panel: Panel | Column) -> bool:
    """Whether a panel or column has a limit for warning or for bad."""
    return panel.warn is not None or panel.bad is not None


def steps(panel: Panel | Column, site: Site) -> list[tuple[float | None, str]]:
    """Values from which a colour holds, the lowest first. What has no value has the first one: grey."""
    given = ((limit(panel.warn, site), WARN), (limit(panel.bad, site), BAD))
    known = [(value, colour) for value, colour in given if value is not None]
    if not known:
        return [(None, UNKNOWN)]
    if panel.low:
        known.reverse()
        bounds = (LOWEST, *(value for value, _ in known))
        return [(None, UNKNOWN), *zip(bounds, (*(colour for _, colour in known), GOOD), strict=True)]
    return [(None, UNKNOWN), (LOWEST, GOOD), *known]


def mapping(names: Sequence[tuple[str, str]]) -> Any:
    """Words and colours of values."""
    options = {}
    for number, (value, shown) in enumerate(names):
        colour, _, word = shown.partition(":")
        options[value] = models.ValueMappingResult(text=word, color=COLOURS[colour], index=number)
    return models.ValueMap(options=options)


def _thresholds(panel: Panel, site: Site) -> Any:
    found = [models.Threshold(value=value, color=colour) for value, colour in steps(panel, site)]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(found)


def _colour(made: Any, mode: models.FieldColorModeId) -> Any:
    return made.color_scheme(dashboard.FieldColor().mode(mode))


def _stat(made: Any, panel: Panel, site: Site) -> Any:
    coloured = panel.names or limited(panel)
    mode = common.BigValueColorMode.BACKGROUND_SOLID if coloured else common.BigValueColorMode.NONE
    shown = {"value": "value", "name": "name", "both": "value_and_name"}[panel.show]
    made = _colour(made.color_mode(mode), models.FieldColorModeId.THRESHOLDS)
    made = made.graph_mode(common.BigValueGraphMode.NONE).text_mode(common.BigValueTextMode(shown))
    # large enough to be read, small enough for a sentence
    return made.text(common_builders.VizTextDisplayOptions().title_size(18).value_size(30))


def _timeline(made: Any, panel: Panel, site: Site) -> Any:
    # with the mode `thresholds` Grafana merges neighbours by threshold and shows its name in place of the words
    made = _colour(made, models.FieldColorModeId.PALETTE_CLASSIC).merge_values(True).row_height(0.85)
    made = made.show_value(common.VisibilityMode.AUTO).fill_opacity(90).line_width(0)
    return made.legend(common_builders.VizLegendOptions().show_legend(False))


def _bars(made: Any, panel: Panel, site: Site) -> Any:
    made = _colour(made, models.FieldColorModeId.THRESHOLDS).orientation(common.VizOrientation.HORIZONTAL)
    return made.display_mode(common.BarGaugeDisplayMode.BASIC).show_unfilled(True)


def _heatmap(made: Any, panel: Panel, site: Site) -> Any:
    # a scheme is turned round on a dark page: there its largest values are the palest
    colours = heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.OPACITY).fill(WARN).steps(64)
    colours = colours.scale(heatmap_models.HeatmapColorScale.EXPONENTIAL).exponent(0.5)
    # cells of 0 are left out: an empty bucket is no batch, an empty backlog is none
    made = made.calculate(False).color(colours).filter_values(heatmap.FilterValueRange().le(1e-9)).cell_gap(1)
    axis = heatmap.YAxisConfig().unit(panel.unit).axis_placement(common.AxisPlacement.LEFT).axis_width(AXIS_PIXELS)
    # cells are numbers of batches or offsets, whatever the axis shows
    return made.y_axis(axis).unit("short").decimals(0).show_legend()


def _lines(made: Any, panel: Panel, site: Site) -> Any:
    # the palette by name often gives two lines of one plot the same colour
    made = _colour(made, models.FieldColorModeId.PALETTE_CLASSIC)
    made = made.line_width(1 if panel.stacked else 2).fill_opacity(50 if panel.stacked else 0)
    made = made.show_points(common.VisibilityMode.NEVER).span_nulls(False).legend(_legend(panel))
    made = made.tooltip(
        common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    )
    if panel.most is None:
        # the limit is in sight, and a line at 0 does not stand under "100 rows/s"
        made = made.axis_soft_max(max([1.0, *limits(panel, site)]))
    if panel.stacked:
        made = made.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    if limited(panel):
        style = common_builders.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
        made = made.thresholds_style(style)
    return made


def _legend(panel: Panel) -> Any:
    """Few lines: a list below. Many, over the whole page: a table beside the plot, the largest first."""
    made = common_builders.VizLegendOptions().show_legend(True)
    many = any("{{" in target.legend for target in panel.targets)
    if not many or panel.width < LEGEND_COLUMNS:
        return made.display_mode(common.LegendDisplayMode.LIST).placement(common.LegendPlacement.BOTTOM).calcs([])
    made = made.display_mode(common.LegendDisplayMode.TABLE).placement(common.LegendPlacement.RIGHT)
    sort = "Min" if panel.low else "Max"
    return made.width(LEGEND_PIXELS).calcs([sort.lower()]).sort_by(sort).sort_desc(not panel.low)


_STYLES: Mapping[str, Callable[[Any, Panel, Site], Any]] = {
    "stat": _stat,
    "state-timeline": _timeline,
    "bargauge": _bars,
    "heatmap": _heatmap,
    "timeseries": _lines,
    "table": lambda made, panel, site: made,
}
