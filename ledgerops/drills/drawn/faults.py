"""The faults that can be drawn: each gives the part of a case that it decides."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from ledgerops.drills.harness.case import NO_TRIGGER_SECONDS

FACTORS = (1.2, 1.8, 3.0)  # of the trigger interval, by strength
UTILISATIONS = (1.15, 1.4, 2.0)
LATER_SECONDS = 38.0
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
    def utilisation(self) -> float:
        """Share of the capacity that a fault demands, by the strength drawn; 1 is saturated."""
        return float(self.by_strength(*UTILISATIONS))

    def from_onset(self, **values: Any) -> dict[str, Any]:
        """The part of a case that sets values of the outside from the onset on."""
        return {"changes": ((self.onset_seconds, values),)} if self.onset == "later" else {"control": values}

    def load(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a case that sets the load of the first input, before the onset and from it on."""
        if self.onset == "later":
            return {"control": {"load": dict(before)}, "changes": ((self.onset_seconds, {"load": dict(after)}),)}
        return {"control": {"load": dict(after)}}


Parts = dict[str, Any]
Draw = Callable[[Chance], Parts]


def kind(what: str, parts: Callable[[Chance], Parts], **choices: Any) -> Draw:
    """A kind of case: what happens in a sentence, what is decided, and the choices among which the rest is drawn."""

    def draw(chance: Chance) -> Parts:
        chance.draw(**choices)
        return parts(chance)

    draw.__doc__ = what
    return draw


def slow_sink(c: Chance) -> Parts:
    """Each write to the sink takes longer than the trigger interval."""
    c.draw()
    app, seconds = c.pick("warehouse", "counts", "dedup", "ledger_job"), round(c.factor * c.scale, 2)
    return {"app": app, "expected": ("slow-sink",), "place": DELIVERY, **c.from_onset(sink=seconds)}


def stuck_sink(c: Chance) -> Parts:
    """A write to the sink blocks and does not return."""
    c.draw()
    parts = {"app": c.pick("warehouse", "counts", "dedup"), "expected": ("query-stuck", "slow-sink")}
    return {**parts, "place": DELIVERY, **c.from_onset(block=True)}


def flaky_sink(c: Chance) -> Parts:
    """Every fifth write to the sink stalls; the others are quick."""
    c.draw(triggers=(None, 1.0, 2.0))
    values = {"stall": round(2.5 * c.factor * c.scale, 2), "every": 5}
    expected = ("intermittent-sink", "slow-sink")
    parts = {"app": c.pick("warehouse", "dedup"), "expected": expected, "harm_after": 5 * c.scale, "harm": "given"}
    return {**parts, "place": DELIVERY, **c.from_onset(**values)}


def python_udf(c: Chance) -> Parts:
    """A Python function takes more time for each row than its tasks have."""
    c.draw(sources=("rate", "kafka"))
    rate, tasks = 40, 2
    app, place = c.pick(("features", FEATURE), ("scoring", SCORE))
    parts = {"app": app, "options": {"rate": rate}, "load": rate, "partitions": tasks}
    return {
        **parts,
        "expected": ("python-bound",),
        "place": place,
        "may": ("input-overload",),
        **c.from_onset(row=round(c.utilisation * tasks / rate, 4)),
    }


def key_skew(c: Chance) -> Parts:
    """Three quarters of the rows have the same key, and each row costs time in Python state."""
    c.draw(sources=("files", "kafka"), triggers=(None, 2.0, 2.0, 10.0))
    rate, hot = 60, 0.75
    before, after = {"rate": rate}, {"rate": rate, "hot": hot}
    parts = {"app": "sessions", "master": "local[8]", "options": {"shuffle": 8}, "expected": ("key-skew",)}
    parts["place"] = ("key", "key", "hot")
    load = c.load(before, after)
    load["control"]["row"] = round(c.utilisation / (hot * rate), 4)
    return parts | load


def straggler(c: Chance) -> Parts:
    """One of the tasks waits for a slow server."""
    c.draw()
    parts = {"app": "regions", "master": "local[6]", "expected": ("straggler",)}
    return {**parts, "place": ("stage", "mapInPandas", "1"), **c.from_onset(region=round(c.factor * c.scale, 2))}


def too_many_tasks(c: Chance) -> Parts:
    """Small batches are split into 150 to 450 shuffle tasks."""
    c.draw(triggers=(None, 1.0, 2.0), onsets=("birth",))
    count = c.by_strength(150, 300, 450)
    expected = ("too-many-tasks", "small-batch-overhead")
    parts = {"app": c.pick("counts", "dedup", "totals"), "options": {"shuffle": count}, "expected": expected}
    return {**parts, "place": ("stage", "shuffle")}


