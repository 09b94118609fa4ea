"""The typical batch that a finding names: the parts of its batches, what is usual, and what contention takes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tests.evidence.recompute.batch import parts_of, table_stages
from tests.evidence.tape import Batch, Formula, Tape, total_of

Seconds = Mapping[str, float]

# the same for any number of rows; all other parts are compared with the usual for as many rows
FIXED = {
    "latest_offset", "get_batch", "query_planning", "wal_commit", "commit_offsets", "driver_before", "launch",
    "many_tasks", "few_rows", "table_scan",
}  # fmt: skip
WAIT = {  # for no core, or perhaps
    "latest_offset", "get_batch", "slot_wait", "after_tasks", "retries", "gc", "unattributed", "tasks_unknown",
    "driver_waits",
}  # fmt: skip
UNTIL_TASKS = {"slot_wait", "launch"}  # a stage waits there for slots
IN_DRIVER = ("driver_before", "driver_between")  # or there, as long as it is ready
TASKS_WAIT = ("source_wait", "waiting", "sink_wait", "uneven_task")
COMPUTE = ("cpu", "few_rows", "table_scan")
NAMES = (
    *FIXED, *WAIT, *TASKS_WAIT, "driver_between", "python", "state_commit", "state_stall", "state_update", "shuffle",
    "spill", "cpu", "uneven_keys", "uneven_source", "uneven_executors", "other_queries", "other_processes", "cpu_limit",
)  # fmt: skip
WORK = ("python", "state_update", "shuffle", "spill", "cpu")
UNEVEN = ("uneven_keys", "uneven_source", "uneven_task", "uneven_executors")
OF_ROWS = (
    *WORK, *UNEVEN, "waiting", "source_wait", "sink_wait", "driver_between", "after_tasks", "gc", "tasks_unknown"
)  # fmt: skip

OF_FUNCTION, WAITED = ("driver_before", "driver_between"), "driver_waits"


class Profile(NamedTuple):
    """Seconds by part, now and usually; `usual` is None without a healthy past. `more`: of these what the rows need
    that are more than usual."""

    now: Seconds
    usual: Seconds | None
    duration: float
    more: float

    def excess(self, names: Sequence[str]) -> float:
        """Of all these parts together."""
        return sum(self.now.get(name, 0.0) - (self.usual or {}).get(name, 0.0) for name in names)


def profile(tape: Tape) -> Profile:
    batches, usual = tape.named(), tape.named("usual_batches")
    now, before, more = _typical(tape, batches), None, 0.0
    if usual:
        rows = max(1.0, median(batch.rows for batch in batches) / median(batch.rows for batch in usual))
        plain = _typical(tape, usual)
        most = {name: seconds if name in FIXED else seconds * rows for name, seconds in plain.items()}
        # of the time that more rows may take only what a part takes of it: the rest is nobody's
        before = {name: max(seconds, min(now[name], most[name])) for name, seconds in plain.items()}
        more = sum(before.values()) - sum(plain.values())
    duration = median(batch.seconds for batch in batches)
    return _contended(tape, _waiting(tape, Profile(_with_driver_gc(tape, now, duration), before, duration, more)))


def _typical(tape: Tape, batches: Sequence[Batch]) -> Seconds:
    """Medians of the parts' shares, scaled to the median duration, of none more seconds than in any batch."""
    split = [(batch.seconds, parts_of(tape, batch)) for batch in batches]
    shares = {name: median(parts[name] / seconds for seconds, parts in split) for name in NAMES}
    most = {name: max(parts[name] for _, parts in split) for name in NAMES}
    left, typical = median(batch.seconds for batch in batches), dict[str, float]()
    while True:
        scale = left / sum(shares.values())
        over = [name for name in shares if shares[name] * scale > most[name]]
        if not over or not any(shares[name] for name in shares if name not in over):
            return typical | {name: share * scale for name, share in shares.items()}
        for name in over:
            typical[name] = most[name]
            left -= most[name]
            del shares[name]


def _with_driver_gc(tape: Tape, now: Seconds, duration: float) -> Seconds:
    """In local mode a collection stops the driver, too: its share in the run time of the last half minute is taken from
    all that wants a core."""
    if not tape.is_local:
        return now
    looks = [host["executors"] for host in tape.hosts if host["at"] >= tape.hosts[-1]["at"] - 30]
    gc, run = (total_of(looks[-1], key) - total_of(looks[0], key) for key in ("gc_seconds", "run_seconds"))
    missing = (gc / run if run else 0.0) * duration - now["gc"]
    wanting = {name: seconds for name, seconds in now.items() if name not in WAIT}
    if missing <= 0:
        return now
    moved = missing / sum(wanting.values())
    return {**now, **{name: seconds * (1 - moved) for name, seconds in wanting.items()}, "gc": now["gc"] + missing}


def _contended(tape: Tape, found: Profile) -> Profile:
    """What others took of each part, given how many times as long work takes."""
    told = tape.told
    held_by = ("other_queries", "other_processes", "cpu_limit")
    name = next((each for each in held_by if f"stretch_by_{each}" in told), None)
    if name is None:
        return found
    stretch, taken = told[f"stretch_by_{name}"], Counter[str]()
    budget = sum(found.now[each] for each in COMPUTE) * (told["stretch_of_tasks"] - 1)
    for each in TASKS_WAIT:  # tasks that computed waited for cores for so long, and the rest for something else
        taken[each] = min(budget, found.now[each] if name == "cpu_limit" else max(0.0, found.excess([each])))
        budget -= taken[each]
    for each in set(NAMES) - {*TASKS_WAIT, *COMPUTE}:
        grown, usually = max(0.0, found.excess([each])), (found.usual or {}).get(each)
        if each in UNTIL_TASKS and name == "other_queries":
            taken[each] = grown
        elif usually and name != "cpu_limit":
            taken[each] = min(grown, usually * (stretch - 1))
        elif each not in WAIT:
            taken[each] = found.now[each] * (1 - 1 / stretch)
    ready = _ready(tape) if name == "other_queries" else 0.0
    for each in IN_DRIVER:
        without_task = min(ready, max(0.0, found.excess([each])))
        taken[each], ready = max(taken[each], without_task), ready - without_task
    now = {each: seconds - taken[each] for each, seconds in found.now.items()}
    return found._replace(now={**now, name: taken.total()})


