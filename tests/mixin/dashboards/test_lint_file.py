"""What dashboard-linter is not to complain about: only panels that there are, each group with its reason."""

import json
import re

import yaml

from tests.paths import ROOT

FILE = yaml.safe_load((ROOT / "dashboards/.lint").read_text("utf-8"))
BOARDS = [json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "dashboards").glob("*.json"))]
PANELS = {
    (board["title"], panel["title"]): panel
    for board in BOARDS
    for row in board["panels"]
    for panel in (row, *row.get("panels", ()))
}
KNOWN_UNITS = {"short", "s", "bytes", "Bps", "percentunit"}  # of ours, those that the linter knows


def excluded(rule):
    return {(entry["dashboard"], entry["panel"]) for entry in FILE["exclusions"][rule]["entries"]}


def test_nothing_but_two_rules_has_exclusions_and_each_says_why():
    assert list(FILE) == ["exclusions"]
    assert {rule: len(each["reason"]) > 40 for rule, each in FILE["exclusions"].items()} == {
        "panel-units-rule": True,
        "target-instance-rule": True,
    }


def test_units_are_excluded_where_the_linter_does_not_know_one_and_nowhere_else():
    checked = ("stat", "timeseries", "gauge")
    unknown = {
        place
        for place, panel in PANELS.items()
        if panel["type"] in checked and panel["fieldConfig"]["defaults"]["unit"] not in KNOWN_UNITS
    }

    assert excluded("panel-units-rule") == unknown


# alerts, and recording rules that sum over drivers
NO_INSTANCE = re.compile(r"ALERTS|query:\w+:\w+\{(?![^}]*instance=)")


def test_the_instance_is_excluded_where_alerts_or_recording_rules_are_asked_without_it_and_nowhere_else():
    without = {
        place
        for place, panel in PANELS.items()
        if any(NO_INSTANCE.search(target["expr"]) for target in panel.get("targets", ()))
    }

    assert excluded("target-instance-rule") == without
