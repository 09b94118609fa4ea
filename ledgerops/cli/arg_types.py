"""Values that several commands read from their arguments."""

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TypeVar

from ledgerops.config import ADDRESS
from ledgerops.input_files import local_path

Number = TypeVar("Number", int, float)
MAX_SECONDS = 36_500 * 86_400.0  # a century: neither Spark nor a thread's wait takes much more
MAX_CORES = 100_000  # of a cluster
UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """A duration in seconds: 90, 90s, 50ms, 1.5m, 2h, 2d."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|[smhd]?)", text.strip())
    if not found or float(found.group(1)) <= 0:
        raise argparse.ArgumentTypeError(f"not a duration: {text!r}; write 90, 90s, 2m, 1h or 2d")
    value = float(found.group(1)) * UNITS[found.group(2)]
    if value > MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is out of range: at most {MAX_SECONDS / 86_400:.0f}d")
    return value


def interval(text: str) -> float:
    """A length of time as for `seconds`, or 0 for none at all."""
    return 0.0 if re.fullmatch(r"0+(?:\.0+)?\s*(ms|[smhd]?)", text.strip()) else seconds(text)


def shared_folder(text: str) -> Path:
    """A folder of the file system, which may be mounted, also as `file:/data`; an address of an object store is
    refused."""
    if not ADDRESS.match(text):
        return Path(text)
    path = local_path(text)
    if path is None:
        raise argparse.ArgumentTypeError(
            f"not a folder: {text!r}; an object store must be mounted, at the same path on every machine"
        )
    return path


def spark_property(text: str) -> tuple[str, str]:
    """A Spark setting: spark.executor.memory=4g."""
    name, _, value = text.partition("=")
    if not name.startswith("spark.") or not value:
        raise argparse.ArgumentTypeError(f"not a Spark setting: {text!r}; write spark.NAME=VALUE")
    return name, value


def _number(
    convert: Callable[[str], Number], accepts: Callable[[Number], bool], refusal: str
) -> Callable[[str], Number]:
    """A type of numbers; `refusal` says of a text in place of {} what it is not."""

    def read(text: str) -> Number:
        with suppress(ValueError):
            if accepts(value := convert(text)):
                return value
        raise argparse.ArgumentTypeError(refusal.format(text))

    return read


def _digits(text: str) -> int:
    if not text.isdecimal():
        raise ValueError
    return int(text)


whole = _number(int, lambda value: value > 0, "not a positive whole number: {!r:.40}")
count = _number(_digits, lambda value: True, "not a whole number: {!r}")
factor = _number(float, lambda value: 0 < value < inf, "not a positive number: {!r}")
rate = _number(float, lambda value: 0 <= value < inf, "not a number of rows: {!r}")
# 0 means any free one
port = _number(_digits, lambda value: value <= 65535, "not a port: {!r}; write a number from 0 to 65535")


def cores(text: str) -> int:
    """A number of cores that a cluster may have."""
    if (found := whole(text)) > MAX_CORES:
        raise argparse.ArgumentTypeError(f"{text:.40} cores is out of range: at most {MAX_CORES:,}")
    return found
