"""The page for people who come from Flink is written by hand: what it names must exist."""

import re

from ledgerops.metrics import METRICS
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.off_pages import reason
from tests.paths import ROOT

PAGE = (ROOT / "docs/flink-panels.md").read_text("utf-8")
FAMILIES = {metric.name: metric for metric in METRICS}
ROWS = [[cell.strip() for cell in line[1:-1].split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
SIGNALS = [row for row in ROWS if row[0] != "Flink"]
PANELS = {
    f"{page.title.removeprefix('ledgerops / ')}: {panel.title}"
    for page in PAGES
    for row in page.rows
    for panel in row.panels
}


def families(row):
    return re.findall(r"`(ledgerops_\w+)`", " ".join(row))


def test_every_family_that_it_names_is_exported():
    named = {name for row in SIGNALS for name in families(row)}

    assert len(named) > 30
    assert sorted(named - set(FAMILIES)) == []


def test_every_panel_that_it_names_is_on_a_page():
    named = {place for row in SIGNALS if row[1] not in ("none", "on request") for place in row[1].split("; ")}

    assert len(named) > 20
    assert sorted(named - PANELS) == []


def test_what_is_on_request_is_on_no_page_and_metrics_md_says_how_to_ask():
    asked = [name for row in SIGNALS if row[1] == "on request" for name in families(row)]

    assert len(asked) > 3
    assert [name for name in asked if not reason(FAMILIES[name])] == []


def test_a_signal_without_a_panel_says_why():
    assert [row[0] for row in SIGNALS if row[1] == "none" and not row[3].endswith(".")] == []