def _ready(tape: Tape) -> float:
    """Seconds of a batch in which a stage had been submitted and none of its tasks ran; no limit where not recorded."""
    known = list[float]()
    for batch in tape.named():
        stages, until, waited = sorted(tape.stages(batch), key=lambda each: each["started"]), batch.start, 0.0
        if all(each.get("submitted") for each in stages):
            for each in stages:
                waited += max(0.0, each["started"] - max(until, each["submitted"]))
                until = max(until, each["ended"])
            known.append(waited)
    return median(known) if known else float("inf")


def _waiting(tape: Tape, found: Profile) -> Profile:
    """What passes outside of stages as one part, where the function of `foreachBatch` waits there."""
    if found.usual is not None or not _function_waits(tape, found):
        return found
    waited = sum(found.now[name] for name in OF_FUNCTION)
    return found._replace(now={**found.now, **dict.fromkeys(OF_FUNCTION, 0.0), WAITED: waited})


def _function_waits(tape: Tape, found: Profile) -> bool:
    """Whether the driver computes for less than half of the time that passes there."""
    sink = str(tape.plan.get("sink") or tape.newest.raw.get("sink", {}).get("description", "")).lower()
    if "foreachbatch" not in sink or not all(map(tape.stages, tape.named())):
        return False
    idle, cores = sum(found.now[name] for name in OF_FUNCTION), tape.cores_by_role
    newest = tape.steady[-10:]
    used = cores.get("driver_jvm", 0.0) + cores.get("driver_python", 0.0)
    if len(newest) > 1:  # of the time that they fill, the last one up to its next trigger
        filled = newest[-1].start + max(newest[-1].seconds, tape.interval) - newest[0].start
        used /= min(1.0, sum(batch.seconds for batch in newest) / filled)
    computed = used * median(batch.seconds for batch in tape.named())
    if tape.is_local:
        computed -= median(total_of(tape.stages(batch), "cpu_seconds") for batch in tape.named())
    stretches = [value for name, value in tape.told.items() if name.startswith("stretch_by_")]
    return max(stretches, default=1.0) * computed < idle / 2


def idle_share(tape: Tape, batches: Sequence[Batch], usual: float) -> float:
    """Of the seconds of these batches beyond the usual, the share in which no task computes."""
    shares = []
    for batch in batches:
        parts, excess = parts_of(tape, batch), batch.seconds - usual
        if "driver_before" in parts:
            idle = sum(parts[name] for name in (*OF_FUNCTION, "after_tasks", "sink_wait", "waiting"))
            shares.append((idle - sum(parts[name] for name in UNEVEN)) / excess)
    return min(1.0, median(shares))


def _saving(tape: Tape) -> float:
    """The seconds of a cause's parts beyond the usual; some count only against a usual, and some only without one."""
    owned, found = tape.finding["owned"], profile(tape)
    if found.usual is None:
        return max(0.0, found.excess([*owned["parts"], *owned["born"]]) - float(owned["normal"]))
    return max(0.0, found.excess([*owned["parts"], *owned["grown"]]))


def _needed_offsets(tape: Tape) -> float:
    """The cap with which the query would keep up; rows and the fixed rest take what the profile says."""
    found, newest, run = profile(tape), tape.steady[-5:], tape.run[-3:]
    seconds = median(batch.seconds for batch in newest)
    for_rows = sum(found.now[name] for name in OF_ROWS) / found.duration * seconds
    arrival = (run[-1].head - run[0].head) / (run[-1].asked - run[0].asked)
    read = median(batch.offsets_read for batch in newest)
    return max(arrival * (seconds - for_rows) / (0.7 - arrival * for_rows / read), arrival * tape.interval / 0.7)


def _part(name: str) -> Formula:
    return lambda tape: profile(tape).now[name]


def _work_on_rows(tape: Tape) -> Iterator[float]:
    """Of the batch: all of it, what is beyond the usual, or what more rows need, which counts if it is more."""
    found = profile(tape)
    usual = found.usual or {}
    yield sum(found.now.get(name, 0.0) for name in WORK) / found.duration
    yield sum(max(0.0, found.now.get(name, 0.0) - usual.get(name, 0.0)) for name in WORK) / found.duration
    yield found.more / found.duration


FORMULAS: Mapping[str, Formula] = {
    "work_on_rows_share": _work_on_rows,
    **{f"{name}_seconds": _part(name) for name in NAMES},
    "profile_seconds": lambda tape: median(batch.seconds for batch in tape.named()),
    "saving_seconds": _saving,
    "needed_offsets": _needed_offsets,
    "failed_tasks": lambda tape: float(sum(total_of(tape.stages(batch), "failed_tasks") for batch in tape.named())),
    "scanned_rows": lambda tape: median(
        total_of(table_stages(batch, tape.stages(batch)), "records") for batch in tape.named()
    ),
}
