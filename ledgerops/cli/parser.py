"""The parser of every command: help is wrapped at 80 columns, and bad usage is one line that names what was meant."""

import argparse
import re
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import groupby
from typing import NoReturn

from ledgerops.errors import UserError

WIDTH = 80  # columns of every help text, in a terminal and on the reference page


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the paragraphs of docstrings at 80 columns and keeps indented lines, such as examples, as written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=WIDTH - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = re.split(r"\n{2,}", text.strip("\n"))
        return "\n\n".join("\n".join(_wrapped(block)) for block in blocks)


def _wrapped(block: str) -> list[str]:
    """The lines of a paragraph; indented lines stay as they are."""
    lines: list[str] = []
    for indented, group in groupby(block.split("\n"), key=lambda line: line.startswith(" ")):
        written = list(group)
        lines += written if indented else textwrap.wrap(" ".join(written), WIDTH)
    return lines


class Parser(argparse.ArgumentParser):
    """Turns bad usage into the one line that every error is."""

    def __init__(self, **options: object) -> None:
        options["formatter_class"] = Formatter
        super().__init__(**options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Raises UserError with the message and a hint to --help, in place of argparse's usage and exit."""
        raise UserError(f"{message[:1].lower()}{message[1:]}; see {self.prog} --help")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """As argparse does; raises UserError for unknown arguments, with the option that was probably meant."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return parsed, unknown

    def _meant(self, unknown: Sequence[str]) -> str:
        """` (did you mean --from?)` for the first option among what is unknown."""
        options = [option for option in self._option_string_actions if option.startswith("--")]
        typed = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
        near = get_close_matches(typed, options, n=1, cutoff=0.75)
        return f" (did you mean {near[0]}?)" if near else ""
