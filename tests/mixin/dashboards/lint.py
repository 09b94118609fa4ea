"""What dashboard-linter does not look at and people see at once: a rule for each way in which a page may mislead them.

A rule takes a dashboard's JSON and yields a complaint for each panel, annotation or column that breaks it. What all
panels of a kind have in common (`dashboards/styles.py`) is not asked of each.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ledgerops.mixin.dashboards.status import NAMES, NUMBERS
from ledgerops.mixin.dashboards.styles import COLOURS

Board = dict[str, Any]
GRID_PIXELS = 51  # of a column of the grid, on a screen of 1,280 pixels
GRID_ROW_PIXELS = 38
TIMELINE_PIXELS = 85  # of a state timeline: its title, its axis and its margins
LETTER_PIXELS = 7.2  # of a panel's title
HEADER_LETTER_PIXELS, HEADER_PIXELS = 7.0, 16  # of the title of a column; its margins
ARROW_PIXELS = 20  # of the arrow beside the title of a column by which the table is sorted
MIN_PIXELS = 150  # for the column that takes what is left
SERIES_OF_DATA = re.compile(r"\{\{(query|instance|executor|partition|topic|app|alertname|plan)\}\}")
STEP = "$__interval"  # in an expression: how far its evaluations are apart, which grows with the page's time
MIN_STEP = "1m"


def panels(board: Board) -> Iterator[Board]:
    for panel in board["panels"]:
        if panel["type"] != "row":
            yield panel
        yield from panel.get("panels", ())


def of_kind(board: Board, *kinds: str) -> Iterator[Board]:
    return (panel for panel in panels(board) if panel["type"] in kinds)


def defaults(panel: Board) -> Board:
    return panel["fieldConfig"]["defaults"]


def legends(panel: Board) -> str:
    return " ".join(target.get("legendFormat", "") for target in panel["targets"])


def expressions(panel: Board) -> str:
    return " ".join(target["expr"] for target in panel["targets"])


def columns(panel: Board) -> Mapping[str, Board]:
    """Properties of each column of a table, by its title."""
    found: dict[str, Board] = {}
    for override in panel["fieldConfig"].get("overrides", ()):
        properties = {each["id"]: each.get("value") for each in override["properties"]}
        found[override["matcher"]["options"]] = properties
    return found


def timelines_show_words(board: Board) -> Iterator[str]:
    for panel in of_kind(board, "state-timeline"):
        if not defaults(panel).get("mappings"):
            yield f"{panel['title']}: no words for its values"


def marks_are_moments(board: Board) -> Iterator[str]:
    """An annotation that lasts is a region that paints over every plot."""
    for mark in board["annotations"]["list"]:
        expression, name = mark["expr"], mark["name"]
        if f"offset {STEP}" not in expression or not re.search(r" unless | > ", expression):
            yield f"{name}: not only the beginning"
        if set(re.findall(r"\$__\w+", expression)) - {STEP} or mark.get("step") != MIN_STEP:
            yield f"{name}: not by steps of {MIN_STEP} and more"


def marks_fit_the_page(board: Board) -> Iterator[str]:
    """Only critical alerts, and of the page's queries."""
    for mark in board["annotations"]["list"]:
        expression, name = mark["expr"], mark["name"]
        if "ALERTS" in expression and 'severity="critical"' not in expression:
            yield f"{name}: not only critical alerts"
        asks = any(each in expression for each in ('query=~"$query', "query=~`${query:regex}", 'query="$query"'))
        if ("ALERTS" in expression or "ledgerops_query_start" in expression) and not asks:
            yield f"{name}: not filtered by the page's query"


def counts_are_whole(board: Board) -> Iterator[str]:
    """`increase` extrapolates: two restarts would be 2.01. Amounts and histograms are no counts."""
    for panel in panels(board):
        for target in panel["targets"]:
            for found in re.finditer(r"increase\((\w+)", target["expr"]):
                whole = "round(" in target["expr"][: found.start()]
                if not found[1].endswith(("_amount_total", "_bucket")) and not whole:
                    yield f"{panel['title']}: increase of {found[1]} is not rounded"


def headlines_have_names(board: Board) -> Iterator[str]:
    """The largest lag of all queries is of no use without the query."""
    for panel in of_kind(board, "stat"):
        largest = re.search(r"^(max|min|topk|bottomk)\b", panel["targets"][0]["expr"])
        if largest and panel["options"].get("textMode") != "value_and_name":
            yield f"{panel['title']}: does not name the query"
        if re.match(r"(max|min) ?\(", panel["targets"][0]["expr"]):
            yield f"{panel['title']}: drops the labels of the largest"


