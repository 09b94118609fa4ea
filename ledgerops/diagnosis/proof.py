"""Which numbers of a finding prove it, and how a person reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledgerops.common import format

MAX_TOLD = 3  # numbers, or causes ruled out; the document has all
MIN_UNUSUAL_RATIO = 1.25  # of a value over what is usual, or of the usual over the value
NUMBER = re.compile(r"(?P<how><=|>=|<|>|about|~|the usual|below|)\s*(?P<number>-?\d[\d,]*(?:\.\d+)?)")
USUALLY = ("about", "~", "the usual")
SAID = {"<=": "at most ", "<": "below ", "below": "below ", ">=": "at least ", ">": "above ", "": "expected "}
UNITS = {"seconds": " s", "bytes": " B"}  # of a number that is written out
CONFIDENCE = ((0.85, "high"), (0.65, "medium"), (0.0, "low"))
DIGITS = 6  # of evidence, after the point: enough to recompute it
WORDS = {  # a name of evidence, or a part of a batch, in words; others are their own, without the unit
    "profile": "a batch",
    "batch_seconds_median": "the median batch",
    "last_batch_duration": "the newest batch",
    "batch_running": "the running batch",
    "owed_share": "share of its time that the query owes",
    "result_delay": "results are late by",
    "latest_offset": "asking for the newest offsets",
    "get_batch": "asking for the rows",
    "source_wait": "tasks that wait for the source",
    "query_planning": "planning",
    "wal_commit": "writing the offsets to the checkpoint",
    "commit_offsets": "writing the commit to the checkpoint",
    "launch": "starting tasks",
    "many_tasks": "far too many tasks",
    "few_rows": "tasks with hardly any rows",
    "driver_before": "in the driver, before the first task",
    "driver_between": "in the driver, between stages",
    "driver_waits": "waiting in the driver, outside of stages",
    "after_tasks": "after the last task",
    "python": "in Python workers",
    "gc": "garbage collection",
    "state_commit": "saving state",
    "state_stall": "stalled writes of RocksDB",
    "state_update": "updating state",
    "shuffle": "the shuffle",
    "spill": "stages that spill",
    "cpu": "computing",
    "waiting": "tasks that wait",
    "sink_wait": "writing tasks that wait",
    "uneven_keys": "waiting for the task with most rows of a key",
    "uneven_source": "waiting for the task of the largest source partition",
    "uneven_task": "waiting for one slow task",
    "uneven_executors": "waiting for the executor with most tasks",
    "other_queries": "taken by other queries",
    "other_processes": "taken by other processes",
    "tasks_unknown": "stages whose tasks were not read",
    "unattributed": "outside of all phases",
    "worked_off_rows_per_second": "processed",
    "arrival_rows_per_second": "arrive",
}


def confidence(value: float) -> str:
    """high · medium · low"""
    return next(word for least, word in CONFIDENCE if value >= least)


def as_expected(value: float, expected: str) -> bool | None:
    """Whether a number is as `expected` says; None where that is no number to compare with."""
    found = NUMBER.match(expected)
    if found is None:
        return None
    how, limit = found["how"], float(found["number"].replace(",", ""))
    match how:
        case "<=":
            return value <= limit
        case "<" | "below":
            return value < limit
        case ">=":
            return value >= limit
        case ">":
            return value > limit
        case "":
            return value == limit
    return limit / MIN_UNUSUAL_RATIO <= value <= limit * MIN_UNUSUAL_RATIO


def proof(evidence: Sequence[Mapping[str, Any]]) -> str:
    """At most three numbers of evidence in words, each outside of what is expected of it; "" without any.

    a batch 5.0 s (usually 0.7 s); after the last task 4.5 s (usually 0.28 s)
    """
    return "; ".join(_unexpected(evidence))


def _unexpected(evidence: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    against = [each for each in evidence if as_expected(each["value"], each["expected"]) is False]
    for each in against[:MAX_TOLD]:
        found = NUMBER.match(each["expected"])
        if found is not None:
            written = found["number"]
            limit = written if each["unit"] == "ratio" else amount(float(written.replace(",", "")), each["unit"])
            said = "usually " if found["how"] in USUALLY else SAID[found["how"]]
            value = amount(each["value"], each["unit"], each["expected"])
            if value == limit:
                value = f"{each['value']:,.6g}{UNITS.get(each['unit'], '')}"
            yield f"{in_words(each['name'])} {value} ({said}{limit})"


def in_words(name: str) -> str:
    """A name of evidence as people would say it."""
    short = name.removeprefix("ledgerops_").removeprefix("seconds_").removesuffix("_total")
    bare = re.sub(r"_(seconds|bytes|rows|offsets)$", "", short)
    return WORDS.get(short) or WORDS.get(bare) or bare.replace("_", " ")


def amount(value: float, unit: str, expected: str = "") -> str:
    """A number of evidence as people read it: 4.2 s · 1.5 GB · 0.31. It is not rounded to where it is as expected."""
    match unit:
        case "seconds":
            return format.duration(value)
        case "bytes":
            return format.size(value)
        case "ratio":
            digits = 2
            while digits < DIGITS and _misleads(round(value, digits), value, expected):
                digits += 1
            return f"{value:.{digits}f}"
        case "count":
            return f"{value:,.0f}"
    return f"{format.count(value)} {unit}"


def _misleads(rounded: float, value: float, expected: str) -> bool:
    """Whether a rounded number is as expected where the number is not, or just what it should be below or above."""
    found = NUMBER.match(expected)
    same = found is not None and rounded != value and rounded == float(found["number"].replace(",", ""))
    return same or as_expected(rounded, expected) != as_expected(value, expected)
