"""Release notes of a version, from CHANGELOG.md.

Usage:
    python -m docs.site.release_notes          # of the newest version
    python -m docs.site.release_notes 0.2.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def notes(version: str | None = None, changelog: str | None = None) -> str:
    """The section of a version, the newest by default, without its heading. Raises KeyError where there is none."""
    text = changelog if changelog is not None else (ROOT / "CHANGELOG.md").read_text("utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    found = {section.split("\n", 1)[0].split(",")[0].strip(): section.split("\n", 1)[1].strip() for section in sections}
    return found[version or next(iter(found))] + "\n"


def main() -> int:
    """Prints the notes. Returns the exit code: 2 where the version has no section."""
    try:
        print(notes(*sys.argv[1:2]), end="")
    except KeyError as error:
        print(f"no version {error} in CHANGELOG.md", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
