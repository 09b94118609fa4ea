"""Ways in which pages once misled their readers, put back into today's pages one at a time: a rule speaks."""

import copy
import json
from collections.abc import Callable

import pytest

from ledgerops.mixin.dashboards.model import GOOD
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.status import NUMBERS
from tests.mixin.dashboards import lint
from tests.paths import ROOT

BOARDS = {page.uid: json.loads((ROOT / "dashboards" / f"{page.uid}.json").read_text()) for page in PAGES}
GONE = object()
OF_ALL_PARTITIONS = 'max by (app, query, topic, partition) (ledgerops_source_lag_seconds{job=~"$job"})'
OF_INSTANCE = [{"title": "Open", "url": "/d/ledgerops-query?var-query=${__data.fields.query}&var-instance=x"}]
FAILED = f"defaults.mappings.0.options.{NUMBERS['failed']}"


def board(uid):
    return copy.deepcopy(BOARDS[f"ledgerops-{uid}"])


def swap(old, new):
    return lambda text: text.replace(old, new, 1)


def plus(more):
    return lambda text: text + more


def until(mark, end=""):
    return lambda text: text.partition(mark)[0] + end


def change(board, title, path, value):
    """In the panel whose title begins so: `options.sortBy`, `defaults.links`, or `lag: noValue` of a column."""
    place = next(each for each in lint.panels(board) if each["title"].startswith(title))
    column, _, key = path.partition(": ")
    if key:
        [place] = [each for each in place["fieldConfig"]["overrides"] if each["matcher"]["options"] == column]
        place = place["properties"]
        key = next(number for number, each in enumerate(place) if each["id"] == key)
        if value is not GONE:
            place, key = place[key], "value"
    else:
        *way, key = path.replace("defaults", "fieldConfig.defaults").split(".")
        for step in way:
            place = place[int(step) if isinstance(place, list) else step]
    if value is GONE:
        del place[key]
    else:
        place[key] = value(place[key]) if isinstance(value, Callable) else value


@pytest.mark.parametrize("uid", BOARDS)
def test_the_pages_have_none_of_these_defects(uid):
    assert lint.complaints(BOARDS[uid]) == {}


