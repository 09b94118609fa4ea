"""What dashboard-linter asks of a dashboard (its 17 rules), and what it does not look at, for every generated file."""

import json
import re
from importlib import metadata

import pytest
from grafana_foundation_sdk.cog import plugins

from ledgerops.mixin.dashboards.model import BAD, GOOD, UNKNOWN, WARN
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.sdk import encoded, models
from tests.mixin.dashboards.lint import columns, panels
from tests.mixin.dashboards.test_contract import RECORDED, family
from tests.paths import ROOT

FOLDER = ROOT / "dashboards"
UNITS = {"short", "s", "bytes", "Bps", "rowsps", "percentunit", "suffix: cores", "suffix: tasks/s"}


@pytest.fixture(params=PAGES, ids=lambda page: page.uid)
def board(request):
    return json.loads((FOLDER / f"{request.param.uid}.json").read_text())


def expressions(board):
    return [target["expr"] for panel in panels(board) for target in panel["targets"]]


def selectors(expression):
    """(name, matchers) of each selector."""
    return re.findall(r"\b([a-zA-Z_:][\w:]*)\{([^}]*)\}", expression)


def test_variables_are_named_labelled_and_reloaded(board):
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    load = ["plan"] if board["uid"] == "ledgerops-load" else []
    assert list(variables) == ["datasource", "job", "app", "instance", "query", *load]
    assert (variables["datasource"]["type"], variables["datasource"]["label"]) == ("datasource", "Data source")
    for name in ("job", "app", "instance", "query", *load):
        variable = variables[name]
        assert variable["label"] == ("Application" if name == "app" else name.capitalize())
        assert variable["datasource"]["uid"] == "${datasource}"
        assert variable["refresh"] == 2
        assert variable["query"].startswith("label_values(")
        if name != "query":
            # series of before the label `app` have none: "All" must match them
            assert variable["multi"] is True and variable["allValue"] == (".*" if name == "app" else ".+")


def test_it_can_only_be_changed_where_it_is_made(board):
    assert board["editable"] is False
    assert (board["timezone"], board["refresh"]) == ("utc", "10s")


def test_every_panel_says_what_it_shows_and_what_good_looks_like(board):
    for panel in panels(board):
        assert panel["title"] and "Good: " in panel["description"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["targets"], panel["title"]
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_ids_and_references_are_unique_and_nothing_overlaps(board):
    everything = [*board["panels"], *(inner for panel in board["panels"] for inner in panel.get("panels", ()))]
    ids = [panel["id"] for panel in everything]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in everything:
        place = {"x": 0, **panel["gridPos"]}
        across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in across for y in down}
        assert across.stop <= 24 and not cells & taken, panel["title"]
        taken |= cells
    for panel in panels(board):
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)


def test_every_line_is_full_and_of_one_height(board):
    lines = {}
    for panel in panels(board):
        lines.setdefault(panel["gridPos"]["y"], []).append(panel["gridPos"])
    for line in lines.values():
        assert sum(place["w"] for place in line) == 24
        assert len({place["h"] for place in line}) == 1


def test_every_selector_names_job_and_instance(board):
    for expression in expressions(board):
        found = selectors(expression)
        assert found, expression
        for name, matchers in found:
            assert 'job=~"$job"' in matchers, expression
            if name in RECORDED or name in ("ALERTS", "ALERTS_FOR_STATE"):
                continue  # they keep no instance
            assert 'instance=~"$instance"' in matchers, expression
            if name.startswith("ledgerops_load_"):
                assert 'plan=~"$plan"' in matchers, expression


def test_nothing_is_grouped_by_a_label_that_is_not_there(board):
    for expression in expressions(board):
        for labels, name in re.findall(r"by \(([^)]*)\) \((?:\w+\()?([\w:]+)\{", expression):
            metric = family(name)
            if metric is not None:
                more = {"le"} if metric.kind == "histogram" else set()
                assert set(labels.split(", ")) <= {"job", "app", "instance", "query", *metric.labels, *more}, expression


