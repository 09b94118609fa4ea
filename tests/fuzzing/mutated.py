"""Real lines with something changed: a value, a key, the order, some bytes."""

import copy
import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from ledgerops.common.bounded_lines import numbered_lines
from tests.paths import RECORDED

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, -(2**63), 2**63 - 1, 2**64 - 1, 0.0, -0.5, 1e-12, 1e18, 1e308, -1e308,
    "", "x", "-1", "1970-01-01T00:00:00.000Z", "2999-01-01T00:00:00Z", "not a time", "\x00\u202e", "{}",
    '{"t":{"0":5}}', [], {}, [None], [[]], {"0": {"0": -5}}, {"a": None},
)  # fmt: skip
# what JSON can hold and few expect
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0.0, 1e308, 2**64, "", "\ud800", "x" * 9000, "💥" * 300, "\x00\n\r", "firing", [], {}, [[]],
    {"a": [{"b": None}]}, "9999-99-99T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00",
    "2026-03-01T10:00:00+99:99",
)  # fmt: skip
BROKEN = (b"1e999", b"[" * 2000, b'{"a":' * 2000, b"NaN", b"\x00", b"\xff\xfe")


@cache
def recordings() -> tuple[tuple[bytes, ...], ...]:
    """Lines of all recordings beside the tests, plain and packed."""
    return _lines_of(RECORDED.rglob("*.jsonl*"))


@cache
def event_logs() -> tuple[tuple[bytes, ...], ...]:
    return _lines_of(each for each in RECORDED.rglob("*") if each.name.startswith(("events_", "local-")))


def _lines_of(paths: Iterable[Path]) -> tuple[tuple[bytes, ...], ...]:
    found = (tuple(line for _, line in numbered_lines(path)) for path in sorted(paths) if path.is_file())
    return tuple(each for each in found if each)


def change(chance: random.Random, value: Any, odd: Sequence[Any] = ODD) -> None:
    """Changes one place in a JSON value: goes down at random, and leaves something else there."""
    while True:
        if isinstance(value, dict) and value:
            keys: list[Any] = list(value)
        elif isinstance(value, list) and value:
            keys = list(range(len(value)))
        else:
            return
        key = chance.choice(keys)
        if not isinstance(value[key], dict | list) or not value[key] or chance.random() < 0.15:
            break
        value = value[key]
    what = chance.random()
    if what < 0.15:
        del value[key]
    elif what < 0.25 and isinstance(value, dict):
        value[chance.choice(("", "x", "0", "timestamp", "batchId"))] = copy.deepcopy(value[key])
    elif (
        what < 0.5
        and isinstance(value[key], int | float)
        and abs(value[key]) < 1e300
        and not isinstance(value[key], bool)
    ):
        value[key] = value[key] * chance.choice((-1, 0, 0.001, 1000, 10**9))
        if isinstance(value[key], int) and not -(2**63) <= value[key] < 2**64:
            value[key] = float(value[key])
    else:
        value[key] = copy.deepcopy(chance.choice(odd))


def some(chance: random.Random, lines: tuple[bytes, ...], count: int) -> list[bytes]:
    """A stretch of lines, now and then with some lost, twice, or out of order."""
    first = chance.randrange(max(1, len(lines) - count // 2))
    taken = list(lines[first : first + count])
    for _ in range(chance.choice((0, 0, 1, 4))):
        place = chance.randrange(len(taken))
        match chance.randrange(3):
            case 0 if len(taken) > 1:
                del taken[place]
            case 1:
                taken.insert(place, chance.choice(taken))
            case _:
                other = chance.randrange(len(taken))
                taken[place], taken[other] = taken[other], taken[place]
    return taken


def with_changes(chance: random.Random, lines: list[bytes], rate: float) -> list[bytes]:
    """About `rate` of the lines with a few places changed."""
    made = []
    for line in lines:
        if chance.random() < rate:
            value = orjson.loads(line)
            for _ in range(chance.choice((1, 1, 2, 5))):
                change(chance, value.get("data", value) if chance.random() < 0.9 else value)
            line = orjson.dumps(value) + b"\n"
        made.append(line)
    return made


def with_junk(chance: random.Random, lines: list[bytes]) -> list[bytes]:
    """A few lines cut, or with bytes in them that do not belong there."""
    made = list(lines)
    for _ in range(chance.choice((1, 2))):
        place = chance.randrange(len(made))
        line = made[place]
        cut = chance.randrange(len(line) + 1)
        made[place] = line[:cut] + chance.randbytes(chance.randrange(8)) + chance.choice((b"", line[cut:], b"\n"))
    return made


def with_broken_bytes(chance: random.Random, content: bytes) -> bytes:
    """With bytes changed, put in, removed, repeated or cut off."""
    made = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(5):
            case 0:
                made[at : at + 1] = chance.randbytes(1)
            case 1:
                del made[at : at + chance.randrange(40)]
            case 2:
                made[at:at] = made[at : at + 60] * chance.randrange(5)
            case 3:
                made[at:at] = chance.choice(BROKEN)
            case 4 if chance.random() < 0.5:
                del made[at:]
    return bytes(made)
