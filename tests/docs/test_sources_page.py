"""The page about sources names every kind that the code knows, with its limits."""

from ledgerops.model.sources import KINDS
from tests.paths import ROOT

PAGE = (ROOT / "docs/guides/sources.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]


def test_every_kind_of_source_has_a_row_with_all_its_limits():
    for kind in KINDS:
        rows = [row for row in ROWS if row.startswith(f"| {kind.title}")]
        assert rows, kind.title
        assert [limit.option for limit in kind.limits if not any(f"`{limit.option}`" in row for row in rows)] == []


def test_what_is_left_is_said_in_every_unit_in_which_it_can_be_known():
    for kind in KINDS:
        rows = " ".join(row for row in ROWS if row.startswith(f"| {kind.title}"))
        assert [unit for unit in kind.units if unit not in rows] == [], kind.title


def test_what_was_not_tried_against_the_service_says_so():
    for kind in KINDS:
        rows = [row for row in ROWS if row.startswith(f"| {kind.title}")]
        assert kind.tried or all("by its" in row for row in rows), kind.title