def test_counters_are_rated_and_gauges_are_not(board):
    for panel in panels(board):
        for expression in (target["expr"] for target in panel["targets"]):
            for function, name in re.findall(r"\b(rate|increase|irate)\(([\w:]+)\{", expression):
                assert family(name).kind in ("counter", "histogram"), f"{function} of {name}"
            for name, _ in selectors(expression):
                metric = family(name)
                # a table shows what has been counted until now
                if metric is not None and metric.kind in ("counter", "histogram") and panel["type"] != "table":
                    assert re.search(rf"(rate|increase)\({re.escape(name)}\{{", expression), expression


def test_rates_use_the_interval_that_fits_the_scrapes(board):
    for expression in expressions(board):
        assert all(span == "$__rate_interval" for span in re.findall(r"\brate\([^\[]*\[([^\]]*)\]", expression))


def test_labels_in_legends_exist(board):
    for panel in panels(board):
        for target in panel["targets"]:
            grouped = re.findall(r"by \(([^)]*)\)", target["expr"])
            for label in re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")):
                written = f', "{label}", ' in target["expr"]  # by label_replace
                bare = "by (" not in target["expr"]  # nothing is grouped: all labels are there
                found = written or bare or any(label in labels for labels in grouped)
                assert found, f"{panel['title']}: {{{{{label}}}}}"


def test_colours_can_be_told_apart_by_everybody(board):
    for panel in panels(board):
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        colours = [step["color"] for step in steps]
        ways = [[colour for colour in way if colour in colours] for way in ((GOOD, WARN, BAD), (BAD, WARN, GOOD))]
        assert colours[0] == UNKNOWN and colours[1:] in ways, panel["title"]
        values = [step["value"] for step in steps[1:]]
        assert values == sorted(values)


def leads_to_a_page(link):
    """To a dashboard at the same time and with the same choices, or to a generated page that exists for every value."""
    field = re.search(r"/docs/problems/\$\{__data\.fields\.(problem|rule)\}\.md$", link["url"])
    if field:
        return
    uid = re.match(r"/d/([\w-]+)\?", link["url"])[1]
    assert (FOLDER / f"{uid}.json").is_file()
    assert "__url_time_range" in link["url"]


def test_links_keep_time_and_variables_and_lead_to_pages_that_exist(board):
    [dropdown] = board["links"]
    assert dropdown["includeVars"] and dropdown["keepTime"] and dropdown["asDropdown"] and "placement" not in dropdown
    for panel in panels(board):
        found = [*panel["fieldConfig"]["defaults"].get("links", ())]
        found += [link for column in columns(panel).values() for link in column.get("links", ())]
        for link in found:
            leads_to_a_page(link)


def test_alerts_and_restarts_are_marked(board):
    marks = {mark["name"]: mark for mark in board["annotations"]["list"]}

    assert list(marks) == ["Critical alerts", "Restarts"]
    assert all(mark["enable"] and "placement" not in mark for mark in marks.values())
    for mark in marks.values():
        for label in re.findall(r"\{\{(\w+)\}\}", mark["titleFormat"]):
            assert label in ("alertname", "query")


def test_load_tests_are_not_in_the_menu_of_every_day(board):
    assert board["tags"] == (["ledgerops-load"] if board["uid"] == "ledgerops-load" else ["ledgerops"])
    assert [link["tags"] for link in board["links"]] == [["ledgerops"]]


def test_the_title_of_each_row_of_every_day_is_a_question_and_the_pages_are_five_and_short():
    daily = [page for page in PAGES if not page.load]

    assert len(daily) == 5
    assert [row.title for page in PAGES for row in page.rows if not row.title.endswith("?")] == []
    assert sum(len(row.panels) for page in daily for row in page.rows) <= 60


def test_the_pages_have_names_of_their_own():
    assert len({page.uid for page in PAGES}) == len({page.title for page in PAGES}) == len(PAGES)


def test_the_schemas_own_model_reads_a_dashboard_back_without_loss(board):
    plugins.register_default_plugins()

    again = json.loads(encoded(models.Dashboard.from_json(board)))
    links = [link for panel in panels(again) for link in panel["fieldConfig"]["defaults"].get("links", ())]
    for each in (*again["links"], *again["annotations"]["list"], *links):
        each.pop("placement")  # the model's default, which would hide them in a menu
    assert again == board


def test_it_is_the_release_of_the_sdk_that_knows_all_versions_of_grafana():
    """An epoch in old version numbers makes an unpinned install take the build for Grafana 10.1."""
    assert metadata.version("grafana-foundation-sdk").removeprefix("v") == "0.0.21"
