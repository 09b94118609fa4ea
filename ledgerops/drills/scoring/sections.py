"""The page on accuracy is made by three commands: each writes its part, and leaves those of the others as they are."""

from __future__ import annotations

import re
from pathlib import Path

TITLE = "# How often the diagnosis is right\n"
DRAWN, STEPS = "## Drills drawn by seed\n", "## Steps that were taken\n"  # the first section and the last
WHOLE = r"(?ms)^{}.*?(?=^## |\Z)"


def publish(page: Path, section: str) -> None:
    """Puts a section into the page, in place of the one with its title. Raises OSError."""
    page.write_text(_put(page.read_text("utf-8") if page.exists() else TITLE, section), "utf-8")


def publish_rest(page: Path, text: str) -> None:
    """Writes a page without those two sections, and puts in those that it had. Raises OSError."""
    before = page.read_text("utf-8") if page.exists() else ""
    for title in (DRAWN, STEPS):
        if found := re.search(WHOLE.format(title), before):
            text = _put(text, found[0])
    page.write_text(text, "utf-8")


def _put(text: str, section: str) -> str:
    title = section.partition("\n")[0] + "\n"
    text = re.sub(WHOLE.format(title), "", text)
    if title == STEPS:
        return f"{text.rstrip()}\n\n{section.strip()}\n"
    head, mark, rest = text.partition("\n## ")
    return f"{head.rstrip()}\n\n{section.strip()}\n{mark}{rest}"
