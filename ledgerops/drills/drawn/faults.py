"""The faults that can be drawn: each gives the part of a case that it decides."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from ledgerops.drills.harness.case import NO_TRIGGER_SECONDS

FACTORS = (1.2, 1.8, 3.0)  # of the trigger interval, by strength
UTILISATIONS = (1.15, 1.4, 2.0)
OVER_CAP = (1.5, 2.0, 4.0)  # times as much as a cap lets through arrives
LATER_SECONDS = 38.0
WAIT_MILLISECONDS = 15.0  # of each row in two tasks at a time, whose utilisation is 1.5 at 200 rows a second
TABLE_SECONDS = 5.0  # a commit of a Delta table takes a second, and three where the cores are busy
# places that several faults share
INPUT, DELIVERY, TABLE = ("source", "input"), ("sink", "foreachBatch"), ("sink", "output")
FEATURE, SCORE = ("operator", "Python function", "feature"), ("operator", "Python function", "score")


class Chance:
    """Draws the parts of one case, each recorded where a report splits by it."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.trigger: float | None = None
        self.onset = "birth"
        self.strength = "clear"
        self.source = "rate"

    def draw(
        self,
        triggers: tuple[float | None, ...] = (None, 1.0, 2.0, 2.0, 10.0),
        onsets: tuple[str, ...] = ("birth", "later"),
        sources: tuple[str, ...] = ("rate", "files", "kafka"),
    ) -> None:
        """Draws trigger interval (seconds, None: back to back), onset, strength and source from the choices given."""
        self.trigger = self.random.choice(triggers)
        self.onset = self.random.choice(onsets)
        self.strength = self.random.choice(("just", "clear", "gross"))
        self.source = self.random.choice(sources)

    def pick(self, *choices: Any) -> Any:
        """One of `choices`, all equally likely."""
        return self.random.choice(choices)

    def by_strength(self, just: float, clear: float, gross: float) -> Any:
        """The number that belongs to the strength drawn."""
        return {"just": just, "clear": clear, "gross": gross}[self.strength]

    @property
    def scale(self) -> float:
        """The trigger interval in seconds, or NO_TRIGGER_SECONDS without one."""
        return self.trigger or NO_TRIGGER_SECONDS

    @property
    def onset_seconds(self) -> float:
        """When the fault begins, in seconds since the start of the query."""
        return LATER_SECONDS if self.onset == "later" else 0.0

    @property
    def factor(self) -> float:
        """How long a fault delays a batch, as a multiple of `scale`; at most 1.8 if `scale` is 10 s or more."""
        return float(min(self.by_strength(*FACTORS), 1.8 if self.scale >= 10 else 9.0))

    @property
    def delay(self) -> float:
        """Seconds by which a fault delays a batch."""
        return round(self.factor * self.scale, 2)

    @property
    def utilisation(self) -> float:
        """Share of the capacity that a fault demands, by the strength drawn; 1 is saturated."""
        return float(self.by_strength(*UTILISATIONS))

    def from_onset(self, **values: Any) -> dict[str, Any]:
        """The part of a case that sets values of the outside from the onset on."""
        return {"changes": ((self.onset_seconds, values),)} if self.onset == "later" else {"control": values}

    def row_seconds(self, rate: float, tasks: int = 1) -> float:
        """Seconds of work in each row, for the utilisation drawn of `tasks` that share `rate` rows a second."""
        return round(self.utilisation * tasks / rate, 4)

    def load(
        self, before: Mapping[str, Any], after: Mapping[str, Any], key: str = "load", **more: Any
    ) -> dict[str, Any]:
        """The part of a case that sets the load of an input, before the onset and from it on; `more` holds always."""
        if self.onset == "later":
            return {"control": {key: dict(before), **more}, "changes": ((self.onset_seconds, {key: dict(after)}),)}
        return {"control": {key: dict(after), **more}}


Parts = dict[str, Any]
Draw = Callable[[Chance], Parts]


def kind(what: str, parts: Callable[[Chance], Parts], **choices: Any) -> Draw:
    """A kind of case: what happens in a sentence, what is decided, and the choices among which the rest is drawn."""

    def draw(chance: Chance) -> Parts:
        chance.draw(**choices)
        return parts(chance)

    draw.__doc__ = what
    return draw


def fault(
    what: str, expected: tuple[str, ...], place: tuple[str, ...], parts: Callable[[Chance], Parts], **choices: Any
) -> Draw:
    """A kind of fault: also the rules that name it, and its place unless `parts` has another."""
    return kind(what, lambda c: {"expected": expected, "place": place, **parts(c)}, **choices)


