"""The pages for people who come from Flink and from Spark's UI are written by hand: what they name must exist."""

import re

import pytest

from ledgerops.metrics import METRICS
from ledgerops.mixin.dashboards.pages import PAGES
from tests.paths import ROOT

FAMILIES = {metric.name: metric for metric in METRICS}
PANELS = {
    f"{page.title.removeprefix('ledgerops / ')}: {panel.title}"
    for page in PAGES
    for row in page.rows
    for panel in row.panels
}
NOWHERE = ("none", "on request")

pytestmark = pytest.mark.parametrize("page", ["flink-panels.md", "spark-ui.md"])


def signals(page):
    """The rows of the tables: signal, panels, families, what is different."""
    lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines if line.startswith("| ")]
    return [row for row in rows if row[0] not in ("Flink", "Spark UI")]


def families(row):
    return re.findall(r"`(ledgerops_\w+)`", " ".join(row))


def test_every_family_that_it_names_is_exported(page):
    named = {name for row in signals(page) for name in families(row)}

    assert len(named) > 20
    assert sorted(named - set(FAMILIES)) == []


def test_every_panel_that_it_names_is_on_a_page(page):
    named = {place for row in signals(page) if row[1] not in NOWHERE for place in row[1].split("; ")}

    assert len(named) > 12
    assert sorted(named - PANELS) == []


def test_what_is_on_request_is_on_no_page(page):
    asked = {name for row in signals(page) if row[1] == "on request" for name in families(row)}
    shown = " ".join(
        target.expr for page in PAGES for row in page.rows for panel in row.panels for target in panel.targets
    )

    assert asked != set()
    assert asked & set(re.findall(r"ledgerops_\w+", shown)) == set()


def test_a_signal_without_a_panel_says_why(page):
    assert [row[0] for row in signals(page) if row[1] == "none" and not row[3].endswith(".")] == []