def overload(c: Chance) -> Parts:
    """More rows arrive than the application can process."""
    onset = c.pick("birth", "later")
    c.draw(onsets=(onset,), sources=("files", "kafka") if onset == "later" else ("rate", "files", "kafka"))
    rate = 200
    wait = round(2000 * 1.5 / rate, 2)  # of two tasks at a time: 1.5 is the utilisation at full rate
    full = round(rate * c.utilisation / 1.5)
    return {
        "app": "fraud",
        "expected": ("input-overload",),
        "place": ("source", "rate") if c.source == "rate" else INPUT,
        "options": {"wait": wait, "rate": full},
        "partitions": 2,
        **c.load({"rate": full // 4}, {"rate": full}),
    }


def binding_cap(c: Chance) -> Parts:
    """A limit on rows or files per batch is lower than what arrives."""
    c.draw(triggers=(1.0, 2.0, 2.0), sources=("files", "kafka"))
    over = c.by_strength(1.5, 2.0, 4.0)
    assert c.trigger is not None
    if c.source == "kafka":
        cap, rate = 200, 200 / c.trigger
        load = c.load({"rate": 0.5 * rate}, {"rate": over * rate})
    else:
        cap, every = 1, c.trigger
        load = c.load({"rate": 100, "every": 2 * every}, {"rate": 100, "every": every / over})
    app = c.pick("warehouse", "counts", "mirror")
    after = 4 * c.trigger
    parts = {"app": app, "options": {"cap": cap}, "expected": ("rate-limited",), "harm": "given", "harm_after": after}
    return {**parts, "place": INPUT, **load}


def slow_broker(c: Chance) -> Parts:
    """The connection to the broker has a high latency."""
    c.draw(triggers=(None, 1.0, 2.0), sources=("kafka",), onsets=("later",))
    latency = round(c.scale * c.by_strength(0.5, 0.8, 1.5), 2)
    parts = {"app": c.pick("warehouse", "dedup"), "proxied": True, "expected": ("slow-source",)}
    return {**parts, "place": INPUT, "actions": ((c.onset_seconds, "broker_latency", latency),)}


def slow_gateway(c: Chance) -> Parts:
    """A data source written in Python waits long for its newest offset."""
    c.draw(sources=("own",))
    parts = {"app": "devices", "expected": ("slow-source",), "place": ("source", "devices")}
    return {**parts, **c.from_onset(gateway=round(c.factor * c.scale, 2))}


def late_rows(c: Chance) -> Parts:
    """A share of the rows is 60 s late, more than the watermark delay."""
    c.draw(triggers=(None, 1.0, 2.0), sources=("files", "kafka"))
    share = c.by_strength(0.05, 0.2, 0.5)
    load = c.load({"rate": 150}, {"rate": 150, "late": share, "late_by": 60.0})
    parts = {"app": c.pick("dedup", "counts"), "expected": ("late-data",), "may": ("rows-dropped",)}
    return {**parts, "place": INPUT, "harm": "given", "harm_after": 4.0, **load}


def future_row(c: Chance) -> Parts:
    """One row is dated an hour ahead and moves the watermark past the others."""
    c.draw(triggers=(None, 1.0, 2.0), sources=("files", "kafka"), onsets=("later",))
    load = c.load({"rate": 150}, {"rate": 150, "future": True})
    parts = {"app": c.pick("dedup", "counts"), "expected": ("watermark-jump",), "may": ("rows-dropped", "late-data")}
    return {**parts, "place": INPUT, "harm": "given", "harm_after": 4.0, **load}


def idle_branch(c: Chance) -> Parts:
    """One of two inputs has no rows, so the watermark does not advance."""
    c.draw(triggers=(None, 1.0, 2.0, 10.0), sources=("files", "kafka"))
    busy, idle = {"rate": 100}, {"rate": 0}
    parts = {"app": c.pick("merged", "payments"), "two_inputs": True, "expected": ("watermark-stalled",)}
    parts["place"] = ("source", "second")
    control = {"load": busy, "load2": busy if c.onset == "later" else idle}
    changes = ((c.onset_seconds, {"load2": idle}),) if c.onset == "later" else ()
    lasts = {"harm": "given", "harm_after": 20.0, "after": 75.0}
    return {**parts, "control": control, "changes": changes, "options": {"delay": "5 seconds"}, **lasts}


def silent_producer(c: Chance) -> Parts:
    """The producer stops sending; the query itself works."""
    c.draw(triggers=(None, 1.0, 2.0), sources=("kafka", "files"), onsets=("later",))
    rate = c.pick(150, 600)
    load = c.load({"rate": rate}, {"rate": 0})
    parts = {"app": c.pick("warehouse", "counts"), "expected": ("input-stopped",), "later": 50.0}
    return {**parts, "place": INPUT, "harm": "given", "harm_after": 20.0, "due": "info", "after": 70.0, **load}


def heap(c: Chance) -> Parts:
    """The driver's heap is filled until only 45 to 70 MiB are free."""
    c.draw(triggers=(1.0, 2.0), onsets=("later",), sources=("rate", "files"))
    left = c.by_strength(70, 55, 45)
    conf = {"spark.driver.memory": "600m"}
    parts = {"app": "cached", "conf": conf, "expected": ("gc-pressure",), "place": ("driver", "heap"), "after": 55.0}
    return {**parts, **c.from_onset(heap_left=left)}


def planning(c: Chance) -> Parts:
    """A query with hundreds of columns takes most of each batch to plan."""
    c.draw(triggers=(None, 1.0), onsets=("birth",))
    columns = c.by_strength(500, 900, 1400)
    parts = {"app": "wide", "options": {"keys": columns, "rate": 20}, "expected": ("small-batch-overhead",)}
    return {**parts, "place": ("driver", "planning")}


def unbounded_state(c: Chance) -> Parts:
    """Removes duplicates without a watermark, so the state grows with every row."""
    c.draw(triggers=(None, 2.0), onsets=("birth",), sources=("rate",))
    rate = c.by_strength(1000, 3000, 8000)
    parts = {"app": "dedup", "options": {"rate": rate, "delay": ""}, "expected": ("unbounded-state", "state-growth")}
    return {**parts, "place": ("operator", "dropDuplicates"), "harm": "given", "harm_after": 15.0}


def executor_lost(c: Chance) -> Parts:
    """One, two or four executors are killed, 10 seconds apart."""
    c.draw(triggers=(1.0, 2.0), onsets=("later",), sources=("rate", "files"))
    kills = c.by_strength(1, 2, 4)
    actions = tuple((c.onset_seconds + 10.0 * number, "kill_executor", 0.0) for number in range(kills))
    conf = {"spark.executor.memory": "512m", "spark.driver.memory": "600m"}
    parts = {"app": c.pick("counts", "scoring"), "master": "local-cluster[2,1,512]", "conf": conf}
    expected = ("executor-lost", "scheduler-skew")
    return {
        **parts,
        "expected": expected,
        "place": ("executor",),
        "actions": actions,
        "harm": "given",
        "harm_after": 0.5,
        "due": "info",  # Spark repeats the lost tasks, and no result need be late
        "options": {"shuffle": 4},
    }


def cpu_taken(c: Chance) -> Parts:
    """Processes outside the application occupy the cores."""
    c.draw(triggers=(1.0,), sources=("rate", "files"))
    count = c.by_strength(6, 9, 14)
    parts = {"app": c.pick("counts", "dedup"), "options": {"shuffle": 6}, "expected": ("cpu-saturated",)}
    return {**parts, "place": ("host",), "actions": ((max(c.onset_seconds, 1.0), "burn_cpu", float(count)),)}


def crash_loop(c: Chance) -> Parts:
    """The query fails, and is restarted and fails again."""
    c.draw()
    parts = {"app": "features", "options": {"restart": True}, "expected": ("crash-loop", "query-failed")}
    return {**parts, "place": FEATURE, "harm": "failure", **c.from_onset(bad=True)}


def failing(c: Chance) -> Parts:
    """The query fails once, in a Python function or in the sink."""
    c.draw()
    sink = ("warehouse", DELIVERY, {"fail": "no route to host"})
    app, place, values = c.pick(("features", FEATURE, {"bad": True}), sink)
    parts = {"app": app, "place": place, "expected": ("query-failed",), "harm": "failure", "after": 30.0}
    return {**parts, **c.from_onset(**values)}


def neighbour(c: Chance) -> Parts:
    """Another query of the same application occupies the cores."""
    c.draw(triggers=(1.0, 2.0), sources=("rate", "files"))
    parts = {"app": "reports", "blamed": "small_report", "query": "reports", "expected": ("noisy-neighbour",)}
    return {**parts, "place": ("query", "nightly_rebuild"), **c.from_onset(burn=round(0.7 * c.factor * c.scale, 2))}


def partition_skew(c: Chance) -> Parts:
    """85 % of the rows arrive in one source partition, and each row costs time."""
    c.draw(triggers=(None, 2.0, 10.0), sources=("kafka",))
    rate, pinned = 60, 0.85
    load = c.load({"rate": rate}, {"rate": rate, "pinned": pinned})
    load["control"]["row"] = round(c.utilisation / (pinned * rate), 4)
    place = ("partition", "input", "0")
    return {"app": "scoring", "master": "local[4]", "expected": ("source-partition-skew",), "place": place, **load}


def broker_down(c: Chance) -> Parts:
    """The broker is killed."""
    c.draw(triggers=(None, 2.0), sources=("kafka",), onsets=("later",))
    parts = {"app": c.pick("warehouse", "dedup"), "expected": ("source-unreachable",), "may": ("query-failed",)}
    parts["place"] = INPUT
    return {**parts, "actions": ((c.onset_seconds, "kill_broker", 0.0),), "harm": "given", "harm_after": 5.0}


TABLE_SECONDS = 5.0  # a commit takes a second, and three where the cores are busy


def table_overload(c: Chance) -> Parts:
    """More rows are committed to a Delta table than the application can process."""
    c.draw(triggers=(TABLE_SECONDS,), sources=("delta",))
    rate = 200
    wait = round(2000 * 1.5 / rate, 2)  # of two tasks at a time: 1.5 is the utilisation at full rate
    full = round(rate * c.utilisation / 1.5)
    parts = {"app": "fraud", "expected": ("input-overload",), "place": INPUT, "options": {"wait": wait}}
    return {**parts, **c.load({"rate": full // 4}, {"rate": full}), "after": 70.0}


def table_cap(c: Chance) -> Parts:
    """A limit on the files per batch is lower than what is committed to a Delta table."""
    c.draw(triggers=(TABLE_SECONDS,), sources=("delta",))
    cap, over = 2, c.by_strength(1.5, 2.0, 4.0)
    every = TABLE_SECONDS / cap
    load = c.load({"rate": 50, "every": 2 * every}, {"rate": 50, "every": every / over})
    parts = {"app": c.pick("warehouse", "counts"), "options": {"cap": cap}, "expected": ("rate-limited",)}
    return {**parts, **load, "place": INPUT, "harm": "given", "harm_after": 4 * TABLE_SECONDS, "after": 80.0}


def table_conflict(c: Chance) -> Parts:
    """Another writer adds rows to the Delta table into which each batch is merged."""
    c.draw(triggers=(3 * TABLE_SECONDS,), sources=("delta",))  # MERGE is several jobs and a commit
    rival = c.by_strength(1.0, 0.5, 0.2)
    parts = {"app": "lake", "options": {"merge": True, "format": "delta"}, "expected": ("query-failed",)}
    return {**parts, "place": TABLE, "harm": "failure", **c.from_onset(rival={"rate": 100, "every": rival})}


def table_small_files(c: Chance) -> Parts:
    """Each batch writes hundreds of small files to a Delta table with as many partitions."""
    c.draw(triggers=(TABLE_SECONDS,), onsets=("birth",), sources=("delta",))
    files = c.by_strength(650, 900, 1500)  # some 5 ms of a core for each
    parts = {"app": "lake", "options": {"parts": files, "format": "delta"}, "load": 500}
    return {**parts, "expected": ("slow-sink",), "may": ("many-small-files",), "place": TABLE}


def table_vacuumed(c: Chance) -> Parts:
    """A Delta table is compacted and vacuumed before the query has read its newest files."""
    c.draw(triggers=(TABLE_SECONDS,), sources=("delta",), onsets=("later",))
    parts = {"app": c.pick("warehouse", "lake"), "options": {"cap": 1, "format": "delta"}, "harm": "failure"}
    actions = ((c.onset_seconds, "vacuum", 0.0),)
    return {**parts, "expected": ("query-failed",), "may": ("rate-limited",), "place": INPUT, "actions": actions}


def table_new_column(c: Chance) -> Parts:
    """A column is added to the Delta table that the query reads."""
    c.draw(triggers=(TABLE_SECONDS,), sources=("delta",), onsets=("later",))
    parts = {"app": c.pick("warehouse", "lake"), "options": {"format": "delta"}, "harm": "failure"}
    actions = ((c.onset_seconds, "add_column", 0.0),)
    return {**parts, "expected": ("query-failed",), "place": INPUT, "actions": actions}


FAULTS: Mapping[str, Draw] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        slow_sink, python_udf, key_skew, straggler, too_many_tasks, overload, binding_cap, slow_gateway, late_rows,
        idle_branch, silent_producer, planning, executor_lost, cpu_taken, crash_loop, stuck_sink, heap, slow_broker,
        future_row, unbounded_state, failing, flaky_sink, neighbour, partition_skew, broker_down,
        table_overload, table_cap, table_conflict, table_small_files, table_vacuumed, table_new_column,
    )
}  # fmt: skip
