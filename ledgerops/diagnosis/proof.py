"""Which numbers of a finding prove it, and how a person reads them."""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt
from typing import Any, NamedTuple

from ledgerops.common import format

MAX_TOLD = 3  # numbers, or causes ruled out; the document has all
MIN_UNUSUAL_RATIO = 1.25  # of a value over what is usual, or of the usual over the value
NUMBER = re.compile(r"(?P<how><=|>=|<|>|about|~|the usual|below|)\s*(?P<number>-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?)")
USUALLY = ("about", "~", "the usual")
COMPARED: Mapping[str, Callable[[float, float], bool]] = {"<=": le, "<": lt, "below": lt, ">=": ge, ">": gt, "": eq}
SAID = {"<=": "at most ", "<": "below ", "below": "below ", ">=": "at least ", ">": "above ", "": ""}
UNITS = {"seconds": " s", "bytes": " B", "bytes/s": " B/s"}  # of a number that is written out
CONFIDENCE = ((0.85, "high"), (0.65, "medium"), (0.0, "low"))
DIGITS = 6  # of evidence, after the point: enough to recompute it
WORDS = {  # a name of evidence, or a part of a batch, in words; others are their own, without the unit
    "profile": "a batch",
    "saving": "taken of a batch",
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
    "slot_wait": "waiting for a free slot",
    "launch": "starting tasks",
    "retries": "tasks that fail and run again",
    "failed_statements": "statements that fail and are done again",
    "many_tasks": "far too many tasks",
    "few_rows": "tasks with hardly any rows",
    "table_scan": "work on rows of a table",
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
    "other_queries": "taken by other queries or jobs",
    "other_processes": "taken by other processes",
    "cpu_limit": "lost to the CPU limit",
    "tasks_unknown": "stages whose tasks were not read",
    "unattributed": "outside of all phases",
    "available": "memory left",
    "processed_rows_per_second": "processed",
    "arrival_rows_per_second": "arrive",
}


def confidence(value: float) -> str:
    """high · medium · low"""
    return next(word for least, word in CONFIDENCE if value >= least)


class Expectation(NamedTuple):
    """What a number should be: `how` as in SAID or USUALLY, and the limit, also as it is written."""

    how: str
    limit: float
    written: str


def expectation(expected: str) -> Expectation | None:
    """What a text of evidence expects: "<= 3,000", "about 0.3", "0"; None where it begins with no number."""
    found = NUMBER.match(expected)
    return Expectation(found["how"], float(found["number"].replace(",", "")), found["number"]) if found else None


def as_expected(value: float, expected: str) -> bool | None:
    """Whether a number is as `expected` says; None where that is no number to compare with."""
    wanted = expectation(expected)
    if wanted is None:
        return None
    if wanted.how in USUALLY:
        return wanted.limit / MIN_UNUSUAL_RATIO <= value <= wanted.limit * MIN_UNUSUAL_RATIO
    return COMPARED[wanted.how](value, wanted.limit)


def cure(remedies: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What removes a cause, where its first step only prevents a loss; None where the first step is all to tell."""
    return remedies[1] if len(remedies) > 1 and remedies[0].get("prevents") else None


def proof(evidence: Sequence[Mapping[str, Any]]) -> str:
    """At most three numbers of evidence in words, each outside of what is expected of it; "" without any.

    a batch 5.0 s (usually 0.7 s); after the last task 4.5 s (usually 0.28 s)
    """
    against = [
        (each, wanted)
        for each in evidence
        if (wanted := expectation(each["expected"])) and not as_expected(each["value"], each["expected"])
    ]
    return "; ".join(_told(each, wanted) for each, wanted in against[:MAX_TOLD])


def unit_of(evidence: Mapping[str, Any]) -> str:
    """The unit to write behind a number; none where its name says it."""
    unit = str(evidence["unit"])
    return "count" if evidence["name"].endswith(f"_{unit}") and unit not in (*UNITS, "ratio") else unit


def _told(evidence: Mapping[str, Any], wanted: Expectation) -> str:
    unit = unit_of(evidence)
    limit = wanted.written if unit == "ratio" else amount(wanted.limit, unit)
    value = amount(evidence["value"], unit, evidence["expected"])
    if value == limit:
        value, limit = (f"{number}{UNITS.get(unit, '')}" for number in _apart(evidence["value"], wanted.limit))
    said = "usually " if wanted.how in USUALLY else f"expected {SAID[wanted.how]}"
    return f"{in_words(evidence['name'])} {value} ({said}{limit})"


def _apart(value: float, limit: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart, six at most, but all of those before the point."""
    for digits in range(3, DIGITS + 1):
        shown, beside = (
            f"{each:,.0f}" if round(each) >= 10**digits else f"{each:,.{digits}g}" for each in (value, limit)
        )
        if shown != beside:
            break
    return shown, beside


def in_words(name: str) -> str:
    """A name of evidence as people would say it."""
    short = name.removeprefix("ledgerops_").removeprefix("seconds_").removesuffix("_total")
    bare = re.sub(r"_(seconds|bytes|rows|offsets)$", "", short)
    return WORDS.get(short) or WORDS.get(bare) or bare.replace("_", " ")


def amount(value: float, unit: str, expected: str = "") -> str:
    """A number of evidence as people read it: 4.2 s · 1.5 GB · 0.31. It is not rounded to where it is as expected."""
    match unit:
        case "seconds":
            said = format.duration(value)
            number, sign = said.split(" ", 1)
            return f"{value:,.4g} s" if sign == "s" and _misleads(float(number), value, expected) else said
        case "bytes":
            return format.size(value)
        case "bytes/s":
            return f"{format.size(value)}/s"
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
    wanted = expectation(expected)
    same = wanted is not None and rounded != value and rounded == wanted.limit
    return same or as_expected(rounded, expected) != as_expected(value, expected)
