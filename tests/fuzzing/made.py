"""Applications that live through everything: stretches of real recordings, one after the other, under other names, at
other times, and of other sources, sinks and operators."""

import random
from collections.abc import Iterator
from typing import Any

import orjson

from ledgerops.model.spark_progress import format_instant, parse_instant
from tests.fuzzing.mutated import recordings, some

Line = dict[str, Any]
T0 = 1_800_000_000.0
NAMES = ("orders", "payments", None, "", "a b", "q\x1b\u202e<b>")
SOURCES = (
    None, "KafkaV2[Subscribe[t0]]", "FileStreamSource[file:/in]", "t0: python source", "RateStreamV2[rowsPerSecond=5]",
    "DeltaSource[file:/lake/t0]", "KinesisV2[t0]", "CloudFilesSource[/in/t0]", "PubSub[t0]",
)  # fmt: skip
SINKS = (None, "ForeachBatchSink", "org.apache.spark.sql.kafka010.KafkaTable@1", "FileSink[/out]", "", "memory")
OPERATORS = (
    None, "stateStoreSave", "dedupe", "dedupeWithinWatermark", "symmetricHashJoin", "transformWithStateInPandas",
    "sessionWindowStateStoreSaveExec",
)  # fmt: skip
CALLS = ("org.apache.kafka.clients.consumer.KafkaConsumer.poll", "java.sql.C.x", "a.b", "")
GAPS = (0.0, 1.0, 5.0, 300.0, -20.0)  # seconds between two stretches: clocks go back, too


def application(chance: random.Random, count: int) -> list[Line]:
    """One to four queries, in stretches of so many lines; each is born, dies and goes on as a recording has it."""
    names = [chance.choice(NAMES) for _ in range(chance.choice((1, 1, 2, 4)))]
    lines: list[Line] = []
    for _ in range(chance.choice((1, 2, 3))):
        stretch = [orjson.loads(line) for line in some(chance, chance.choice(recordings()), count)]
        begins = T0 + chance.random() if not lines else _at(lines[-1]) + chance.choice(GAPS)
        later = begins - _at(stretch[0])
        renamed = {name: chance.choice(names) for name in sorted({line["query"] or "" for line in stretch})}
        others = {"sources": chance.choice(SOURCES), "sink": chance.choice(SINKS), "operator": chance.choice(OPERATORS)}
        for line in stretch:
            line = _later(line, later)
            if line["query"]:
                line["query"] = renamed[line["query"]] or None
            if line["kind"] == "progress":
                _replaced(line["data"], renamed, others)
            lines += [line, *_beside(chance, line)]
    return lines


def _at(line: Line) -> float:
    return parse_instant(line["at"]) or 0.0


def _later(value: Any, seconds: float) -> Any:
    """A JSON value of which all instants, in text and in numbers, are so many seconds later."""
    if isinstance(value, dict):
        return {key: _later(each, seconds) for key, each in value.items()}
    if isinstance(value, list):
        return [_later(each, seconds) for each in value]
    if isinstance(value, str) and value.endswith("Z") and (at := parse_instant(value)):
        return format_instant(at + seconds)
    return value + seconds if isinstance(value, float) and 1.5e9 < value < 2.5e9 else value


def _replaced(progress: Line, renamed: dict[str, str | None], others: dict[str, str | None]) -> None:
    """The record with another name, and of another source, sink and operator where there is one."""
    progress["name"] = renamed.get(progress.get("name") or "")
    places = [(each, "description", others["sources"]) for each in progress.get("sources", ())]
    places += [(each, "operatorName", others["operator"]) for each in progress.get("stateOperators", ())]
    places += [(progress["sink"], "description", others["sink"])]
    for place, key, other in places:
        place[key] = place[key] if other is None else other


def _beside(chance: random.Random, line: Line) -> Iterator[Line]:
    """What the recordings do not have: the files of a batch, and the threads of one that runs."""
    at, data = _at(line), line["data"]
    if line["kind"] == "progress" and chance.random() < 0.5:
        read = {"files": chance.choice((1, 20)), "oldest": at - 30.0, "newest": at - 3.0, "folder_changed": None}
        run = {"run_id": data["runId"], "batch_id": data["batchId"]}
        yield line | {"kind": "files", "data": run | {"sources": {chance.choice(("t0", "FileStreamSource")): read}}}
    if line["kind"] == "batch_running":
        signs = {"task": chance.random() < 0.5, "runs": chance.random() < 0.5, "count": 2}
        stack = signs | {"frames": [chance.choice(CALLS), "a.b.c"]}
        yield line | {"kind": "stacks", "data": {"at": at, "run_id": data["run_id"], "stacks": [stack]}}
