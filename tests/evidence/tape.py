"""A recording read as plain JSON, by nothing of what the diagnosis is made of: the ground on which its numbers are
computed a second time. This module and `recompute` import nothing of ledgerops, and a test sees to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any, NamedTuple

Json = Mapping[str, Any]
Place = tuple[str, str]  # topic, partition
SAME = 0.0005  # seconds: instants are written in milliseconds
REMEMBERED = 200  # batches
WARM_UP = 10.0
OVER = 1.05  # of the trigger interval


def running_tasks(host: Json) -> Sequence[Json]:
    """The executors of one look at the machines that can run tasks: the driver of a cluster has no cores."""
    return [each for each in host["executors"] if each["cores"] or each["executor_id"] != "driver"]


class Batch(NamedTuple):
    """A progress record: Spark's JSON with its times in seconds."""

    raw: Json
    id: int
    run: str
    start: float
    seconds: float
    rows: int

    @property
    def end(self) -> float:
        return self.start + self.seconds

    def phase(self, name: str) -> float:
        return float(self.raw.get("durationMs", {}).get(name, 0)) / 1000

    @property
    def operators(self) -> Sequence[Json]:
        return list(self.raw.get("stateOperators") or ())

    @property
    def event(self) -> Mapping[str, float]:
        """eventTime in seconds: max, min, avg, watermark; a watermark of 1970 is none."""
        told = {name: instant(text) for name, text in (self.raw.get("eventTime") or {}).items()}
        return {name: at for name, at in told.items() if name != "watermark" or at > 0}

    @property
    def observed(self) -> Mapping[str, Json]:
        return {name: row for name, row in (self.raw.get("observedMetrics") or {}).items() if isinstance(row, Mapping)}

    @property
    def ended_at_offsets(self) -> Mapping[Place, int]:
        return self._offsets("endOffset")

    @property
    def began_at_offsets(self) -> Mapping[Place, int]:
        return self._offsets("startOffset")

    @property
    def heads(self) -> Mapping[Place, int]:
        return self._offsets("latestOffset")

    def _offsets(self, which: str) -> Mapping[Place, int]:
        found: dict[Place, int] = {}
        for source in self.raw.get("sources", ()):
            value = source.get(which)
            if not isinstance(value, Mapping):
                continue
            for topic, partitions in value.items():
                if isinstance(partitions, Mapping):
                    found |= {(topic, number): int(offset) for number, offset in partitions.items()}
        return found


