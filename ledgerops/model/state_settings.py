"""Settings of Spark's state store that a verdict may name, by what they are called behind their common prefix."""

import re
from collections.abc import Callable, Mapping

PREFIX = "spark.sql.streaming.stateStore."
MAINTENANCE = "maintenanceInterval"
DELTAS = "minDeltasForSnapshot"
BUFFER = "rocksdb.writeBufferSizeMB"
BUFFERS = "rocksdb.maxWriteBufferNumber"
BOUNDED = "rocksdb.boundedMemoryUsage"
SECONDS: Mapping[str, float] = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
NAMES = (MAINTENANCE, DELTAS, BUFFER, BUFFERS, BOUNDED)


def state_settings(setting: Callable[[str], str | None]) -> dict[str, str]:
    """Those that are set, by a function that gives the value of any setting, or None."""
    return {name: value for name in NAMES if (value := setting(PREFIX + name)) is not None}


def seconds(text: str) -> float | None:
    """A time of Spark's settings, such as `60s` or `5min`; a bare number is in milliseconds. None for another text."""
    found = re.fullmatch(r"(\d{1,15}) ?(ms|s|m|min|h|d)?", text.strip().lower())
    return int(found[1]) * SECONDS[found[2] or "ms"] if found else None
