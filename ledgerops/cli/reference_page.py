"""The reference page of the commands, made from their parsers."""

from __future__ import annotations

from ledgerops.cli import COMMANDS, build_parser
from ledgerops.mixin.reference import HEAD


def cli_page() -> str:
    """docs/cli.md: the help of every command, as the terminal shows it."""
    parts = [HEAD, "# Commands\n"]
    for command in COMMANDS:
        parser = build_parser(command.name)
        [commands] = [action for action in parser._actions if action.dest == "command"]
        described = commands.choices[command.name]  # type: ignore[index]
        parts.append(f"\n## ledgerops {command.name}\n\n```text\n{described.format_help().rstrip()}\n```\n")
    return "".join(parts)