# rule, page, what is changed in which panel, complaints
DEFECTS = {
    "a timeline without words": (
        lint.timelines_show_words, "fleet", [("Drivers, the ten", "defaults.mappings", GONE)],
        ["Drivers, the ten that answered least: no words for its values"]),
    "a count of two point nought one restarts": (
        lint.counts_are_whole, "query",
        [("Restarts", "targets.0.expr", "sum by (app, query) (increase(ledgerops_query_restarts_total[1h]))")],
        ["Restarts in the last hour · good below 1: increase of ledgerops_query_restarts_total is not rounded"]),
    "a headline without the labels of its query": (
        lint.headlines_have_names, "fleet",
        [("Longest lag", "targets.0.expr", "max(ledgerops_source_lag_seconds)"),
         ("Longest lag", "options.textMode", "value_and_name")],
        ["Longest lag · good below 30 s: drops the labels of the largest"]),
    "a headline without the name of its query": (
        lint.headlines_have_names, "fleet",
        [("Longest lag", "targets.0.expr", "topk(1, ledgerops_source_lag_seconds)"),
         ("Longest lag", "options.textMode", "value")],
        ["Longest lag · good below 30 s: does not name the query"]),
    "a table in any order": (
        lint.tables_are_sorted_and_fit, "fleet", [("Queries, worst first", "options.sortBy", [])],
        ["Queries, worst first: not sorted"]),
    "a table whose last columns are off the screen": (
        lint.tables_are_sorted_and_fit, "fleet", [("Queries, worst first", "gridPos.w", 16)],
        ["Queries, worst first: wider than the panel"]),
    "a table that cuts names because its columns share the width": (
        lint.tables_are_sorted_and_fit, "fleet", [("Queries, worst first", "query: custom.width", GONE)],
        ["Queries, worst first: 2 columns have no width"]),
    "a title of a column that is cut": (
        lint.tables_are_sorted_and_fit, "resources", [("What ledgerops", "events dropped: custom.width", 120)],
        ["What ledgerops missed in the last hour, and what it costs: the title of the column events dropped is cut"]),
    "a label that a table shows by accident": (
        lint.tables_show_every_label, "slo",
        [("Firing alerts", "targets.0.expr", swap("by (alertname", "by (alertstate, alertname"))],
        ["Firing alerts, critical first: shows ['alertstate'] without a title"]),
    "a legend of ten below half a page": (
        lint.legends_can_be_read, "fleet", [("Lag", "targets.0.expr", swap("topk(5", "topk(10"))],
        ["Lag, five largest · good below 30 s: too narrow for a legend of 10"]),
    "a legend that leaves no room for the plot": (
        lint.legends_can_be_read, "resources", [("Memory available", "gridPos.w", 8)],
        ["Memory available, five lowest · good from 10 %: too narrow for a legend of 5"]),
    "names of a timeline over each other": (
        lint.timelines_have_room, "fleet", [("Drivers", "gridPos.h", 5)],
        ["Drivers, the ten that answered least: too low for 10 rows"]),
    "a timeline without a bound": (
        lint.timelines_have_room, "fleet",
        [("Drivers", "targets", [{"expr": "up", "legendFormat": "{{instance}}"}])],
        ["Drivers, the ten that answered least: any number of rows"]),
    "a timeline that may have no series": (
        lint.timelines_say_that_there_is_nothing, "query",
        [("Findings over time", "targets.0.expr", until(" or on () label_replace"))],
        ["Findings over time: may have no series"]),
    "a title that is cut": (
        lint.titles_are_whole, "query", [("Restarts", "gridPos.w", 4)],
        ["Restarts in the last hour · good below 1: the title is cut"]),
    "a heatmap that may get no series": (
        lint.heatmaps_are_never_empty, "query", [("Backlog by", "targets.0.expr", until(" or on () "))],
        ["Backlog by partition: a TypeError where it gets no series"]),
    "a failed query in green, and a status that a light page swallows": (
        lint.colours_are_fixed, "fleet",
        [("Status over time", f"{FAILED}.color", GOOD),
         ("Queries, worst first", "status: custom.cellOptions", {"type": "color-text"})],
        ["Queries, worst first: status is not a background",
         "Status over time, twelve worst: failed has another colour"]),
    "a line for each of sixty partitions": (
        lint.lines_are_bounded, "query", [("Lag, five", "targets.0.expr", OF_ALL_PARTITIONS)],
        ["Lag, five largest partitions · good below 30 s: a line for each partition, topic"]),
    "a stack over queries": (
        lint.stacks_are_parts_of_a_whole, "fleet",
        [("Rows read", "defaults.custom.stacking", {"mode": "normal"})],
        ["Rows read, five largest: stacks what does not add up"]),
    "two applications that become one line": (
        lint.aggregations_keep_the_application, "fleet",
        [("Status over time", "targets.0.expr", plus(" or max by (query) (ledgerops_query_active)"))],
        ["Status over time, twelve worst: (query) drops the application"]),
    "a line and a cause that open nothing": (
        lint.series_open_their_page, "fleet",
        [("Rows read", "defaults.links", GONE), ("Queries, worst first", "cause: links", GONE)],
        ["Rows read, five largest: a line opens nothing", "Queries, worst first: cause opens nothing"]),
    "an alert without its runbook": (
        lint.series_open_their_page, "slo", [("Firing alerts", "alert: links", GONE)],
        ["Firing alerts, critical first: alert opens nothing"]),
    "a link with an instance that is not there and without the application": (
        lint.links_pass_what_is_known, "slo", [("Firing alerts", "query: links", OF_INSTANCE)],
        ["Firing alerts, critical first: query passes an instance that alerts do not have",
         "Firing alerts, critical first: query does not pass the application"]),
    "a dead driver that is a gap": (
        lint.a_dead_driver_is_a_word, "fleet", [("Status over time", "targets.0.expr", until(" or on (", ")"))],
        ["Status over time, twelve worst: a query whose driver died is a gap"]),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "uid", "changes", "complaints"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_of_a_panel_is_found(rule, uid, changes, complaints):
    changed = board(uid)
    for title, path, value in changes:
        change(changed, title, path, value)

    assert lint.complaints(changed).get(rule.__name__) == complaints


ALERTS = BOARDS["ledgerops-query"]["annotations"]["list"][0]["expr"]
MARKS = {
    "one that lasts as long as its alert": (
        lint.marks_are_moments, {"expr": 'ALERTS{alertstate="firing", severity="critical", query=~"$query|"}'},
        ["not only the beginning"]),
    "one whose span follows the screen": (
        lint.marks_are_moments,
        {"expr": 'max(s{query=~"$query"}) > max(s{query=~"$query"} offset $__rate_interval)'},
        ["not only the beginning", "not by steps of 1m and more"]),
    "one whose step is another": (lint.marks_are_moments, {"step": "15s"}, ["not by steps of 1m and more"]),
    "one that a longer step passes over": (
        lint.marks_are_moments, {"expr": ALERTS.replace("$__interval", "1m")}, ["not only the beginning"]),
    "one of other queries": (
        lint.marks_fit_the_page, {"expr": ALERTS.replace("query=~`${query:regex}|`", 'query=~".+"')},
        ["not filtered by the page's query"]),
    "one of warnings": (
        lint.marks_fit_the_page, {"expr": ALERTS.replace('severity="critical"', 'severity!="info"')},
        ["not only critical alerts"]),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "changes", "complaints"), MARKS.values(), ids=MARKS)
def test_a_defect_of_an_annotation_is_found(rule, changes, complaints):
    changed = board("query")
    changed["annotations"]["list"][0] |= changes

    assert lint.complaints(changed).get(rule.__name__) == [f"Critical alerts: {each}" for each in complaints]


def test_each_rule_has_found_something_above():
    assert {rule for rule, *_ in (*DEFECTS.values(), *MARKS.values())} == set(lint.RULES)