class Tape:
    """What was known of one query at `now`."""

    def __init__(self, lines: Sequence[Json], query: str, now: float) -> None:
        self.lines, self.query, self.now = lines, query, now
        self.all: list[Batch] = []
        self.tasks: dict[tuple[str, int], Json] = {}
        self.files: dict[tuple[str, int], Json] = {}
        self.hosts: list[Json] = []
        self.observers: list[Json] = []
        self.asked: list[tuple[float, Json]] = []
        self.starts: list[tuple[float, str]] = []
        self.failures: list[tuple[float, int]] = []  # with how many batches had been heard of before
        self.ends: list[tuple[float, str]] = []
        self.idles: list[float] = []
        self.plans: dict[str, Json] = {}
        self.tables: list[Json] = []  # samples of the tables of the query, each with `at`
        self.running: tuple[float, Json] | None = None
        self.cut: Json | None = None  # what ran when the run ended
        for line in lines:
            at = instant(line["at"])
            if at > now + SAME:
                break
            data = line["data"]
            if line["kind"] == "host":
                self.hosts.append({**data, "at": at})
            elif line["kind"] == "observer":
                self.observers.append({**data, "at": at})
            elif line.get("query") == query:
                self._take(at, line["kind"], data)

    def beside(self, query: str) -> Tape:
        """The same of another query of the driver."""
        return Tape(self.lines, query, self.now)

    def _take(self, at: float, kind: str, data: Json) -> None:
        if kind == "progress":
            batch = Batch(
                data,
                int(data["batchId"]),
                data["runId"],
                instant(data["timestamp"]),
                float(data.get("durationMs", {}).get("triggerExecution", data.get("batchDuration", 0))) / 1000,
                int(data.get("numInputRows", 0)),
            )
            if not self.all or (self.all[-1].run, self.all[-1].id) != (batch.run, batch.id):
                self.all.append(batch)
            self.running = None
        elif kind == "tasks":
            self.tasks[(data["run_id"], data["batch_id"])] = data
        elif kind == "files":
            self.files[(data["run_id"], data["batch_id"])] = data["sources"]
        elif kind == "tables":
            self.tables.append({**data, "at": at})
        elif kind == "plan":
            self.plans[data["run_id"]] = data
        elif kind == "started":
            self.cut = None
            self.starts.append((instant(data.get("timestamp")) or at, data["runId"]))
        elif kind == "terminated":
            self.ends.append((instant(data.get("timestamp")) or at, data["runId"]))
            self.cut, self.running = self.running and self.running[1], None
            if data.get("exception"):
                self.failures.append((self.ends[-1][0], len(self.all)))
        elif kind == "idle":
            self.idles.append(at)
            self.running = None
        elif kind == "offsets":
            self.asked.append((at, data))
        elif kind == "batch_running":
            self.running = (at, data)

    @property
    def run_id(self) -> str:
        if self.starts and (not self.all or self.starts[-1][0] >= self.all[-1].start):
            return self.starts[-1][1]
        return self.all[-1].run if self.all else ""

    @property
    def run(self) -> list[Batch]:
        """The remembered batches of the current run."""
        return [batch for batch in self.all[-REMEMBERED:] if batch.run == self.run_id]

    @property
    def steady(self) -> list[Batch]:
        """Without the first of the run and those of its first ten seconds, or of as long again as a first one took."""
        whole = [batch for batch in self.all if batch.run == self.run_id]
        if not whole:
            return []
        first = whole[0]
        started = min([first.start, *(at for at, run in self.starts if run == self.run_id)])
        settled = max(started + WARM_UP, first.end + min(WARM_UP, first.seconds))
        return [batch for batch in self.run if batch is not first and batch.start >= settled]

    @property
    def plan(self) -> Json:
        return self.plans.get(self.run_id, {})

    @property
    def interval(self) -> float:
        return float(self.plan.get("trigger_interval") or 0.0)

    @property
    def lateness(self) -> float:
        return max((float(each) for each in (self.plan.get("watermarks") or {}).values()), default=0.0)

    @property
    def executors(self) -> Sequence[Json]:
        """Active executors that run tasks, by the newest look at the machines."""
        looks = [host for host in self.hosts if host.get("executors")]
        return [each for each in running_tasks(looks[-1]) if each["active"]] if looks else []

    @property
    def cores(self) -> int:
        return sum(each["cores"] for each in self.executors)

    def overran(self, batch: Batch) -> bool:
        return self.interval > 0 and batch.seconds > OVER * self.interval

    @property
    def usual(self) -> list[Batch]:
        """Batches before the newest four that had rows and did not outlast the interval; without an interval, none of
        the newest that took half as long again as the median of them, unless more rows a second explain it."""
        found = [batch for batch in self.steady[:-4] if batch.rows > 0 and not self.overran(batch)]
        if self.interval or not found:
            return found
        rows, seconds = median(batch.rows for batch in found), median(batch.seconds for batch in found)

        def slower(batch: Batch) -> bool:
            faster = batch.rows / batch.seconds >= 1.2 * rows / seconds
            return batch.seconds > 1.5 * seconds * (max(1.0, batch.rows / rows) if faster else 1.0)

        while found and slower(found[-1]):
            found.pop()
        return found

    def stages(self, batch: Batch) -> Sequence[Json]:
        found = self.tasks.get((batch.run, batch.id))
        return found["stages"] if found else []

    def without_first(self) -> list[Batch]:
        return [batch for batch in self.all if batch.run == self.run_id][1:]

    @property
    def running_seconds(self) -> float | None:
        """Of the batch that runs, or that ran when the run ended."""
        if self.running is None and self.cut is not None and self.ends:
            return max(0.0, self.ends[-1][0] - self.cut["since"])
        return None if self.running is None else max(0.0, self.now - self.running[1]["since"])

    def wall(self, batch: Batch) -> float:
        """Seconds in which at least one stage was at work."""
        total, until = 0.0, 0.0
        for start, end in sorted((stage["started"], stage["ended"]) for stage in self.stages(batch)):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total

    def lag(self, only: Place | None = None) -> float | None:
        """Now less the instant at which the newest batch's end was the head; the largest over the partitions."""
        if not self.all:
            return None
        newest, lags = self.all[-1], [0.0]
        for place, end in newest.ended_at_offsets.items():
            if only is not None and place != only:
                continue
            points = sorted(
                [(b.start + b.phase("latestOffset"), b.heads[place]) for b in self.all if place in b.heads]
                + [(at, _asked(data, place)) for at, data in self.asked if _asked(data, place) is not None]
            )
            if newest.heads.get(place, end) <= end or not points:
                continue
            before = [point for point in points if point[1] <= end]
            after = [point for point in points if point[1] > end]
            if not before:
                continue
            (t0, h0), (t1, h1) = before[-1], after[0]
            at = t0 + (t1 - t0) * (end - h0) / (h1 - h0) if h1 > h0 else t0
            lags.append(self.now - at)
        return max(lags)


def instant(text: object) -> float:
    """Seconds since the epoch; 0 where there is none. By arithmetic where the year is none of `datetime`'s."""
    if not isinstance(text, str):
        return 0.0
    far = re.match(r"([+-]?\d{5,}|[+-]\d{4}|0000)-(\d\d)-(\d\d)(.*)", text)
    if far is None:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    year, month, day = int(far[1]), int(far[2]), int(far[3])
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)  # years that begin in March
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469
    return days * 86_400.0 + instant(f"1970-01-01{far[4]}")


def middle(values: Iterable[float]) -> float | None:
    """The median, None of nothing."""
    known = list(values)
    return median(known) if known else None


def _asked(data: Json, place: Place) -> Any:
    return (data.get("latest") or {}).get(place[0], {}).get(place[1])
