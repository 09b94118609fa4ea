"""A report that is shown again and again: in place on a terminal, block after block elsewhere."""

import shutil
import sys
from typing import TextIO

# control codes of a terminal: where the cursor goes, what is erased, and whether long lines wrap
HOME, ERASE_LINE, ERASE_BELOW, ERASE_ALL = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[2J"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"


class Redraw:
    """Shows on `out`. A report that is higher than the terminal is cut, and says by how much."""

    def __init__(self, out: TextIO, in_place: bool = True) -> None:
        self._out = out
        self._in_place = in_place and out.isatty()
        self._begun = False
        self._shown: list[str] = []

    def show(self, text: str) -> None:
        """Replaces the last report on a terminal; elsewhere appends the text."""
        if not self._in_place:
            self._out.write(f"\n{text}" if self._begun and text.count("\n") > 1 else text)
            self._out.flush()
        else:
            self._shown = text.splitlines()
            self._draw(self._shown)
        self._begun = True

    def note(self, line: str) -> None:
        """One line of trouble: below the last report on a terminal, else beside the reports."""
        if not self._in_place:
            print(line, file=sys.stderr, flush=True)
        else:
            self._draw([*self._shown, line])

    def close(self) -> None:
        """Leaves the last report on the terminal and turns line wrapping on again. May be called without a report."""
        if self._in_place and self._begun:
            self._out.write(f"{WRAP}\n")
            self._out.flush()

    def _draw(self, lines: list[str]) -> None:
        room = shutil.get_terminal_size().lines - 1
        if len(lines) > room:
            hidden = len(lines) - room + 2
            lines = [*lines[: max(0, room - 2)], f"({hidden - 1} more lines; make the terminal taller)", lines[-1]]
        body = f"{ERASE_LINE}\n".join(lines)
        self._out.write(f"{'' if self._begun else ERASE_ALL}{HOME}{NO_WRAP}{body}{ERASE_LINE}{ERASE_BELOW}")
        self._out.flush()
