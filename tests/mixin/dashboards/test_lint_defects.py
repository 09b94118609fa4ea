"""Every way in which pages once misled their readers, put back into today's pages one at a time: a rule speaks."""

import copy
import json

import pytest

from ledgerops.mixin.dashboards.model import GOOD
from ledgerops.mixin.dashboards.pages import PAGES
from tests.mixin.dashboards import lint
from tests.paths import ROOT

BOARDS = {page.uid: json.loads((ROOT / "dashboards" / f"{page.uid}.json").read_text()) for page in PAGES}


def board(uid):
    return copy.deepcopy(BOARDS[f"ledgerops-{uid}"])


def panel(board, title):
    """The panel whose title begins so."""
    return next(each for each in lint.panels(board) if each["title"].startswith(title))


def properties(panel, column):
    return next(
        each["properties"] for each in panel["fieldConfig"]["overrides"] if each["matcher"]["options"] == column
    )


def without(properties, name):
    properties[:] = [each for each in properties if each["id"] != name]


@pytest.mark.parametrize("uid", BOARDS)
def test_the_pages_have_none_of_these_defects(uid):
    assert lint.complaints(BOARDS[uid]) == {}


def spoken(board, rule):
    return lint.complaints(board).get(rule.__name__, [])


def test_a_timeline_that_shows_the_names_of_thresholds_is_found():
    fleet = board("fleet")
    panel(fleet, "Status over time")["fieldConfig"]["defaults"]["color"] = {"mode": "thresholds"}

    assert spoken(fleet, lint.timelines_show_words) == ["Status over time, twelve worst: colour mode thresholds"]


def test_a_timeline_without_words_is_found():
    fleet = board("fleet")
    del panel(fleet, "Drivers, the ten that answered least")["fieldConfig"]["defaults"]["mappings"]

    assert spoken(fleet, lint.timelines_show_words) == ["Drivers, the ten that answered least: no words for its values"]


def marked(expression, uid="query", **more):
    made = board(uid)
    made["annotations"]["list"][0] |= {"expr": expression, **more}
    return made


def test_an_annotation_that_lasts_as_long_as_its_alert_is_found():
    spans = marked('ALERTS{alertstate="firing", severity="critical", query=~"$query|"}')

    assert spoken(spans, lint.marks_are_moments) == ["Critical alerts: not only the beginning"]


def test_an_annotation_whose_step_follows_the_screen_is_found():
    started = 'max(s{query=~"$query"}) > max(s{query=~"$query"} offset $__rate_interval)'

    assert spoken(marked(started), lint.marks_are_moments) == [
        "Critical alerts: not only the beginning",
        "Critical alerts: its step is not 1m",
    ]
    assert spoken(marked(BOARDS["ledgerops-query"]["annotations"]["list"][0]["expr"], step="15s"),
                  lint.marks_are_moments) == ["Critical alerts: its step is not 1m"]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('query=~"$query|"', 'query=~".+"', "Critical alerts: not filtered by the page's query"),
        ('severity="critical"', 'severity!="info"', "Critical alerts: not only critical alerts"),
    ],
)
def test_an_annotation_of_other_queries_or_of_warnings_is_found(old, new, complaint):
    expression = BOARDS["ledgerops-query"]["annotations"]["list"][0]["expr"]

    assert spoken(marked(expression.replace(old, new)), lint.marks_fit_the_page) == [complaint]


def test_drills_and_load_plans_on_a_page_of_every_day_are_found():
    fleet = board("fleet")
    fleet["annotations"]["list"] += BOARDS["ledgerops-load"]["annotations"]["list"][2:]

    assert spoken(fleet, lint.marks_fit_the_page) == [
        "Drills: only on the page of load tests",
        "Load plans: only on the page of load tests",
    ]


def test_a_headline_that_is_green_without_a_value_is_found():
    fleet = board("fleet")
    lag = panel(fleet, "Longest lag")
    lag["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"] = GOOD

    assert spoken(fleet, lint.unknown_is_grey) == [f"{lag['title']}: is coloured without a value"]


