"""Recordings made from nothing: applications that live through everything, told in plain or in wild numbers."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from ledgerops.model.spark_progress import format_instant

Line = dict[str, Any]
T0 = 1_800_000_000.0
PHASES = ("addBatch", "getBatch", "latestOffset", "queryPlanning", "walCommit", "commitOffsets", "commitBatch")
OPERATORS = (
    "stateStoreSave", "dedupe", "dedupeWithinWatermark", "symmetricHashJoin", "transformWithStateInPandas",
    "sessionWindowStateStoreSaveExec",
)  # fmt: skip
CUSTOM = (
    "rocksdbBytesCopied", "rocksdbCommitCompactLatency", "rocksdbCommitFlushLatency", "rocksdbGetLatency",
    "rocksdbTotalBytesWrittenByCompaction", "rocksdbWriterStallLatencyMs", "rocksdbReadBlockCacheMissCount",
    "rocksdbReadBlockCacheHitCount", "rocksdbPinnedBlocksMemoryUsage", "rocksdbNumInternalColFamiliesKeys",
    "numDroppedDuplicateRows", "loadedMapCacheHitCount", "loadedMapCacheMissCount", "stateOnCurrentVersionSizeBytes",
    "SnapshotLastUploaded.partition_0_default", "SnapshotLastUploaded.partition_1_default",
    "numExpiredTimers", "numRegisteredTimers", "timerProcessingTimeMs",
)  # fmt: skip
SOURCES = (
    "KafkaV2[Subscribe[{}]]", "FileStreamSource[file:/{}]", "{}: python source", "RateStreamV2[rowsPerSecond={}]",
    "DeltaSource[file:/lake/{}]", "KinesisV2[{}]", "CloudFilesSource[/in/{}]", "PubSub[{}]",
)  # fmt: skip
SINKS = (
    "ForeachBatchSink", "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@1", "FileSink[/out]", "",
    "memory",
)  # fmt: skip
REGIMES = (
    "plain", "slow", "much", "idle", "hang", "restart", "crash", "back", "reset", "late", "future", "hot", "few", "gc",
)  # fmt: skip
TRIGGERS = ("processing_time", "available_now", "once", "continuous", "real_time", None)


class Chance(random.Random):
    """Numbers that are plain, or with the probability `wild` such as nobody expects."""

    wild = 0.0

    def number(self, plain: float) -> float | int:
        if self.random() >= self.wild:
            return plain
        return self.choice(
            (
                0, 1, -1, 0.0, -0.5, 1e-9, 1e9, -1e9, 2**31 - 1, 2**53, 2**63 - 1, -(2**63), 1e300, 5e-324, plain * 1e6,
                -plain,
            )
        )  # fmt: skip

    def whole(self, plain: float) -> int | float:
        value = self.number(max(0, round(plain)))
        return value if self.random() < self.wild else int(min(max(value, -(2.0**63)), 2.0**63 - 1024))

    def around(self, middle: float, spread: float = 0.15) -> float:
        return middle * self.lognormvariate(0.0, spread)


class Query:
    """One query of the application: says what it observes, batch after batch."""

    def __init__(self, chance: Chance, number: int) -> None:
        self.chance, self.number = chance, number
        self.name = chance.choice((f"query_{number}", None, "", "a b", "q\x1b\u202e<b>", f"query_{number}"))
        self.id, self.run, self.runs = f"id-{number}", f"run-{number}-0", 0
        self.batch = chance.choice((0, 0, 0, 500))
        self.at = T0 + chance.random() * 5
        self.interval = chance.choice((0.0, 0.5, 2.0, 2.0, 10.0, 60.0))
        self.rate = chance.choice((0.5, 20.0, 300.0, 50_000.0))
        self.cost, self.fixed = chance.choice((1e-6, 1e-4, 3e-3)), chance.choice((0.02, 0.3, 1.5))
        self.regime = "plain"
        self.operators = [chance.choice(OPERATORS) for _ in range(chance.choice((0, 0, 1, 2)))]
        self.state = chance.choice((0, 1000, 10**7))
        self.sources = [
            (
                chance.choice(SOURCES).format(f"t{each}"),
                [chance.randrange(10**6) for _ in range(chance.choice((1, 2, 8)))],
            )
            for each in range(chance.choice((1, 1, 1, 2, 3)))
        ]
        self.heads = [list(ends) for _, ends in self.sources]
        self.watermark: float | None = self.at - 30 if chance.random() < 0.7 else None

    def start(self) -> Iterator[Line]:
        data = {
            "id": self.id, "runId": self.run, "name": self.name, "timestamp": format_instant(self.at), "jobTags": [],
        }  # fmt: skip
        yield self.line("started", data)
        if self.chance.random() < 0.8:
            yield self.line("plan", self.plan())

    def line(self, kind: str, data: Any, at: float | None = None) -> Line:
        query = self.name or None
        return {"at": format_instant(self.at if at is None else at), "kind": kind, "query": query, "data": data}

    def plan(self) -> Line:
        chance = self.chance
        return {
            "run_id": self.run,
            "trigger": chance.choice(TRIGGERS),
            "trigger_interval": chance.choice((self.interval, None, chance.number(2.0))),
            "output_mode": chance.choice(("append", "update", "complete", None)),
            "watermarks": {"event_time": chance.number(10.0)} if self.watermark else {},
            "stateful": chance.choice((None, True, False, bool(self.operators))),
            "shuffle_partitions": chance.choice((None, 2, 200, chance.whole(4))),
            "keys": chance.choice(([], ["customer_id"], ["a", "b"])),
            "sink": chance.choice(SINKS),
            "rate_limits": chance.choice(
                ({}, {"maxOffsetsPerTrigger": "1000"}, {"maxFilesPerTrigger": chance.choice("x1")})
            ),
            "spark_version": "4.2.0",
        }

    def turn(self) -> Iterator[Line]:
        """What is observed of one batch, or instead of one."""
        chance = self.chance
        if chance.random() < 0.08:
            self.regime = chance.choice(REGIMES)
        match self.regime:
            case "idle":
                self.at += chance.around(10.0)
                yield self.line("idle", {"id": self.id, "runId": self.run, "timestamp": format_instant(self.at)})
                return
            case "hang":
                self.at += chance.around(8.0)
                yield self.line(
                    "batch_running", {"run_id": self.run, "since": chance.number(self.at - 30.0), "message": "m"}
                )
                yield self.offsets()
                code = {"run_id": self.run, "samples": 20, "within": chance.number(9), "file": "/app.py", "line": 7}
                call = chance.choice(
                    ("org.apache.kafka.clients.consumer.KafkaConsumer.poll", "a.b", "", "java.sql.C.x")
                )
                stack = {name: chance.choice((True, False)) for name in ("task", "runs")}
                stack |= {"count": chance.number(2), "frames": [call, "a.b.c"]}
                yield self.line("stacks", {"at": self.at, "run_id": self.run, "stacks": [stack]})
                yield self.line("driver_code", code | {"function": chance.choice(("write", "<lambda>", ""))})
                return
            case "crash" | "restart":
                failed = "org.apache.Boom: [X_Y] no\nat z" if self.regime == "crash" else None
                data = {
                    "id": self.id, "runId": self.run, "exception": failed, "errorClassOnException": failed and "X_Y",
                }  # fmt: skip
                yield self.line("terminated", data)
                self.runs += 1
                self.run, self.at = f"run-{self.number}-{self.runs}", self.at + chance.around(5.0)
                self.regime = chance.choice(REGIMES)
                yield from self.start()
                return
            case "back":
                self.at -= chance.around(20.0)
                self.regime = "plain"
            case "reset":
                self.heads = [[0 for _ in ends] for ends in self.heads]
                self.regime = "plain"
        yield from self.progress()

    def progress(self) -> Iterator[Line]:
        chance, regime = self.chance, self.regime
        gap = max(self.interval, 0.1)
        wanted = self.rate * gap * (20 if regime == "much" else 0.01 if regime == "few" else 1)
        rows = max(0, int(chance.around(wanted, 0.3)))
        seconds = (self.fixed + rows * self.cost) * (8 if regime in ("slow", "hot", "gc") else 1)
        seconds = chance.around(max(0.001, min(seconds, 600.0)))
        sources = list(self.read(rows))
        began = self.at
        ended = began + seconds
        data = {
            "id": self.id, "runId": self.run, "name": self.name, "timestamp": format_instant(began),
            "batchId": self.batch, "batchDuration": chance.whole(seconds * 1000), "numInputRows": chance.whole(rows),
            "inputRowsPerSecond": chance.number(rows / gap), "processedRowsPerSecond": chance.number(rows / seconds),
            "durationMs": self.durations(seconds),
            "stateOperators": [self.operator(name, rows) for name in self.operators], "sources": sources,
            "sink": {
                "description": chance.choice(SINKS),
                "numOutputRows": chance.choice((-1, rows, None, chance.whole(rows))),
            },
        }  # fmt: skip
        if self.watermark is not None:
            data["eventTime"] = self.event_time(began)
        if chance.random() < 0.4:
            data["observedMetrics"] = {"ledgerops": self.observed(rows)}
        yield self.line("progress", data, ended)
        if chance.random() < 0.6:
            yield self.line("tasks", self.tasks(began, seconds, rows), ended + 0.2)
        if chance.random() < 0.6:
            yield self.line("files", self.files(began), ended + 0.3)
        if chance.random() < 0.3:
            yield self.line("tables", self.tables(began), ended + 0.3)
        if chance.random() < 0.3:
            yield self.offsets()
        if chance.random() < 0.9:
            self.batch += 1
        self.at = max(ended, began + self.interval) if chance.random() < 0.97 else ended + chance.around(300.0)

    def files(self, began: float) -> Line:
        chance = self.chance
        read = {
            "files": chance.choice((1, 1, chance.whole(20))),
            "oldest": chance.number(began - 30.0),
            "newest": chance.number(began - 0.3 * (began - T0)),
            "folder_changed": chance.choice((None, chance.number(began))),
        }
        return {
            "run_id": self.run,
            "batch_id": self.batch,
            "sources": {chance.choice(("t0", "FileStreamSource")): read},
        }

    def tables(self, began: float) -> Line:
        chance = self.chance
        read = {
            "head": chance.whole(self.batch),
            "versions": chance.whole(chance.choice((0, 1, 40))),
            "files": chance.choice((None, chance.whole(90))),
            "bytes": chance.choice((None, chance.whole(10**6))),
            "since": chance.choice((None, chance.number(began - 30.0))),
            "oldest_at": chance.choice((None, chance.number(began - 900.0))),
        }
        commit = {"version": chance.whole(self.batch), "at": chance.number(began), "batch_id": self.batch}
        commit |= {
            "rows": chance.choice((None, chance.whole(500))),
            "files": chance.whole(9),
            "bytes": chance.whole(9000),
        }
        return {
            "run_id": self.run,
            "sources": {chance.choice(("t0", "orders")): read},
            "commits": chance.choice(([], [commit], [commit, commit])),
            "head": chance.choice((None, chance.whole(self.batch))),
            "checkpoint": chance.choice((None, chance.whole(self.batch))),
            "errors": chance.choice(({}, {"sink": "there is no Delta table"})),
        }

    def durations(self, seconds: float) -> Line:
        chance = self.chance
        left, told = seconds * 1000, {"triggerExecution": chance.whole(seconds * 1000)}
        for phase in chance.sample(PHASES, len(PHASES) - chance.randrange(3)):
            share = chance.random() * left if phase != "addBatch" else 0.8 * left
            told[phase] = chance.whole(share)
            left -= share
        return told

    def read(self, rows: int) -> Iterator[Line]:
        chance = self.chance
        for number, (description, ends) in enumerate(self.sources):
            start, heads = list(ends), self.heads[number]
            for each in range(len(ends)):
                hot = self.regime == "hot" and each == 0
                share = rows if hot else rows / len(ends)
                heads[each] += int(share * (3 if self.regime == "much" else 1))
                ends[each] = min(heads[each], ends[each] + int(share))
            topic = f"t{number}"
            offsets = [{topic: {str(p): chance.whole(v) for p, v in enumerate(some)}} for some in (start, ends, heads)]
            odd = (
                chance.choice((None, "x", {}, 5, [1], {topic: {"0": None}}))
                if chance.random() < chance.wild
                else offsets[2]
            )
            yield {
                "description": description, "startOffset": chance.choice((offsets[0], offsets[0], offsets[0], None)),
                "endOffset": offsets[1], "latestOffset": odd, "numInputRows": chance.whole(rows),
                "metrics": {"avgOffsetsBehindLatest": "0.0", "maxOffsetsBehindLatest": str(chance.whole(9))},
            }  # fmt: skip

    def operator(self, name: str, rows: int) -> Line:
        chance = self.chance
        self.state += rows if self.regime != "few" else -min(self.state, rows * 10)
        return {
            "operatorName": name, "numRowsTotal": chance.whole(self.state), "numRowsUpdated": chance.whole(rows),
            "numRowsRemoved": chance.whole(rows / 2), "allUpdatesTimeMs": chance.whole(rows / 10),
            "allRemovalsTimeMs": chance.whole(50), "commitTimeMs": chance.whole(8000 if self.regime == "slow" else 40),
            "memoryUsedBytes": chance.whole(self.state * 200),
            "numRowsDroppedByWatermark": chance.whole(rows / 5 if self.regime in ("late", "future") else 0),
            "numShufflePartitions": chance.whole(2), "numStateStoreInstances": chance.whole(2),
            "customMetrics": {each: chance.whole(chance.choice((0, 5, 10**6))) for each in chance.sample(CUSTOM, 9)},
        }  # fmt: skip

    def event_time(self, began: float) -> Line:
        chance = self.chance
        delay = 400.0 if self.regime == "late" else 1.0
        ahead = 4000.0 if self.regime == "future" and chance.random() < 0.3 else 0.0
        newest = chance.number(began - delay * 0.1 + ahead)
        if self.regime != "hang" and chance.random() < 0.9 and self.watermark is not None:
            self.watermark = max(self.watermark, min(newest, 4e9) - 10)
        told = {"watermark": format_instant(self.watermark or 0.0)}
        if chance.random() < 0.95:
            told |= {
                "max": format_instant(newest),
                "avg": format_instant(newest - delay),
                "min": format_instant(newest - 2 * delay),
            }
        return told

    def observed(self, rows: int) -> Line:
        chance = self.chance
        count = rows if self.regime == "hot" else rows // 100
        return {
            "rows": chance.whole(rows), "key": "customer_id", "hot_keys": [{"item": "a", "count": chance.whole(count)}],
            "late_rows": chance.whole(rows / 3 if self.regime == "late" else 0),
            "latency_sum": chance.number(rows * 0.5), "latency_le_1": chance.whole(rows),
        }  # fmt: skip

    def tasks(self, began: float, seconds: float, rows: int) -> Line:
        stages = [self.stage(number, began, seconds, rows) for number in range(self.chance.choice((1, 2, 3)))]
        python = self.chance.choice((None, None, self.chance.number(seconds)))
        return {"run_id": self.run, "batch_id": self.batch, "stages": stages, "python_seconds": python}

    def stage(self, number: int, began: float, seconds: float, rows: int) -> Line:
        chance, count = self.chance, self.chance.choice((1, 2, 2, 8, 200))
        skewed = self.regime == "hot"
        total = seconds * chance.choice((0.5, 1.5))
        most = total * (0.9 if skewed else 1.2 / count)
        gc = total * (0.5 if self.regime == "gc" else 0.01)
        return {
            "stage_id": number, "name": "start", "tasks": count, "failed_tasks": chance.choice((0, 0, 0, 3)),
            "submitted": chance.choice((None, chance.number(began))), "started": chance.number(began + 0.1),
            "ended": chance.number(began + seconds), "run_seconds": chance.number(total),
            "cpu_seconds": chance.number(total * 0.7), "gc_seconds": chance.number(gc),
            "seconds_median": chance.number(total / count), "seconds_max": chance.number(most),
            "records": chance.whole(rows), "records_median": chance.number(rows / count),
            "records_max": chance.number(rows * (0.9 if skewed else 1 / count)), "reads_shuffle": number > 0,
            "input_bytes": chance.whole(rows * 100), "shuffle_read_bytes": chance.whole(rows * 50),
            "shuffle_write_bytes": chance.whole(rows * 50),
            "spill_bytes": chance.whole(10**9 if self.regime == "gc" else 0), "shuffle_seconds": chance.number(0.1),
            "records_score": chance.choice((None, chance.number(20.0))),
            "seconds_score": chance.choice((None, chance.number(20.0))),
            "slowest_task": chance.choice((None, 0, chance.whole(1))),
            "executors": {
                str(each): {"tasks": chance.whole(2), "run_seconds": chance.number(most), "records": chance.whole(rows)}
                for each in range(chance.choice((1, 2)))
            },
        }  # fmt: skip

    def offsets(self) -> Line:
        chance = self.chance
        if chance.random() < 0.15:
            gone = {"error": "connection refused", "unreachable_since": chance.number(self.at - 15.0)}
            return self.line("offsets", {"run_id": self.run, "latest": {}, "earliest": {}, **gone})
        far = chance.choice((0, 0, 10**5))
        tables = [
            {
                f"t{number}": {str(p): chance.whole(each(v)) for p, v in enumerate(heads)}
                for number, heads in enumerate(self.heads)
            }
            for each in (_same, lambda value: max(0, value - 500) + far)
        ]  # type: ignore[misc]
        keeps = {"t0": chance.number(60.0)} if chance.random() < 0.7 else {}
        latest, earliest = tables
        return self.line(
            "offsets",
            {
                "run_id": self.run, "latest": latest, "earliest": earliest, "retention_seconds": keeps,
                "retention_bytes": {},
            },
        )  # fmt: skip


def _same(value: int) -> int:
    return value


def host(chance: Chance, at: float) -> Line:
    """What the driver's machine and its executors say."""
    executors = [
        {
            "executor_id": str(each), "active": chance.random() < 0.95, "cores": chance.whole(2),
            "active_tasks": chance.whole(1), "failed_tasks": 0, "completed_tasks": chance.whole(100),
            "run_seconds": chance.number(at - T0), "gc_seconds": chance.number((at - T0) * chance.choice((0.01, 0.4))),
            "memory_used_bytes": chance.whole(4e8), "memory_max_bytes": chance.whole(5e8),
            "heap_peak_bytes": chance.choice((None, chance.whole(4e8))),
        }
        for each in range(chance.choice((1, 1, 2, 4)))
    ]  # fmt: skip
    processes = [
        {
            "role": role, "cpu_seconds": chance.number(at - T0), "memory_bytes": chance.whole(1e9), "threads": 9,
            "open_files": None,
        }
        for role in ("driver_python", "driver_jvm", "python_workers")
    ]  # fmt: skip
    data = {
        "cpu_count": chance.choice((2, None, chance.whole(2))),
        "cpu_busy_ratio": chance.choice((None, chance.number(chance.random()))),
        "memory_total_bytes": chance.whole(2e10), "memory_available_bytes": chance.whole(chance.choice((1e8, 1e10))),
        "disk_total_bytes": chance.whole(1e11), "disk_free_bytes": chance.whole(chance.choice((0, 1e10))),
        "processes": processes, "executors": executors,
    }  # fmt: skip
    return {"at": format_instant(at), "kind": "host", "query": None, "data": data}


def application(chance: Chance, turns: int) -> list[Line]:
    """Lines of one to four queries, in the order in which they are seen (mostly)."""
    queries = [Query(chance, number) for number in range(chance.choice((1, 1, 2, 4)))]
    lines = [line for query in queries for line in query.start()]
    for _ in range(turns):
        query = min(queries, key=lambda each: each.at)
        lines += query.turn()
        if chance.random() < 0.2:
            lines.append(host(chance, query.at))
        if chance.random() < 0.05:
            lines.append({"at": format_instant(query.at), "kind": "observer", "query": None, "data": observer(chance)})
    if chance.random() < 0.9:
        key: Callable[[Line], str] = lambda line: line["at"]  # noqa: E731
        lines.sort(key=key)
    return lines


def observer(chance: Chance) -> Line:
    """What ledgerops says of itself."""
    return {
        "queue_size": chance.whole(chance.choice((0, 9_000))), "queue_limit": chance.whole(10_000),
        "dropped": chance.whole(chance.choice((0, 500))), "events": chance.whole(1000),
        "callback_seconds": chance.number(1.0), "worker_seconds": chance.number(5.0),
        "collector_errors": {"tasks": chance.whole(3)},
    }  # fmt: skip