def tables_are_sorted_and_fit(board: Board) -> Iterator[str]:
    for panel in of_kind(board, "table"):
        shown = {title: each for title, each in columns(panel).items() if not each.get("custom.hidden")}
        widths = [each.get("custom.width") for each in shown.values()]
        if len(panel["targets"]) > 1 and not panel["options"].get("sortBy"):
            yield f"{panel['title']}: not sorted"
        if any(each["displayName"] not in shown for each in panel["options"].get("sortBy") or ()):
            yield f"{panel['title']}: sorted by a column that it does not have"
        if widths.count(None) != 1:
            yield f"{panel['title']}: {widths.count(None)} columns have no width"
        sorted_by = [each["displayName"] for each in panel["options"].get("sortBy") or ()]
        for title, each in shown.items():
            needed = HEADER_PIXELS + HEADER_LETTER_PIXELS * len(title) + ARROW_PIXELS * (title in sorted_by)
            if each.get("custom.width", MIN_PIXELS) < needed:
                yield f"{panel['title']}: the title of the column {title} is cut"
        if sum(width or MIN_PIXELS for width in widths) > GRID_PIXELS * panel["gridPos"]["w"]:
            yield f"{panel['title']}: wider than the panel"


def tables_show_every_label(board: Board) -> Iterator[str]:
    """A label that is neither shown nor left out is a column without a title or a width."""
    for panel in of_kind(board, "table"):
        [organize] = [each["options"] for each in panel["transformations"] if each["id"] == "organize"]
        known = {*organize["renameByName"], *organize["excludeByName"]}
        for target in panel["targets"]:
            grouped = re.search(r"\bby \(([^)]*)\)", target["expr"])
            missing = set(grouped[1].split(", ")) - known if grouped else set()
            if missing:
                yield f"{panel['title']}: shows {sorted(missing)} without a title"


def legends_can_be_read(board: Board) -> Iterator[str]:
    """Below half a page there is room for a list of five, below less for none whose length depends on the data."""
    for panel in of_kind(board, "timeseries"):
        bound, width = re.search(r"\b(?:topk|bottomk)\((\d+)", expressions(panel)), panel["gridPos"]["w"]
        if bound and width < 24 and (int(bound[1]) > 5 or width < 12):
            yield f"{panel['title']}: too narrow for a legend of {bound[1]}"


def lines_are_bounded(board: Board) -> Iterator[str]:
    """Sixty partitions as sixty lines show nothing. On the page of one query its few topics are bounded."""
    for panel in of_kind(board, "timeseries"):
        single = board["uid"] in ("ledgerops-query", "ledgerops-state")
        found = set(SERIES_OF_DATA.findall(legends(panel))) - ({"topic"} if single else set())
        if "partition" in found:
            found.add("topic")
        few = {"query", "plan"} if board["uid"] == "ledgerops-load" else {"plan"}
        if found - few and not re.search(r"\b(topk|bottomk)\(", expressions(panel)):
            yield f"{panel['title']}: a line for each {', '.join(sorted(found))}"


def timelines_have_room(board: Board) -> Iterator[str]:
    """Names that stand closer than their height are drawn over each other."""
    for panel in of_kind(board, "state-timeline"):
        several = board["uid"] not in ("ledgerops-query", "ledgerops-state") and legends(panel) != "{{plan}}"
        bound = re.search(r"\b(?:topk|bottomk)\((\d+)", expressions(panel))
        if several and bound is None:
            yield f"{panel['title']}: any number of rows"
        if bound and int(bound[1]) * 15 > panel["gridPos"]["h"] * GRID_ROW_PIXELS - TIMELINE_PIXELS:
            yield f"{panel['title']}: too low for {bound[1]} rows"


def timelines_say_that_there_is_nothing(board: Board) -> Iterator[str]:
    """Without a series Grafana writes "Data does not have a time field" into a state timeline."""
    for panel in of_kind(board, "state-timeline"):
        always = re.search(r"or on \(\) label_replace|query_status|\bup\{", expressions(panel))
        if not always:
            yield f"{panel['title']}: may have no series"


def titles_are_whole(board: Board) -> Iterator[str]:
    for panel in panels(board):
        if LETTER_PIXELS * len(panel["title"]) + 50 > GRID_PIXELS * panel["gridPos"]["w"]:
            yield f"{panel['title']}: the title is cut"