def test_a_panel_that_only_says_no_data_is_found():
    fleet = board("fleet")
    panel(fleet, "Queries running")["fieldConfig"]["defaults"]["noValue"] = "No data"
    del panel(fleet, "Drivers")["fieldConfig"]["defaults"]["noValue"]

    assert spoken(fleet, lint.emptiness_is_explained) == [
        "Queries running: does not say what no data means",
        "Drivers, the ten that answered least: does not say what no data means",
    ]


def test_a_sentence_in_every_empty_cell_of_a_table_is_found():
    fleet = board("fleet")
    without(properties(panel(fleet, "Queries, worst first"), "lag"), "noValue")

    assert spoken(fleet, lint.empty_cells_are_short) == ["Queries, worst first: an empty cell of lag is a sentence"]


def test_a_count_of_two_point_nought_one_restarts_is_found():
    query = board("query")
    restarts = panel(query, "Restarts")
    restarts["targets"][0]["expr"] = "sum by (app, query) (increase(ledgerops_query_restarts_total[1h]))"

    assert spoken(query, lint.counts_are_whole) == [
        f"{restarts['title']}: increase of ledgerops_query_restarts_total is not rounded"
    ]


@pytest.mark.parametrize(
    ("expression", "mode", "complaint"),
    [
        ("max(ledgerops_source_lag_seconds)", "value_and_name", "drops the labels of the largest"),
        ("topk(1, ledgerops_source_lag_seconds)", "value", "does not name the query"),
    ],
)
def test_a_headline_without_the_name_of_its_query_is_found(expression, mode, complaint):
    fleet = board("fleet")
    lag = panel(fleet, "Longest lag")
    lag["targets"][0]["expr"], lag["options"]["textMode"] = expression, mode

    assert spoken(fleet, lint.headlines_have_names) == [f"{lag['title']}: {complaint}"]


def test_a_table_in_any_order_is_found():
    fleet = board("fleet")
    panel(fleet, "Queries, worst first")["options"]["sortBy"] = []

    assert spoken(fleet, lint.tables_are_sorted_and_fit) == ["Queries, worst first: not sorted"]


def test_a_table_whose_last_columns_are_off_the_screen_is_found():
    fleet = board("fleet")
    panel(fleet, "Queries, worst first")["gridPos"]["w"] = 16

    assert spoken(fleet, lint.tables_are_sorted_and_fit) == ["Queries, worst first: wider than the panel"]


def test_a_table_that_cuts_names_because_its_columns_share_the_width_is_found():
    fleet = board("fleet")
    without(properties(panel(fleet, "Queries, worst first"), "query"), "custom.width")

    assert spoken(fleet, lint.tables_are_sorted_and_fit) == ["Queries, worst first: 2 columns have no width"]


def test_a_label_that_a_table_shows_by_accident_is_found():
    slo = board("slo")
    target = panel(slo, "Firing alerts")["targets"][0]
    target["expr"] = target["expr"].replace("by (alertname", "by (alertstate, alertname", 1)

    assert spoken(slo, lint.tables_show_every_label) == [
        "Firing alerts, critical first: shows ['alertstate'] without a title"
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"placement": "bottom"}, "legend is a table at the bottom"),
        ({"sortBy": None}, "legend is alphabetical"),
    ],
)
def test_a_legend_of_three_rows_or_in_the_order_of_the_alphabet_is_found(change, complaint):
    resources = board("resources")
    panel(resources, "Disk free")["options"]["legend"] |= change

    assert spoken(resources, lint.legends_can_be_read) == [f"Disk free, ten lowest · good from 10 %: {complaint}"]


def test_a_legend_beside_half_a_page_and_one_of_ten_below_it_are_found():
    fleet = board("fleet")
    panel(fleet, "Rows read")["options"]["legend"]["placement"] = "right"
    lag = panel(fleet, "Lag")["targets"][0]
    lag["expr"] = lag["expr"].replace("topk(5", "topk(10")

    assert spoken(fleet, lint.legends_can_be_read) == [
        "Rows read, five largest: legend is a list at the right",
        "Lag, five largest · good below 30 s: too narrow for a legend of 10",
    ]


