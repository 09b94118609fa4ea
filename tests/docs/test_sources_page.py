"""The page about sources names every kind that the code knows, with its limits."""

import pytest

from ledgerops.model.sources import KINDS
from tests.paths import ROOT

PAGE = (ROOT / "docs/guides/sources.md").read_text("utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_every_kind_of_source_has_a_row_with_its_limits_its_units_and_whether_it_was_tried(kind):
    rows = [row for row in ROWS if row.startswith(f"| {kind.title}")]
    assert rows
    assert [limit.option for limit in kind.limits if not any(f"`{limit.option}`" in row for row in rows)] == []
    assert [unit for unit in kind.units if unit not in " ".join(rows)] == []
    assert kind.tried or all("by its" in row for row in rows)
