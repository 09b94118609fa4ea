"""The page on accuracy is made by three commands: each writes its part, and leaves those of the others as they are.

First comes a summary with a row for each part; rows of other hands stay. What was found drill by drill is on a page
beside it, in sections of the same titles.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ledgerops.drills.scoring.report import table

TITLE = """# How often the diagnosis is right

Real queries are broken on purpose, and what `ledgerops diagnose` reports is compared with what was done. First means at
the top of the list of root causes, in most answers from then on. [Benchmark](benchmark.md) has the drawn drills as a
data set, with what other methods score on them.
"""
DRILLS_TITLE = "# Drill by drill\n\nWhat [How often the diagnosis is right]({page}) sums up.\n"
DRAWN, SCRIPTED = "## Drills drawn by seed\n", "## Scripted drills: the rules were tuned on them\n"
STEPS, SUMMARY = "## Steps that were taken\n", "## In short\n"
ORDER = (SUMMARY, DRAWN, SCRIPTED, STEPS)
BESIDE = "diagnosis-drills.md"  # the page beside, as the sections link to it
HEAD = ("queries", "root cause first", "healthy ones silent", "what it says")
WHOLE = r"(?ms)^{}.*?(?=^## |\Z)"
TARGET = re.compile(r"\]\((.*?)\)")  # of the link in the first cell, by which a row is known


class Part(NamedTuple):
    """What one command publishes: its section, its row of the summary, and its section of the page beside."""

    section: str
    row: tuple[str, str, str, str]
    drills: str


def drills_page(page: Path) -> Path:
    """The page beside, with a row for each drill."""
    return page.with_stem(f"{page.stem}-drills")


def publish(page: Path, part: Part) -> None:
    """Puts a part into the page and the page beside, in place of the one with its title. Raises OSError."""
    beside = drills_page(page)
    text = page.read_text("utf-8") if page.exists() else TITLE
    drills = beside.read_text("utf-8") if beside.exists() else DRILLS_TITLE.format(page=page.name)
    page.write_text(_summed(_put(text, part.section.replace(BESIDE, beside.name)), part.row), "utf-8")
    beside.write_text(_put(drills, part.drills), "utf-8")


def _summed(text: str, row: tuple[str, ...]) -> str:
    found = re.search(WHOLE.format(SUMMARY), text)
    rows: dict[str, tuple[str, ...]] = {}
    for line in found[0].splitlines() if found else ():
        cells = tuple(cell.strip() for cell in line.strip("| ").split(" | "))
        if len(cells) == len(HEAD) and TARGET.search(cells[0]):
            rows[_target(cells)] = cells
    rows[_target(row)] = row
    return _put(text, f"{SUMMARY}\n{table(HEAD, rows.values())}\n")


def _target(row: tuple[str, ...]) -> str:
    found = TARGET.search(row[0])
    return found[1] if found else row[0]


def _put(text: str, section: str) -> str:
    """The text with a section, in place of the one with its title, or before those that come after it."""
    title = section.partition("\n")[0] + "\n"
    text = re.sub(WHOLE.format(title), "", text)
    later = [text.index(each) for each in ORDER[ORDER.index(title) + 1 :] if each in text]
    place = min(later, default=len(text))
    return f"{text[:place].rstrip()}\n\n{section.strip()}\n\n{text[place:]}".rstrip() + "\n"
