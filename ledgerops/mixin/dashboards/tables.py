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
    found: dict[str, Any] = {"noValue": NOTHING}
    if label.pixels is not None:
        found["custom.width"] = label.pixels
    if label.hidden:
        found["custom.hidden"] = True
    if label.wrap:
        found["custom.cellOptions"] = {"type": "auto", "wrapText": True}
    if label.links:
        found["links"] = [{"title": link.title, "url": address(link, site)} for link in label.links]
    return found


def _column(column: Column, site: Site) -> dict[str, Any]:
    found: dict[str, Any] = {"unit": column.unit, "noValue": NOTHING}
    if column.unit == ELAPSED:
        found["decimals"] = 1  # two units: Grafana counts those after the first
    if column.pixels is not None:
        found["custom.width"] = column.pixels
    if column.cell == "hidden":
        found["custom.hidden"] = True
    if column.names:
        found["mappings"] = [mapping(column.names)]
    cell = "color-text" if column.cell == "text" and (column.names or limited(column)) else CELLS[column.cell]
    if column.cell == "background":
        found["custom.align"] = "center"
    found["custom.cellOptions"] = {"type": cell, **({"mode": "basic"} if cell in ("gauge", "color-background") else {})}
    if column.cell == "gauge":
        found |= {"min": 0, "max": 1}
    if limited(column):
        bounds = [{"value": value, "color": colour} for value, colour in steps(column, site)]
        found["thresholds"] = {"mode": "absolute", "steps": bounds}
    return found


def _values(properties: dict[str, Any]) -> list[Any]:
    return [models.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()]
