"""Offsets of source partitions: numbers that grow with each row, and can be subtracted."""

import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeGuard

from ledgerops.model.records import Offsets, Partition

MAX_DIGITS = 20  # of a whole number, with its sign
UNSET = (None, "null", "None", "")  # PySpark's fromJObject turns a null offset into the words
TOPICS, PARTITIONS = 200, 10_000  # that are remembered, the latter of each topic


class _Partitions(dict[object, Partition]):
    """One object for each partition of a topic: histories hold it many times a batch, and dicts find it sooner."""

    def __init__(self, topic: str) -> None:
        self.topic = sys.intern(topic)

    def __missing__(self, partition: object) -> Partition:
        if len(self) >= PARTITIONS:
            self.clear()
        found = self[partition] = self.topic, sys.intern(str(partition))
        return found


_partitions = lru_cache(maxsize=TOPICS)(_Partitions)


def decoded(value: object) -> object:
    """An offset as Spark's JSON has it: the event log has it as JSON text. None where there is none; text that is no
    JSON stays as it is."""
    if not isinstance(value, str):
        return value
    if value in UNSET:
        return None
    try:
        return json.loads(value, parse_int=_whole)
    except (ValueError, RecursionError):
        return value


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= MAX_DIGITS else None  # no offset: nothing can calculate with it


def by_topic(value: object) -> Offsets | None:
    """`{"topic": {"0": 5}}`; None for any other form. What is no whole number is left out."""
    if not isinstance(value, Mapping):
        return None
    offsets: dict[Partition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, Mapping):
            return None
        known = _partitions(str(topic))
        # a topic may have hundreds, in every batch
        offsets |= {known[each]: at for each, at in partitions.items() if type(at) is int or is_whole(at)}
    return offsets if offsets or not any(value.values()) else None


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value of JSON is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)
