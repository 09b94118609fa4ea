"""Watches Spark Structured Streaming queries, says what is wrong with them and why, and proves it.

Nothing heavy is imported before it is used: an application pays for this module at every start.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ledgerops.version import __version__ as __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ledgerops.agent.watch import Watch as Watch

_failed: set[str] = set()  # parts of ledgerops that could not be loaded, each logged once


def attach(spark: SparkSession, **overrides: Any) -> Watch:
    """Watches every streaming query of a session, running or to come, and serves what is seen of them.

    `overrides` are settings of `ledgerops.config.Config`, `port=0` for instance. Never raises into the job: a taken
    port is replaced by a free one; after any other failure, such as a package that is not installed, the reason is
    logged once and the returned watch is inert, with the reason in its `error`. Attaching twice to one session gives
    the same watch; the sessions of one driver share an exporter.
    """
    module, error = _load("ledgerops.agent.attach", "the job runs unobserved")
    if module is None:
        from ledgerops.agent.watch import Watch

        return Watch(error)
    watch: Watch = module.attach(spark, **overrides)
    return watch


def instrument(
    df: DataFrame,
    event_time: str,
    key: str | None = None,
    plain_keys: bool = False,
    name: str | None = None,
    lateness: float | None = None,
) -> DataFrame:
    """The same rows, observed on their way: their age by `event_time` as a histogram, and the hot keys of each batch.

    Rows without event time are left out of the histogram. Keys are shown as hashes unless `plain_keys` is set; they
    need Spark 4.1. With `lateness` in seconds, older rows are counted as candidates for being late. A query that is
    instrumented twice needs a `name` for each place. Raises UserError when there is no such column.
    """
    module = _observing("ledgerops.agent.instrument")
    return df if module is None else module.observed(df, event_time, key, plain_keys, name, lateness)


def book(df: DataFrame, side: str, amount: str | None = None, name: str | None = None) -> DataFrame:
    """The same rows, entered in the books of a query that conserves them: how many, and the exact sum of `amount`.

    `side` is "in" where rows enter the query and "out" where they leave it; what goes in must come out in the same
    batch, so this is for queries that hold nothing back. When the sides of a batch differ, the rule ledger-imbalance
    says by how much. Several entrances or exits need a `name` each. Amounts are counted to two digits after the point.
    A function for each batch must read all of its rows: `isEmpty` or `take` would enter rows that never leave.
    Raises UserError when there is no such side or column.
    """
    module = _observing("ledgerops.agent.integrity")
    return df if module is None else module.booked(df, side, amount, name)


def conflicts(df: DataFrame, key: str, name: str | None = None) -> DataFrame:
    """The same rows, each counted as a conflict: a copy of `key` whose content is another than that of the first.

    The rule conflicting-duplicates reports their number and a sample of their keys, which are shown as hashes and need
    Spark 4.1. Raises UserError when there is no such column.
    """
    module = _observing("ledgerops.agent.integrity")
    return df if module is None else module.conflicting(df, key, name)


def _observing(module: str) -> Any:
    """The module, or None where it cannot be loaded or the setting `enabled` is off."""
    config, _ = _load("ledgerops.config", "rows pass unobserved")
    if config is None or config.switched_off():
        return None
    return _load(module, "rows pass unobserved")[0]


def _load(module: str, consequence: str) -> tuple[Any, str | None]:
    """The module, or None and why it cannot be loaded, which is logged once: a job must not end for its observer."""
    try:
        return import_module(module), None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        if module not in _failed:
            _failed.add(module)
            import logging

            logging.getLogger("ledgerops").warning("ledgerops cannot be loaded (%.300s); %s", reason, consequence)
        return None, reason
