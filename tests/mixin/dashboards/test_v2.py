"""Dashboards in the v2 schema: the same panels, queries, limits and places as in the classic one."""

import json

import pytest

from ledgerops.cli import main
from ledgerops.mixin.dashboards.build import page_json
from ledgerops.mixin.dashboards.build_v2 import resource_json
from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.sdk import models_v2
from ledgerops.mixin.site import Site

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)


def classic(page):
    board = json.loads(page_json(page))
    found, head = {}, 0
    for panel in board["panels"]:
        place = panel["gridPos"]
        if panel["type"] == "row":
            head = place["y"] + 1
            continue
        found[f"panel-{panel['id']}"] = (
            panel["title"],
            panel["description"],
            [(each["refId"], each["expr"], each.get("legendFormat")) for each in panel["targets"]],
            panel["fieldConfig"]["defaults"]["unit"],
            panel["fieldConfig"]["defaults"]["thresholds"]["steps"],
            [(each["title"], each["url"]) for each in panel["fieldConfig"]["defaults"].get("links", ())],
            (place.get("x", 0), place["y"] - head, place["w"], place["h"]),
        )
    return found


def resource(page):
    spec = json.loads(resource_json(page))["spec"]
    places = {}
    for row in spec["layout"]["spec"]["rows"]:
        for item in row["spec"]["layout"]["spec"]["items"]:
            at = item["spec"]
            places[at["element"]["name"]] = (at["x"], at["y"], at["width"], at["height"])
    found = {}
    for name, element in spec["elements"].items():
        panel, looks = element["spec"], element["spec"]["vizConfig"]["spec"]["fieldConfig"]["defaults"]
        found[name] = (
            panel["title"],
            panel["description"],
            [
                (
                    each["spec"]["refId"],
                    each["spec"]["query"]["spec"]["expr"],
                    each["spec"]["query"]["spec"]["legendFormat"],
                )
                for each in panel["data"]["spec"]["queries"]
            ],
            looks["unit"],
            looks["thresholds"]["steps"],
            [(each["title"], each["url"]) for each in looks.get("links", ())],
            places[name],
        )
    return found


@every_page
def test_both_schemas_have_the_same_panels_at_the_same_places(page):
    assert resource(page) == classic(page)
    assert len(classic(page)) == sum(len(row.panels) for row in page.rows)


@every_page
def test_it_is_a_manifest_that_the_schemas_own_model_reads_back(page):
    made = json.loads(resource_json(page))

    assert (made["apiVersion"], made["kind"]) == ("dashboard.grafana.app/v2", "Dashboard")
    assert made["metadata"] == {"name": page.uid}
    assert models_v2.Dashboard.from_json(made["spec"]).title == page.title
    assert resource_json(page) == resource_json(page)


@every_page
def test_its_variables_and_marks_are_those_of_the_classic_one(page):
    spec, board = json.loads(resource_json(page))["spec"], json.loads(page_json(page))
    asked = [each["spec"].get("query", {}) for each in spec["variables"]]

    assert [each["spec"]["name"] for each in spec["variables"]] == [
        each["name"] for each in board["templating"]["list"]
    ]
    assert [each["spec"]["__legacyStringValue"] for each in asked if each] == [
        each["query"] for each in board["templating"]["list"] if each["type"] == "query"
    ]
    assert [(each["spec"]["name"], each["spec"]["query"]["spec"]["expr"]) for each in spec["annotations"]] == [
        (each["name"], each["expr"]) for each in board["annotations"]["list"]
    ]


def page_of(targets):
    panel = Panel("Many", tuple(Target(f'up{{n="{n}"}}') for n in range(targets)), "short", "Good: 1.", width=24)
    return Page("many", "many", "Many targets.", (Row("Row", (panel,)),))


@pytest.mark.parametrize("made", [page_json, resource_json])
def test_as_many_targets_are_asked_as_there_are_letters(made):
    assert made(page_of(26)).count('"expr": "up{') == 26


@pytest.mark.parametrize("made", [page_json, resource_json])
def test_a_target_without_a_letter_is_not_left_out_in_silence(made):
    with pytest.raises(ValueError, match=r"^Many has 27 targets, and there are 26 letters for them$"):
        made(page_of(27))


def test_a_site_of_ones_own_is_in_them():
    [slo] = [page for page in PAGES if page.uid == "ledgerops-slo"]

    assert " / 0.05" in resource_json(slo, Site(freshness_objective=0.95))


def test_the_command_writes_a_file_for_each_page(tmp_path, capsys):
    assert main(["render", "--format", "grafana-v2", "--out", str(tmp_path / "boards")]) == 0

    assert {file.stem for file in (tmp_path / "boards").iterdir()} == {page.uid for page in PAGES}


def test_a_checkout_is_no_place_for_them(capsys):
    assert main(["render", "--format", "grafana-v2"]) == 2
    assert capsys.readouterr().err == (
        "ledgerops: --format grafana-v2 needs --out FOLDER: its files do not belong into a checkout\n"
    )