def heatmaps_are_never_empty(board: Board) -> Iterator[str]:
    for panel in of_kind(board, "heatmap"):
        if any("label_replace(vector(0) unless on () last_over_time(" not in each["expr"] for each in panel["targets"]):
            yield f"{panel['title']}: a TypeError where it gets no series"


def stacks_are_parts_of_a_whole(board: Board) -> Iterator[str]:
    for panel in of_kind(board, "timeseries"):
        stacked = defaults(panel)["custom"].get("stacking", {}).get("mode") == "normal"
        if stacked and SERIES_OF_DATA.search(legends(panel)):
            yield f"{panel['title']}: stacks what does not add up"


def aggregations_keep_the_application(board: Board) -> Iterator[str]:
    """Two applications may have a query of one name: `by (query)` makes one line of them."""
    for panel in panels(board):
        for target in panel["targets"]:
            for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", target["expr"]):
                names = labels.split(", ")
                if "query" in names and "app" not in names:
                    yield f"{panel['title']}: ({labels}) drops the application"


def series_open_their_page(board: Board) -> Iterator[str]:
    """Every line of a query and every query, rule and alert in a table is one click from its page."""
    for panel in of_kind(board, "timeseries", "state-timeline"):
        several = board["uid"] in ("ledgerops-fleet", "ledgerops-slo")
        if several and legends(panel).startswith("{{query}}") and not defaults(panel).get("links"):
            yield f"{panel['title']}: a line opens nothing"
    for panel in of_kind(board, "table"):
        for title, each in columns(panel).items():
            link_of_others = each.get("custom.hidden")
            if title in ("query", "cause", "rule", "alert") and not each.get("links") and not link_of_others:
                yield f"{panel['title']}: {title} opens nothing"


def links_pass_what_is_known(board: Board) -> Iterator[str]:
    """An alert of a query has no instance: a link with one opens an empty page."""
    for panel in of_kind(board, "table"):
        for title, each in columns(panel).items():
            for link in each.get("links", ()):
                if "ALERTS" in expressions(panel) and "var-instance" in link["url"]:
                    yield f"{panel['title']}: {title} passes an instance that alerts do not have"
                if "var-query" in link["url"] and "var-app" not in link["url"]:
                    yield f"{panel['title']}: {title} does not pass the application"


def colours_are_fixed(board: Board) -> Iterator[str]:
    """A status and a severity have one colour on every page, as a background, so that dark and light themes fit."""
    canonical = {shown.partition(":")[2]: COLOURS[shown.partition(":")[0]] for _, shown in NAMES}
    canonical |= {"info": COLOURS["cold"], "warning": COLOURS["warn"], "critical": COLOURS["bad"]}
    for panel in panels(board):
        mappings = [*defaults(panel).get("mappings", ())]
        for title, each in columns(panel).items():
            mappings += each.get("mappings", ())
            if title in ("status", "severity") and each["custom.cellOptions"]["type"] != "color-background":
                yield f"{panel['title']}: {title} is not a background"
        for mapping in mappings:
            for result in mapping["options"].values():
                if canonical.get(result["text"], result["color"]) != result["color"]:
                    yield f"{panel['title']}: {result['text']} has another colour"


def a_dead_driver_is_a_word(board: Board) -> Iterator[str]:
    """Series of a driver that died are gone: a status that only reads them shows a gap."""
    lost = str(NUMBERS["lost"])
    for panel in panels(board):
        asked = expressions(panel)
        remembers = f"* {lost}" in asked and "query:lost" in asked
        if "ledgerops_query_status" in asked and not remembers:
            yield f"{panel['title']}: a query whose driver died is a gap"


RULES: tuple[Callable[[Board], Iterator[str]], ...] = (
    timelines_show_words, marks_are_moments, marks_fit_the_page, counts_are_whole, headlines_have_names,
    tables_are_sorted_and_fit, tables_show_every_label, legends_can_be_read, lines_are_bounded, timelines_have_room,
    timelines_say_that_there_is_nothing, titles_are_whole, heatmaps_are_never_empty, stacks_are_parts_of_a_whole,
    aggregations_keep_the_application, series_open_their_page, links_pass_what_is_known, colours_are_fixed,
    a_dead_driver_is_a_word,
)  # fmt: skip


def complaints(board: Board) -> dict[str, list[str]]:
    """What each rule finds; rules that find nothing are left out."""
    return {rule.__name__: found for rule in RULES if (found := list(rule(board)))}