def test_a_legend_that_cuts_its_numbers_or_leaves_no_room_for_the_plot_is_found():
    resources = board("resources")
    panel(resources, "CPU in use")["options"]["legend"]["calcs"] = ["lastNotNull", "max"]
    panel(resources, "Memory available")["gridPos"]["w"] = 8

    assert [each.partition(": ")[2] for each in spoken(resources, lint.legends_can_be_read)] == [
        "2 numbers for each line",
        "too narrow for a legend of 5",
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"gridPos": {"h": 5, "w": 24, "x": 0, "y": 0}}, "too low for 10 rows"),
        ({"options": {"perPage": 20}}, "has pages"),
        ({"targets": [{"expr": "up", "legendFormat": "{{instance}}"}]}, "any number of rows"),
    ],
    ids=["names over each other", "buttons for one page", "no bound"],
)
def test_a_timeline_whose_rows_have_no_room_is_found(change, complaint):
    fleet = board("fleet")
    panel(fleet, "Drivers").update(change)

    assert spoken(fleet, lint.timelines_have_room) == [f"Drivers, the ten that answered least: {complaint}"]


def test_a_timeline_that_may_have_no_series_is_found():
    query = board("query")
    target = panel(query, "Findings over time")["targets"][0]
    target["expr"] = target["expr"].partition(" or on () label_replace")[0]

    assert spoken(query, lint.timelines_say_that_there_is_nothing) == ["Findings over time: may have no series"]


def test_a_title_and_the_title_of_a_column_that_are_cut_are_found():
    query = board("query")
    panel(query, "Restarts")["gridPos"]["w"] = 4
    resources = board("resources")
    width = next(
        each for each in properties(panel(resources, "What ledgerops"), "events dropped") if "width" in each["id"]
    )
    width["value"] = 120

    assert spoken(query, lint.titles_are_whole) == ["Restarts in the last hour · good below 1: the title is cut"]
    assert [each.partition(": ")[2] for each in spoken(resources, lint.tables_are_sorted_and_fit)] == [
        "the title of the column events dropped is cut"
    ]


def test_two_lines_of_one_colour_are_found():
    query = board("query")
    panel(query, "Pressure and busy")["fieldConfig"]["defaults"]["color"]["mode"] = "palette-classic-by-name"

    assert [each.partition(": ")[2] for each in spoken(query, lint.lines_differ)] == [
        "colours by palette-classic-by-name"
    ]


def test_a_heatmap_whose_counts_are_seconds_and_whose_largest_values_are_pale_is_found():
    query = board("query")
    panel(query, "Batch duration")["fieldConfig"]["defaults"]["unit"] = "s"
    panel(query, "Batch duration")["options"]["color"]["mode"] = "scheme"
    del panel(query, "Backlog by")["options"]["yAxis"]["axisWidth"]

    assert spoken(query, lint.heatmaps_can_be_read) == [
        "Batch duration: its cells are counts, not s",
        "Batch duration: its colours depend on the theme",
        "Backlog by partition: cuts the names of its rows",
    ]


def test_a_heatmap_that_may_get_no_series_is_found():
    query = board("query")
    target = panel(query, "Backlog by")["targets"][0]
    target["expr"] = target["expr"].partition(" or on () ")[0]

    assert spoken(query, lint.heatmaps_can_be_read) == ["Backlog by partition: a TypeError where it gets no series"]


def test_a_word_at_the_edge_of_its_colour_is_found():
    fleet = board("fleet")
    without(properties(panel(fleet, "Queries, worst first"), "status"), "custom.align")

    assert spoken(fleet, lint.colours_are_fixed) == ["Queries, worst first: status stands at the edge of its colour"]


def test_a_line_for_each_of_sixty_partitions_is_found():
    query = board("query")
    lag = panel(query, "Lag, five")
    lag["targets"][0]["expr"] = 'max by (app, query, topic, partition) (ledgerops_source_lag_seconds{job=~"$job"})'

    assert spoken(query, lint.lines_are_bounded) == [f"{lag['title']}: a line for each partition, topic"]


