"""Reads what was committed to a Delta table on this machine, without Spark, from all entries of its log."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ledgerops.errors import UserError
from ledgerops.input_files import read_text

LOG = "_delta_log"


def live_files(table: Path) -> list[Path]:
    """The data files of the newest version, in the order in which they were added. Raises UserError for a log that is
    damaged, or that has lost its first entries."""
    live: dict[str, Path] = {}
    for number, entry in enumerate(_entries(table)):
        if int(entry.stem) != number:
            raise UserError(f"the Delta table {table} has no log entry for version {number}; the output is damaged")
        for action in _actions(entry):
            if "add" in action:
                live[action["add"]["path"]] = table / unquote(action["add"]["path"])
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
    return list(live.values())


def last_batch(table: Path, query: str) -> int | None:
    """The newest batch of a streaming query that the table has; None if there is none. Raises UserError likewise."""
    for entry in reversed(_entries(table)):
        for action in _actions(entry):
            if action.get("txn", {}).get("appId") == query:
                return int(action["txn"]["version"])
    return None


def newest_version(table: Path) -> int:
    """The number of the newest version; -1 without a table."""
    return max((int(entry.stem) for entry in _entries(table)), default=-1)


def _entries(table: Path) -> list[Path]:
    return sorted((table / LOG).glob("[0-9]*.json"))


def _actions(entry: Path) -> Iterator[Mapping[str, Any]]:
    try:
        for line in filter(str.strip, read_text(entry).split("\n")):
            action = dict(json.loads(line))
            if not all(isinstance(action[kind]["path"], str) for kind in ("add", "remove") if kind in action):
                raise ValueError("a file without a path")
            yield action
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(f"cannot read {entry} ({type(error).__name__}: {error}); the output is damaged") from None
