"""Tables: one row for each set of labels, a column for each label that is shown and for each target."""

from typing import Any

from ledgerops.mixin.dashboards.model import ELAPSED, Column, Label, Panel
from ledgerops.mixin.dashboards.panels import address, lettered
from ledgerops.mixin.dashboards.sdk import common_builders, models
from ledgerops.mixin.dashboards.styles import limited, mapping, steps
from ledgerops.mixin.site import Site

NOTHING = "–"  # in a cell; without it each empty cell would say what an empty table means
CELLS = {"text": "auto", "background": "color-background", "gauge": "gauge", "hidden": "auto"}


def table(made: Any, panel: Panel, site: Site) -> Any:
    """The builder with columns, their order, and the rows sorted by the worst."""
    for label in panel.labels:
        made = made.override_by_name(label.title, _values(_label(label, site)))
    for target in panel.targets:
        if isinstance(target, Column):
            made = made.override_by_name(target.legend, _values(_column(target, site)))
    made = made.sort_by(
        [common_builders.TableSortByFieldState().display_name(title).desc(not panel.low) for title in panel.order]
    )
    for name, options in transformations(panel):
        made = made.with_transformation(models.DataTransformerConfig(id_val=name, options=options))
    return made


def transformations(panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    """Rows of all targets joined by their labels; only the labels that are shown, in their order."""
    names = {f"Value #{ref}": target.legend for ref, target in lettered(panel)}
    if len(panel.targets) == 1:
        names = {"Value": panel.targets[0].legend}
    shown = {label.name: label.title for label in panel.labels}
    titles = [*_titles(panel, before=True), *shown.values(), *_titles(panel, before=False)]
    index = {title: number for number, title in enumerate(titles)}
    renamed = {**shown, **names}
    return [
        ("merge", {}),
        (
            "organize",
            {
                "excludeByName": dict.fromkeys(("Time", *hidden(panel)), True),
                "indexByName": {name: index[title] for name, title in renamed.items()},
                "renameByName": renamed,
            },
        ),
    ]


def hidden(panel: Panel) -> list[str]:
    """Labels that its targets have and it does not show."""
    shown = {label.name for label in panel.labels}
    return [name for name in ("job", "app", "instance", "query", "__name__") if name not in shown]


def _titles(panel: Panel, before: bool) -> list[str]:
    """Columns of values: what is coloured as a whole comes first, before the labels."""
    columns = [target for target in panel.targets if isinstance(target, Column)]
    return [column.legend for column in columns if (column.cell == "background") == before]


def _label(label: Label, site: Site) -> dict[str, Any]:
    return {
        "noValue": NOTHING,
        "custom.width": label.pixels,
        "custom.hidden": label.hidden or None,
        "custom.cellOptions": {"type": "auto", "wrapText": True} if label.wrap else None,
        "links": [{"title": link.title, "url": address(link, site)} for link in label.links] or None,
    }


def _column(column: Column, site: Site) -> dict[str, Any]:
    cell = "color-text" if column.cell == "text" and (column.names or limited(column)) else CELLS[column.cell]
    mode = {"mode": "basic"} if cell in ("gauge", "color-background") else {}
    least, most = (0, 1) if column.cell == "gauge" else (None, None)
    bounds = [{"value": value, "color": colour} for value, colour in steps(column, site)]
    return {
        "unit": column.unit,
        "noValue": NOTHING,
        "decimals": 1 if column.unit == ELAPSED else None,  # two units: Grafana counts those after the first
        "custom.width": column.pixels,
        "custom.hidden": column.cell == "hidden" or None,
        "mappings": [mapping(column.names)] if column.names else None,
        "custom.align": "center" if column.cell == "background" else None,
        "custom.cellOptions": {"type": cell, **mode},
        "min": least,
        "max": most,
        "thresholds": {"mode": "absolute", "steps": bounds} if limited(column) else None,
    }


def _values(properties: dict[str, Any]) -> list[Any]:
    """Those that are given."""
    return [models.DynamicConfigValue(id_val=name, value=each) for name, each in properties.items() if each is not None]