def too_many_rows(c: Chance) -> Parts:
    """Rows that wait for an answer, more of them than two tasks can process."""
    full = round(200 * c.utilisation / 1.5)
    parts = {"app": "fraud", "options": {"wait": WAIT_MILLISECONDS, "rate": full}}
    return {**parts, **c.load({"rate": full // 4}, {"rate": full})}


def overload(c: Chance) -> Parts:
    """More rows arrive than the application can process."""
    onset = c.pick("birth", "later")
    c.draw(onsets=(onset,), sources=("files", "kafka") if onset == "later" else ("rate", "files", "kafka"))
    place = ("source", "rate") if c.source == "rate" else INPUT
    return {"expected": ("input-overload",), "place": place, "partitions": 2, **too_many_rows(c)}


def too_many_files(c: Chance, cap: int, rate: int) -> Parts:
    """`rate` rows a second, in more files than a cap lets through."""
    every = c.scale / cap
    load = c.load({"rate": rate, "every": 2 * every}, {"rate": rate, "every": every / c.by_strength(*OVER_CAP)})
    return {"options": {"cap": cap}, "harm_after": 4 * c.scale, **load}


def too_many_offsets(c: Chance, cap: int) -> Parts:
    """More rows of a topic than a cap lets through."""
    rate = cap / c.scale
    load = c.load({"rate": 0.5 * rate}, {"rate": c.by_strength(*OVER_CAP) * rate})
    return {"options": {"cap": cap}, "harm_after": 4 * c.scale, **load}


FAULTS: Mapping[str, Draw] = {
    "slow-sink": fault(
        "Each write to the sink takes longer than the trigger interval.", ("slow-sink",), DELIVERY,
        lambda c: {"app": c.pick("warehouse", "counts", "dedup", "ledger_job"), **c.from_onset(sink=c.delay)},
    ),
    "python-udf": fault(
        "A Python function takes more time for each row than its tasks have.", ("python-bound",), FEATURE,
        lambda c: {
            **c.pick({"app": "features"}, {"app": "scoring", "place": SCORE}), "options": {"rate": 40}, "load": 40,
            "partitions": 2, "may": ("input-overload",), **c.from_onset(row=c.row_seconds(40, tasks=2)),
        },
        sources=("rate", "kafka"),
    ),
    "key-skew": fault(
        "Three quarters of the rows have the same key, and each row costs time in Python state.", ("key-skew",),
        ("key", "key", "hot"),
        lambda c: {
            "app": "sessions", "master": "local[8]", "options": {"shuffle": 8},
            **c.load({"rate": 60}, {"rate": 60, "hot": 0.75}, row=c.row_seconds(0.75 * 60)),
        },
        triggers=(None, 2.0, 2.0, 10.0), sources=("files", "kafka"),
    ),
    "straggler": fault(
        "One of the tasks waits for a slow server.", ("straggler",), ("stage", "mapInPandas", "1"),
        lambda c: {"app": "regions", "master": "local[6]", **c.from_onset(region=c.delay)},
    ),
    "too-many-tasks": fault(
        "Small batches are split into 150 to 450 shuffle tasks.", ("too-many-tasks", "small-batch-overhead"),
        ("stage", "shuffle"),
        lambda c: {
            "app": c.pick("counts", "dedup", "totals"), "options": {"shuffle": c.by_strength(150, 300, 450)},
        },
        triggers=(None, 1.0, 2.0), onsets=("birth",),
    ),
    "overload": overload,
    "binding-cap": fault(
        "A limit on rows or files per batch is lower than what arrives.", ("rate-limited",), INPUT,
        lambda c: {
            "app": c.pick("warehouse", "counts", "mirror"),
            **(too_many_offsets(c, cap=200) if c.source == "kafka" else too_many_files(c, cap=1, rate=100)),
        },
        triggers=(1.0, 2.0, 2.0), sources=("files", "kafka"),
    ),
    "slow-gateway": fault(
        "A data source written in Python waits long for its newest offset.", ("slow-source",), ("source", "devices"),
        lambda c: {"app": "devices", **c.from_onset(gateway=c.delay)}, sources=("own",),
    ),
    "late-rows": fault(
        "A share of the rows is 60 s late, more than the watermark delay.", ("late-data",), INPUT,
        lambda c: {
            "app": c.pick("dedup", "counts"), "may": ("rows-dropped",), "harm_after": 4.0,
            **c.load({"rate": 150}, {"rate": 150, "late": c.by_strength(0.05, 0.2, 0.5), "late_by": 60.0}),
        },
        triggers=(None, 1.0, 2.0), sources=("files", "kafka"),
    ),
    "idle-branch": fault(
        "One of two inputs has no rows, so the watermark does not advance.", ("watermark-stalled",),
        ("source", "second"),
        lambda c: {
            "app": c.pick("merged", "payments"), "two_inputs": True, "options": {"delay": "5 seconds"},
            "harm_after": 20.0, "after": 75.0, **c.load({"rate": 100}, {"rate": 0}, "load2", load={"rate": 100}),
        },
        triggers=(None, 1.0, 2.0, 10.0), sources=("files", "kafka"),
    ),
    "silent-producer": fault(
        "The producer stops sending; the query itself works.", ("input-stopped",), INPUT,
        lambda c: {
            **c.load({"rate": c.pick(150, 600)}, {"rate": 0}), "app": c.pick("warehouse", "counts"), "later": 50.0,
            "harm_after": 20.0, "due": "info", "after": 70.0,
        },
        triggers=(None, 1.0, 2.0), onsets=("later",), sources=("kafka", "files"),
    ),
    "planning": fault(
        "A query with hundreds of columns takes most of each batch to plan.", ("small-batch-overhead",),
        ("driver", "planning"),
        lambda c: {"app": "wide", "options": {"keys": c.by_strength(500, 900, 1400), "rate": 20}},
        triggers=(None, 1.0), onsets=("birth",),
    ),
    "executor-lost": fault(
        "One, two or four executors are killed, 10 seconds apart.", ("executor-lost", "scheduler-skew"), ("executor",),
        lambda c: {
            "app": c.pick("counts", "scoring"), "master": "local-cluster[2,1,512]", "options": {"shuffle": 4},
            "conf": {"spark.executor.memory": "512m", "spark.driver.memory": "600m"}, "harm_after": 0.5,
            "actions": tuple(
                (c.onset_seconds + 10.0 * number, "kill_executor", 0.0) for number in range(c.by_strength(1, 2, 4))
            ),
            "due": "info",  # Spark repeats the lost tasks, and no result need be late
        },
        triggers=(1.0, 2.0), onsets=("later",), sources=("rate", "files"),
    ),
    "cpu-taken": fault(
        "Processes outside the application occupy the cores.", ("cpu-saturated",), ("host",),
        lambda c: {
            "app": c.pick("counts", "dedup"), "options": {"shuffle": 6},
            "actions": ((max(c.onset_seconds, 1.0), "burn_cpu", float(c.by_strength(6, 9, 14))),),
        },
        triggers=(1.0,), sources=("rate", "files"),
    ),
    "crash-loop": fault(
        "The query fails, and is restarted and fails again.", ("crash-loop", "query-failed"), FEATURE,
        lambda c: {"app": "features", "options": {"restart": True}, "harm": "failure", **c.from_onset(bad=True)},
    ),
    "stuck-sink": fault(
        "A write to the sink blocks and does not return.", ("query-stuck", "slow-sink"), DELIVERY,
        lambda c: {"app": c.pick("warehouse", "counts", "dedup"), **c.from_onset(block=True)},
    ),
    "heap": fault(
        "The driver's heap is filled until only 45 to 70 MiB are free.", ("gc-pressure",), ("driver", "heap"),
        lambda c: {
            "app": "cached", "conf": {"spark.driver.memory": "600m"}, "after": 55.0,
            **c.from_onset(heap_left=c.by_strength(70, 55, 45)),
        },
        triggers=(1.0, 2.0), onsets=("later",), sources=("rate", "files"),
    ),
    "slow-broker": fault(
        "The connection to the broker has a high latency.", ("slow-source",), INPUT,
        lambda c: {
            "app": c.pick("warehouse", "dedup"), "proxied": True,
            "actions": ((c.onset_seconds, "broker_latency", round(c.scale * c.by_strength(0.5, 0.8, 1.5), 2)),),
        },
        triggers=(None, 1.0, 2.0), onsets=("later",), sources=("kafka",),
    ),
    "future-row": fault(
        "One row is dated an hour ahead and moves the watermark past the others.", ("watermark-jump",), INPUT,
        lambda c: {
            "app": c.pick("dedup", "counts"), "may": ("rows-dropped", "late-data"), "harm_after": 4.0,
            **c.load({"rate": 150}, {"rate": 150, "future": True}),
        },
        triggers=(None, 1.0, 2.0), onsets=("later",), sources=("files", "kafka"),
    ),
    "unbounded-state": fault(
        "Removes duplicates without a watermark, so the state grows with every row.",
        ("unbounded-state", "state-growth"), ("operator", "dropDuplicates"),
        lambda c: {
            "app": "dedup", "options": {"rate": c.by_strength(1000, 3000, 8000), "delay": ""}, "harm_after": 15.0,
        },
        triggers=(None, 2.0), onsets=("birth",), sources=("rate",),
    ),
    "failing": fault(
        "The query fails once, in a Python function or in the sink.", ("query-failed",), FEATURE,
        lambda c: {
            "harm": "failure", "after": 30.0, **c.pick(
                {"app": "features", **c.from_onset(bad=True)},
                {"app": "warehouse", "place": DELIVERY, **c.from_onset(fail="no route to host")},
            ),
        },
    ),
    "flaky-sink": fault(
        "Every fifth write to the sink stalls; the others are quick.", ("intermittent-sink", "slow-sink"), DELIVERY,
        lambda c: {
            "app": c.pick("warehouse", "dedup"), "harm_after": 5 * c.scale,
            "due": "warning" if c.trigger else "info",  # nobody was promised a rhythm, as with other costly batches
            **c.from_onset(stall=round(2.5 * c.factor * c.scale, 2), every=5),
        },
        triggers=(None, 1.0, 2.0),
    ),
    "neighbour": fault(
        "Another query of the same application occupies the cores.", ("noisy-neighbour",),
        ("query", "nightly_rebuild"),
        lambda c: {
            "app": "reports", "blamed": "small_report", "query": "reports",
            **c.from_onset(burn=round(0.7 * c.factor * c.scale, 2)),
        },
        triggers=(1.0, 2.0), sources=("rate", "files"),
    ),
    "partition-skew": fault(
        "85 % of the rows arrive in one source partition, and each row costs time.", ("source-partition-skew",),
        ("partition", "input", "0"),
        lambda c: {
            "app": "scoring", "master": "local[4]",
            **c.load({"rate": 60}, {"rate": 60, "pinned": 0.85}, row=c.row_seconds(0.85 * 60)),
        },
        triggers=(None, 2.0, 10.0), sources=("kafka",),
    ),
    "broker-down": fault(
        "The broker is killed.", ("source-unreachable",), INPUT,
        lambda c: {
            "app": c.pick("warehouse", "dedup"), "may": ("query-failed",), "harm_after": 5.0,
            "actions": ((c.onset_seconds, "kill_broker", 0.0),),
        },
        triggers=(None, 2.0), onsets=("later",), sources=("kafka",),
    ),
    "table-overload": fault(
        "More rows are committed to a Delta table than the application can process.", ("input-overload",), INPUT,
        lambda c: {**too_many_rows(c), "options": {"wait": WAIT_MILLISECONDS}, "after": 70.0},
        triggers=(TABLE_SECONDS,), sources=("delta",),
    ),
    "table-cap": fault(
        "A limit on the files per batch is lower than what is committed to a Delta table.", ("rate-limited",), INPUT,
        lambda c: {"app": c.pick("warehouse", "counts"), "after": 80.0, **too_many_files(c, cap=2, rate=50)},
        triggers=(TABLE_SECONDS,), sources=("delta",),
    ),
    "table-conflict": fault(
        "Another writer adds rows to the Delta table into which each batch is merged.", ("query-failed",), TABLE,
        lambda c: {
            "app": "lake", "options": {"merge": True, "format": "delta"}, "harm": "failure",
            **c.from_onset(rival={"rate": 100, "every": c.by_strength(1.0, 0.5, 0.2)}),
        },
        triggers=(3 * TABLE_SECONDS,), sources=("delta",),  # MERGE is several jobs and a commit
    ),
    "table-small-files": fault(
        "Each batch writes hundreds of small files to a Delta table with as many partitions.", ("slow-sink",), TABLE,
        lambda c: {
            "app": "lake", "load": 500, "may": ("many-small-files",),
            "options": {"parts": c.by_strength(650, 900, 1500), "format": "delta"},  # some 5 ms of a core for a file
        },
        triggers=(TABLE_SECONDS,), onsets=("birth",), sources=("delta",),
    ),
    "table-vacuumed": fault(
        "A Delta table is compacted and vacuumed before the query has read its newest files.", ("query-failed",), INPUT,
        lambda c: {
            "app": c.pick("warehouse", "lake"), "options": {"cap": 1, "format": "delta"}, "harm": "failure",
            "may": ("rate-limited",), "actions": ((c.onset_seconds, "vacuum", 0.0),),
        },
        triggers=(TABLE_SECONDS,), onsets=("later",), sources=("delta",),
    ),
    "table-new-column": fault(
        "A column is added to the Delta table that the query reads.", ("query-failed",), INPUT,
        lambda c: {
            "app": c.pick("warehouse", "lake"), "options": {"format": "delta"}, "harm": "failure",
            "actions": ((c.onset_seconds, "add_column", 0.0),),
        },
        triggers=(TABLE_SECONDS,), onsets=("later",), sources=("delta",),
    ),
}  # fmt: skip
