"""A YAML file read key by key, so that an error names the file, the line and the key."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import yaml

from ledgerops.errors import UserError, did_you_mean

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT = re.compile(r"\s*([0-9.]+)\s*(ms|s|m|h|d|sec|secs|seconds?|min|mins|minutes?|hours?|days?)\s*", re.IGNORECASE)


class Entry:
    """One value of the file, with its place. `path` is what a user would call it: `phases[1].rate`."""

    def __init__(self, file: str, path: str, node: yaml.Node) -> None:
        self.file = file
        self.path = path
        self.node = node

    def error(self, problem: str) -> UserError:
        """A UserError that begins with file, line and key. It is returned, not raised."""
        place = f"{self.path}: " if self.path else ""
        return UserError(f"{self.file}:{self.node.start_mark.line + 1}: {place}{problem}")

    def value(self) -> Any:
        """The value as a Python object: a scalar, list or dict. Raises UserError if YAML cannot construct it."""
        try:
            return yaml.constructor.SafeConstructor().construct_object(self.node, deep=True)
        except (yaml.YAMLError, ValueError) as error:
            raise self.error(f"cannot read this value ({getattr(error, 'problem', None) or error})") from None

    def number(self, low: float = 0.0, high: float = math.inf) -> float:
        """A finite number of [low, high]."""
        value = self.value()
        if isinstance(value, str) and isinstance(self.node, yaml.ScalarNode) and self.node.style is None:
            # YAML 1.1 takes 1e3 for a word
            try:
                value = float(value)
            except ValueError:
                pass
        expected = f"a number {_range(low, high)}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"expected {expected}, got {value!r}")
        value = _float(value)
        if not math.isfinite(value) or not low <= value <= high:
            raise self.error(f"expected {expected}, got {value:g}")
        return value

    def integer(self, low: int = 0, high: int = 2**31 - 1) -> int:
        """The value as an int from `low` to `high`, both included. Raises UserError for anything else."""
        value = self.value()
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(f"expected a whole number from {low} to {high}, got {value!r}")
        return value

    def boolean(self) -> bool:
        """The value as a bool. Raises UserError for anything but true and false."""
        value = self.value()
        if not isinstance(value, bool):
            raise self.error(f"expected true or false, got {value!r}")
        return value

    def choice(self, options: Iterable[str]) -> str:
        """The value as one of `options`. Raises UserError for others, with the closest option as a suggestion."""
        value, known = self.value(), list(options)
        if value not in known:
            raise self.error(f"expected one of {', '.join(known)}; got {value!r}{guess(str(value), known)}")
        return str(value)

    def seconds(self, low: float = 0.0) -> float:
        """A duration: a number of seconds, or a number with a unit (`500 ms`, `90s`, `2 minutes`, `1h`, `7 days`)."""
        value = self.value()
        if isinstance(value, str) and (match := _UNIT.fullmatch(value)):
            unit = match[2].lower()
            try:
                amount = float(match[1]) * _SECONDS[unit if unit in _SECONDS else unit[0]]
            except ValueError:
                amount = math.nan
        elif isinstance(value, int | float) and not isinstance(value, bool):
            amount = _float(value)
        else:
            amount = math.nan
        if not math.isfinite(amount) or amount < low:
            least = f" of at least {low:g} s" if low else ""
            raise self.error(f"expected a duration{least} (such as 30, 30s or 2 minutes), got {value!r:.40}")
        return amount

    def instant(self) -> float | None:
        """Seconds since the epoch; None for `now`. A time without zone is UTC."""
        value = self.value()
        if value == "now":
            return None
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                pass
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        if not isinstance(value, datetime):
            raise self.error(f"expected now or an instant such as 2026-01-31T12:00:00Z, got {value!r}")
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()

    def items(self) -> list[Entry]:
        """One entry for each element of the list. Raises UserError if the value is not a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"expected a list, got {self.value()!r}")
        return [Entry(self.file, f"{self.path}[{i}]", node) for i, node in enumerate(self.node.value)]

    def section(self, keys: Iterable[str]) -> Section:
        """This entry as a mapping that may hold `keys` and no others."""
        self._pairs()
        return Section(self, tuple(keys))

    def member(self, key: str) -> Entry:
        """One key of a mapping, whatever others it holds: the one that says which others are meant."""
        for key_node, node in self._pairs():
            if key_node.value == key:
                return Entry(self.file, f"{self.path}.{key}", node)
        raise self.error(f"the key {key} is missing")

    def _pairs(self) -> list[tuple[yaml.Node, yaml.Node]]:
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"expected keys with values, got {self.value()!r}")
        if any(not isinstance(key, yaml.ScalarNode) for key, _ in self.node.value):
            raise self.error("a key must be a word")
        return list(self.node.value)


class Section:
    """A mapping whose keys are all known."""

    def __init__(self, entry: Entry, keys: tuple[str, ...]) -> None:
        self.entry = entry
        self.entries: dict[str, Entry] = {}
        for key_node, node in entry.node.value:
            key = str(key_node.value)
            path = f"{entry.path}.{key}" if entry.path else key
            found = Entry(entry.file, path, key_node)
            if key not in keys:
                raise found.error(f"unknown key{guess(key, keys)}; known here: {', '.join(keys)}")
            if key in self.entries:
                raise found.error("this key was given before")
            self.entries[key] = Entry(entry.file, path, node)

    def get(self, key: str) -> Entry | None:
        """The entry of an optional key, or None."""
        return self.entries.get(key)

    def need(self, key: str) -> Entry:
        """The entry of a required key. Raises UserError if it is missing."""
        if key not in self.entries:
            raise self.entry.error(f"the key {key} is missing")
        return self.entries[key]


def parse(text: str, file: str) -> Entry:
    """The root of the document. Raises UserError for text that is not YAML or empty."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else file
        raise UserError(f"{place}: not YAML ({getattr(error, 'problem', None) or error})") from None
    except RecursionError:
        raise UserError(f"{file}: not YAML (nested too deeply)") from None
    if node is None:
        raise UserError(f"{file}:1: empty; a plan needs at least phases")
    return Entry(file, "", node)


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # YAML's whole numbers have no end
        return math.inf if value > 0 else -math.inf


def _range(low: float, high: float) -> str:
    return f"from {low:g} to {high:g}" if high < math.inf else f">= {low:g}"


def guess(word: str, known: Iterable[str]) -> str:
    """` (did you mean phases?)` for a misspelt word; nothing where none is near."""
    hint = did_you_mean(word, known, "")
    return f" ({hint})" if hint else ""
