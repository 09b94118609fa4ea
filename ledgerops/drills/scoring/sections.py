"""What commands publish on pages that are otherwise written by hand: each replaces what is between its two marks.

What was found drill by drill is on a page beside the one on accuracy, between marks of the same names.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Part(NamedTuple):
    """What one command publishes: its text between the marks `name`, its row of the summary, and a row a drill."""

    name: str
    text: str
    row: tuple[str, str, str, str]
    drills: str


def conclude(part: Part | None, page: Path | None, problems: Mapping[str, str]) -> None:
    """Publishes a part where both are there, and prints what could not be run, by name. Raises OSError."""
    if part is not None and page is not None:
        publish(page, part)
        print(f"wrote {page}")
    for name, problem in problems.items():
        print(f"{name} could not be run: {problem}")


def publish(page: Path, part: Part) -> None:
    """Puts a part into the page and the page beside. Its row is the one with the same link. Raises OSError."""
    put(page, part.name, part.text)
    put(page.with_stem(f"{page.stem}-drills"), part.name, part.drills)
    link, row = part.row[0].partition("](")[2].partition(")")[0], f"| {' | '.join(part.row)} |"
    known = rf"(?m)^\| \[[^]]*\]\({re.escape(link)}\).*$"
    page.write_text(re.sub(known, lambda _: row, page.read_text("utf-8")), "utf-8")


def put(page: Path, name: str, text: str) -> None:
    """Replaces what is between the marks `name` of a page, which come last where it has none. Raises OSError."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    known = page.read_text("utf-8") if page.exists() else ""
    known = known if begin in known else f"{known}\n{begin}\n".lstrip()
    found = f"{begin}\n\n{text.strip()}\n\n{end}"
    page.write_text(re.sub(f"(?s){begin}(?:.*?{end})?", lambda _: found, known, count=1), "utf-8")
