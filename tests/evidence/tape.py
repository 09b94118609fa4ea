"""A recording read as plain JSON, by nothing of what the diagnosis is made of: the ground on which its numbers are
computed a second time. This module and `recompute` import nothing of ledgerops, and a test sees to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

Json = Mapping[str, Any]
Place = tuple[str, str]  # topic, partition
SAME = 0.0005  # seconds: instants are written in milliseconds
REMEMBERED = 200  # batches
WARM_UP = 10.0


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

    @property
    def asked(self) -> float:
        """When it had asked its sources for their heads."""
        return self.start + self.phase("latestOffset")

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
        """What `instrument` and `book` observed, by name."""
        return self.raw.get("observedMetrics") or {}

    @property
    def heads(self) -> Mapping[Place, int]:
        return self.offsets("latestOffset")

    @property
    def head(self) -> float:
        return float(sum(self.heads.values()))

    @property
    def backlog(self) -> float:
        ends = self.offsets("endOffset")
        return float(sum(max(0, head - ends.get(place, head)) for place, head in self.heads.items()))

    def offsets(self, which: str) -> Mapping[Place, int]:
        found: dict[Place, int] = {}
        for source in self.raw.get("sources", ()):
            value = source.get(which)
            for topic, partitions in value.items() if isinstance(value, Mapping) else ():
                found |= {(topic, number): int(offset) for number, offset in partitions.items()}
        return found

    @property
    def offsets_read(self) -> float:
        return float(sum(self.read().values()))

    def read(self) -> Mapping[Place, int]:
        """Offsets from where it began to where it ended."""
        began = self.offsets("startOffset")
        return {place: end - began[place] for place, end in self.offsets("endOffset").items()}


class Tape:
    """What was known of one query at `now`, when `finding` (as in the diagnosis document) was made."""

    def __init__(self, lines: Sequence[Json], query: str, now: float, finding: Json) -> None:
        self.lines, self.query, self.now, self.finding = lines, query, now, finding
        self.all: list[Batch] = []
        self.seen: dict[str, list[Json]] = defaultdict(list)  # all that was recorded, by kind, each with `at`
        self.failures: list[int] = []  # how many batches had been heard of before each
        self.running: Json | None = None
        self.cut: Json | None = None  # what ran when the run ended
        for line in lines:
            if (at := instant(line["at"])) > now + SAME:
                break
            if line.get("query") == query or line["kind"] in ("host", "observer"):
                self._take(line["kind"], {**line["data"], "at": at})
        self.hosts, self.observers, self.asked = (self.seen[kind] for kind in ("host", "observer", "offsets"))
        self.tasks = {(each["run_id"], each["batch_id"]): each for each in self.seen["tasks"]}
        self.plans = {each["run_id"]: each for each in self.seen["plan"]}
        self.starts, self.ends = (
            [(instant(each.get("timestamp")) or each["at"], each["runId"]) for each in self.seen[kind]]
            for kind in ("started", "terminated")
        )

    def _take(self, kind: str, data: Json) -> None:
        self.seen[kind].append(data)
        if kind in ("progress", "idle", "terminated"):
            self.cut, self.running = self.running, None
        match kind:
            case "progress":
                times = data.get("durationMs", {})
                seconds = float(times.get("triggerExecution", data.get("batchDuration", 0))) / 1000
                rows, begin = int(data.get("numInputRows", 0)), instant(data["timestamp"])
                self.all.append(Batch(data, int(data["batchId"]), data["runId"], begin, seconds, rows))
            case "terminated" if data.get("exception"):
                self.failures.append(len(self.all))
            case "batch_running":
                self.running = data

    @property
    def told(self) -> Mapping[str, float]:
        """The numbers of the finding."""
        return {each["name"]: each["value"] for each in self.finding["evidence"]}

    @property
    def name(self) -> str:
        """Of the component that the finding names."""
        return str(self.finding["component"]["name"])

    @property
    def newest(self) -> Batch:
        return self.all[-1]

    def named(self, key: str = "batches") -> list[Batch]:
        """The batches that the finding compares: those of now, or `usual_batches`."""
        return [batch for batch in self.run if batch.id in self.finding[key]]

    def beside(self, query: str) -> Tape:
        """The same of another query of the driver."""
        return Tape(self.lines, query, self.now, self.finding)

    @property
    def run_id(self) -> str:
        return self.newest.run

    @property
    def whole(self) -> list[Batch]:
        """All batches of the current run, also those that are no longer remembered."""
        return [batch for batch in self.all if batch.run == self.run_id]

    @property
    def run(self) -> list[Batch]:
        """The remembered batches of the current run."""
        return [batch for batch in self.all[-REMEMBERED:] if batch.run == self.run_id]

    @property
    def steady(self) -> list[Batch]:
        """Without the first of the run and those of its first ten seconds, or of as long again as a first one took."""
        first = self.whole[0]
        started = min([first.start, *(at for at, run in self.starts if run == self.run_id)])
        settled = max(started + WARM_UP, first.end + min(WARM_UP, first.seconds))
        return [batch for batch in self.run if batch is not first and batch.start >= settled]

    def since(self, seconds: float) -> list[Batch]:
        """The batches of the run that ended in the latest seconds."""
        return [batch for batch in self.run if batch.end >= self.now - seconds]

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
        """By the newest look at the machines."""
        return self.hosts[-1]["executors"]

    @property
    def is_local(self) -> bool:
        return {each["executor_id"] for each in self.executors} == {"driver"}

    @property
    def cores(self) -> int:
        return sum(each["cores"] for each in self.executors)

    def cores_during(self, batch: Batch) -> Mapping[str, int]:
        """By executor, of those that ran tasks when they were last seen before its end."""
        looks = [host for host in self.hosts if host["at"] <= batch.end]
        return {each["executor_id"]: each["cores"] for each in looks[-1]["executors"]}

    @property
    def heap(self) -> float:
        return float(sum(each["memory_max_bytes"] / 0.6 + 300 * 2**20 for each in self.executors))

    @property
    def looks(self) -> list[Json]:
        """At the machine, from the newest one that is four seconds older than the last."""
        known = [host for host in self.hosts if host["cpu_busy_ratio"] is not None]
        since = max(host["at"] for host in known if host["at"] <= known[-1]["at"] - 4.0)
        return [host for host in known if host["at"] >= since]

    @property
    def cores_by_role(self) -> dict[str, float]:
        """Cores that the application's own processes use."""
        looks = self.looks
        first, last = ({each["role"]: each["cpu_seconds"] for each in looks[n]["processes"]} for n in (0, -1))
        span = looks[-1]["at"] - looks[0]["at"]
        return {role: max(0.0, seconds - first.get(role, 0.0)) / span for role, seconds in last.items()}

    def stages(self, batch: Batch) -> Sequence[Json]:
        found = self.tasks.get((batch.run, batch.id))
        return found["stages"] if found else []

    @property
    def running_seconds(self) -> float | None:
        """Of the batch that runs, or that ran when the run ended."""
        if self.running is None:
            return self.ends[-1][0] - float(self.cut["since"]) if self.cut and self.ends else None
        return self.now - float(self.running["since"])

    def was_head(self, place: Place, offset: int) -> float:
        """When an offset was last the head of its partition, between the heads that were seen; ValueError if never."""
        topic, number = place
        seen = [(batch.asked, batch.heads[place]) for batch in self.all if place in batch.heads]
        asked = ((look["at"], (look.get("latest") or {}).get(topic, {}).get(number)) for look in self.asked)
        seen = sorted([*seen, *((at, head) for at, head in asked if head is not None)])
        t0, h0 = max(point for point in seen if point[1] <= offset)
        t1, h1 = next((point for point in seen if point[1] > offset), (t0, h0))
        return t0 + (t1 - t0) * (offset - h0) / (h1 - h0) if h1 > h0 else t0

    def lag(self, only: Place | None = None) -> float | None:
        """Now less the instant at which the newest batch's end was the head; the largest over the partitions."""
        ends = self.newest.offsets("endOffset").items()
        unread = [(place, end) for place, end in ends if only in (None, place) and self.newest.heads[place] > end]
        return max((self.now - self.was_head(place, end) for place, end in unread), default=0.0)


Given = float | None | Iterable[float]
Formula = Callable[[Tape], Given]
OfBatch = Callable[[Batch], float]


def total_of(rows: Iterable[Json], key: str) -> float:
    return float(sum(row[key] for row in rows))


def instant(text: object) -> float:
    """Seconds since the epoch; 0 where there is none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if isinstance(text, str) else 0.0
