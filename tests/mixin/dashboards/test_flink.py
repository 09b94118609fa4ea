"""The table for people who come from Flink: it counts all of their panels and names panels that there are."""

import re

import pytest

from ledgerops.mixin.dashboards.flink import APPLICATIONS, KAFKA, MANAGERS, SIGNALS
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.flink import flink_page

OURS = {
    f"{page.uid.removeprefix('ledgerops-')}/{panel.title}"
    for page in PAGES
    for row in page.rows
    for panel in row.panels
}


@pytest.mark.parametrize(("board", "count"), [(APPLICATIONS, 42), (MANAGERS, 89), (KAFKA, 12)])
def test_every_panel_of_a_dashboard_is_counted(board, count):
    assert sum(signal.count for signal in SIGNALS if signal.board == board) == count


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: f"{signal.board}: {signal.flink}")
def test_a_signal_names_panels_that_there_are_or_says_why_there_are_none(signal):
    assert set(signal.ours) <= OURS
    assert signal.ours or signal.note
    assert signal.note == "" or signal.note.endswith(".")


def test_a_title_stands_for_one_panel_of_its_page():
    for page in PAGES:
        titles = [panel.title for row in page.rows for panel in row.panels]
        assert sorted(set(titles)) == sorted(titles), page.uid


def test_the_page_says_how_many_have_a_twin():
    page = flink_page()

    assert re.search(r"Of the 143 panels .* 104 have a twin on Spark.* in \d+ panels of ours; of the other 39 ", page)
    assert "| Current Uptime | 1 | Query: Up for |  |" in page
    assert "| Shuffle Netty: memory and its segments | 6 | none | Shuffles of Spark" in page
