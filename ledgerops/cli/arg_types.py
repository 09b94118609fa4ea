"""Values that several commands read from their arguments."""

import argparse
import re
from pathlib import Path

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
    """A folder of the file system, which may be mounted; an address of an object store is refused."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text):
        raise argparse.ArgumentTypeError(
            f"not a folder: {text!r}; an object store must be mounted, at the same path on every machine"
        )
    return Path(text)


def spark_property(text: str) -> tuple[str, str]:
    """A Spark setting: spark.executor.memory=4g."""
    name, _, value = text.partition("=")
    if not name.startswith("spark.") or not value:
        raise argparse.ArgumentTypeError(f"not a Spark setting: {text!r}; write spark.NAME=VALUE")
    return name, value


def whole(text: str) -> int:
    """A positive whole number."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"not a positive whole number: {text!r:.40}")
    return value


def cores(text: str) -> int:
    """A number of cores that a cluster may have."""
    if (found := whole(text)) > MAX_CORES:
        raise argparse.ArgumentTypeError(f"{text:.40} cores is out of range: at most {MAX_CORES:,}")
    return found


def factor(text: str) -> float:
    """A positive number."""
    if not 0 < (value := _number(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"not a positive number: {text!r}")
    return value


def rate(text: str) -> float:
    """A number, zero or above."""
    if not 0 <= (value := _number(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"not a number of rows: {text!r}")
    return value


def _number(text: str) -> float:
    """Below zero where the text is no number."""
    try:
        return float(text)
    except ValueError:
        return -1.0


def port(text: str) -> int:
    """A TCP port; 0 means any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"not a port: {text!r}; write a number from 0 to 65535")
    return int(text)