def test_a_stack_over_queries_and_a_fill_that_turns_plots_brown_are_found():
    fleet = board("fleet")
    panel(fleet, "Rows read")["fieldConfig"]["defaults"]["custom"]["stacking"] = {"mode": "normal"}
    panel(fleet, "Lag, five")["fieldConfig"]["defaults"]["custom"]["fillOpacity"] = 10

    assert [each.partition(": ")[2] for each in spoken(fleet, lint.stacks_are_parts_of_a_whole)] == [
        "stacks what does not add up",
        "fills below lines that cross",
    ]


def test_operations_as_the_unit_of_batches_are_found():
    resources = board("resources")
    failed = panel(resources, "Failed tasks")
    failed["fieldConfig"]["defaults"]["unit"] = "ops"

    assert spoken(resources, lint.units_fit) == [f"{failed['title']}: unit ops"]


def test_an_axis_up_to_a_hundred_over_a_flat_zero_is_found():
    fleet = board("fleet")
    del panel(fleet, "Rows read")["fieldConfig"]["defaults"]["custom"]["axisSoftMax"]

    assert spoken(fleet, lint.axes_have_a_scale) == ["Rows read, five largest: no upper end for flat lines"]


def test_two_applications_that_become_one_line_are_found():
    fleet = board("fleet")
    panel(fleet, "Status over time")["targets"][0]["expr"] += " or max by (query) (ledgerops_query_active)"

    assert spoken(fleet, lint.aggregations_keep_the_application) == [
        "Status over time, twelve worst: (query) drops the application"
    ]


def test_a_limit_that_only_the_tooltip_tells_is_found():
    fleet = board("fleet")
    panel(fleet, "Lag, five")["title"] = "Lag"

    assert spoken(fleet, lint.limits_are_in_sight) == ["Lag: its limit is not in the title"]


def test_a_line_and_a_cause_that_open_nothing_are_found():
    fleet = board("fleet")
    del panel(fleet, "Rows read")["fieldConfig"]["defaults"]["links"]
    without(properties(panel(fleet, "Queries, worst first"), "cause"), "links")

    assert spoken(fleet, lint.series_open_their_page) == [
        "Rows read, five largest: a line opens nothing",
        "Queries, worst first: cause opens nothing",
    ]


def test_a_link_with_an_instance_that_is_not_there_or_without_the_application_is_found():
    slo = board("slo")
    links = next(each for each in properties(panel(slo, "Firing alerts"), "query") if each["id"] == "links")
    links["value"] = [{"title": "Open", "url": "/d/ledgerops-query?var-query=${__data.fields.query}&var-instance=x"}]

    assert [each.partition(": ")[2] for each in spoken(slo, lint.links_pass_what_is_known)] == [
        "query passes an instance that alerts do not have",
        "query does not pass the application",
    ]


def test_an_alert_without_its_runbook_is_found():
    slo = board("slo")
    without(properties(panel(slo, "Firing alerts"), "alert"), "links")

    assert spoken(slo, lint.series_open_their_page) == ["Firing alerts, critical first: alert opens nothing"]


def test_a_failed_query_in_green_and_a_status_that_a_light_page_swallows_are_found():
    fleet = board("fleet")
    words = panel(fleet, "Status over time")["fieldConfig"]["defaults"]["mappings"][0]["options"]
    next(each for each in words.values() if each["text"] == "failed")["color"] = GOOD
    cells = properties(panel(fleet, "Queries, worst first"), "status")
    next(each for each in cells if each["id"] == "custom.cellOptions")["value"] = {"type": "color-text"}

    assert spoken(fleet, lint.colours_are_fixed) == [
        "Queries, worst first: status is not a background",
        "Status over time, twelve worst: failed has another colour",
    ]


def test_a_dead_driver_that_is_a_gap_is_found():
    fleet = board("fleet")
    target = panel(fleet, "Status over time")["targets"][0]
    target["expr"] = target["expr"].partition(" or on (")[0] + ")"

    assert spoken(fleet, lint.a_dead_driver_is_a_word) == [
        "Status over time, twelve worst: a query whose driver died is a gap"
    ]


def test_each_rule_has_found_something_above():
    text = (ROOT / "tests/mixin/dashboards/test_lint_defects.py").read_text()

    assert [rule.__name__ for rule in lint.RULES if f"lint.{rule.__name__})" not in text] == []
