"""Settings of Spark's state store that a verdict may name, by what they are called behind their common prefix."""

from __future__ import annotations

from collections.abc import Callable

PREFIX = "spark.sql.streaming.stateStore."
MAINTENANCE = "maintenanceInterval"
DELTAS = "minDeltasForSnapshot"
BUFFER = "rocksdb.writeBufferSizeMB"
BUFFERS = "rocksdb.maxWriteBufferNumber"
BOUNDED = "rocksdb.boundedMemoryUsage"
NAMES = (MAINTENANCE, DELTAS, BUFFER, BUFFERS, BOUNDED)


def state_settings(setting: Callable[[str], str | None]) -> dict[str, str]:
    """Those that are set, by a function that gives the value of any setting, or None."""
    return {name: value for name in NAMES if (value := setting(PREFIX + name)) is not None}
