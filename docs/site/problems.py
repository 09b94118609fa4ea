"""The index of problems, read for the menu of the site and for old addresses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
INDEX = "problems/README.md"
FAMILY = re.compile(r"^## (.*)$", re.MULTILINE)
ROW = re.compile(r"^\| \[(.*?)\]\((.*?)\.md\).* \| (\w+) \| `(\w+)` \|$", re.MULTILINE)


class Listed(NamedTuple):
    """A row of the index."""

    title: str
    slug: str
    severity: str
    alert: str

    @property
    def page(self) -> str:
        """Its page below docs/."""
        return f"problems/{self.slug}.md"


def families() -> dict[str, list[Listed]]:
    """The problems of each family, in the order of the index: the most severe first."""
    parts = FAMILY.split((ROOT / "docs" / INDEX).read_text("utf-8"))[1:]
    rows = zip(parts[::2], parts[1::2], strict=True)
    return {family: [Listed(*found) for found in ROW.findall(table)] for family, table in rows}


def listed() -> list[Listed]:
    """All problems."""
    return [problem for problems in families().values() for problem in problems]


def moved() -> dict[str, str]:
    """Old folder of the site -> the one that has the page now: a rule and its runbook were two pages."""
    found = {"rules": "problems", "runbooks": "problems"}
    for problem in listed():
        now = f"problems/{problem.slug}"
        found |= {f"rules/{problem.slug}": now, f"runbooks/{problem.alert}": now}
    return found
