"""A panel that waits for a fault names a recording that has it, and shows data; so does every target somewhere."""

import re

import pytest

from ledgerops.mixin.dashboards.layout import MARKS
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.panels import expression
from tests.mixin.dashboards.replayed import DRILLS, REAL, RECORDED, SITE, evaluated, filled, pages_of

PANELS = [(page, panel) for page in PAGES for row in page.rows for panel in row.panels]
WAITING = [(page, panel) for page, panel in PANELS if panel.waits is not None]
LOAD = "load"  # a plan that runs, and no drill: see test_generator
TABLES = "delta"  # a recording of tests/e2e/table_app, and no drill
NAMES = sorted({panel.drill for _, panel in WAITING} - {LOAD})
# what no recording holds, and where it is shown to speak
ELSEWHERE = re.compile(
    r"ledgerops_load_"  # test_generator
    r"|ledgerops_(callback|worker)_seconds|ledgerops_scrape_seconds|ledgerops_listener_events"  # tests/e2e/test_stack
    r"|ledgerops_source_unread_rows"  # tests/metrics/test_connectors
    r"|ledgerops_rejected_rows"  # tests/ledger/run/test_run, with records of a broker that are no rows
)


def recording_of(name):
    """The recording that a waiting panel names."""
    return RECORDED / "delta.jsonl.zst" if name == TABLES else DRILLS / name / "recording"


def asked(panel):
    """The expressions of a panel with its variables filled in, without the row that says that there is nothing."""
    return [re.sub(r" or on \(\) label_replace.*", "", filled(expression(target, SITE))) for target in panel.targets]


def test_alerts_and_restarts_are_marked_in_a_crash_loop_and_not_in_a_control(tmp_path):
    marks = {mark.name: filled(mark.expr) for mark in MARKS}
    for drill, site, expected in (("crash-loop", SITE, set(marks.values())), ("burst", REAL, set())):
        folder = tmp_path / drill
        folder.mkdir()
        assert evaluated(folder, pages_of(DRILLS / drill / "recording"), marks.values(), site=site) == expected


def test_every_waiting_panel_names_a_drill_that_is_recorded():
    for page, panel in WAITING:
        assert panel.drill == LOAD or (panel.drill and recording_of(panel.drill).exists()), f"{page.uid}: {panel.title}"
    assert [panel.title for _, panel in PANELS if panel.drill and panel.waits is None] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_waiting_panel_shows_data_in_its_drill(tmp_path, name):
    panels = [(page, panel) for page, panel in WAITING if panel.drill == name]
    found = evaluated(tmp_path, pages_of(recording_of(name)), [each for _, panel in panels for each in asked(panel)])

    assert [f"{page.uid}: {panel.title}" for page, panel in panels if not found & set(asked(panel))] == []


def test_nothing_is_shown_of_faults_where_there_is_none(tmp_path):
    """Else the drills above would prove nothing."""
    panels = [panel for _, panel in WAITING if panel.waits in ("a finding", "an alert", "a run that failed")]
    pages = list(pages_of(DRILLS / "burst" / "recording"))
    found = evaluated(tmp_path, pages, [each for panel in panels for each in asked(panel)], site=REAL)

    assert len(panels) > 4 and len(pages) > 20
    assert found == set()


def test_every_target_of_every_panel_shows_data_in_some_recording(tmp_path):
    left = {each for _, panel in PANELS for each in asked(panel)}
    recordings = [
        *(recording_of(name) for name in (*NAMES, "backlog", "conflicting-duplicates")),
        RECORDED / "spark-3.5.7.jsonl",
    ]
    for number, recording in enumerate(recordings):
        folder = tmp_path / str(number)
        folder.mkdir()
        left -= evaluated(folder, pages_of(recording), left)

    assert sorted(each for each in left if not ELSEWHERE.search(each)) == []
