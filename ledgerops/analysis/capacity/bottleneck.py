"""What limits a query: the largest piece of its batch time, and what in that piece more cores would not change.

The batch time of the line at so many rows has three pieces: the overhead, what the rows cost outside Spark's tasks, and
what they cost in tasks. The parts of a typical batch (`ledgerops.diagnosis.batch_parts`) name the first two, the stage
that takes longest (`ledgerops.analysis.capacity.stages`) the third. A cap of the source that binds comes before them,
and so does what others take of the cores, where it is the most.
"""

from ledgerops.analysis.capacity.fit import Fit, utmost_rate
from ledgerops.analysis.capacity.situation import Situation
from ledgerops.analysis.capacity.stages import Limit
from ledgerops.diagnosis.batch_parts import CONTENTION
from ledgerops.diagnosis.limits import NOISE_SHARE
from ledgerops.diagnosis.proof import in_words

SOURCE, SINK, DRIVER = "the source", "the sink outside Spark's tasks", "the driver while no task runs"
PIECES = {
    "source": (SOURCE, ("latest_offset", "get_batch")),
    "sink": (SINK, ("after_tasks", "driver_waits")),
    "driver": (DRIVER, ("driver_before", "driver_between")),
    "planning": ("planning and the checkpoint", ("query_planning", "wal_commit", "commit_offsets", "unattributed")),
}  # fmt: skip
MIN_OVERHEAD_SHARE = 0.5  # of the overhead in one place, which then names the limit


def limit(known: Situation, cores: int | None, rows: float | None, line: Fit | None) -> Limit:
    """What limits the query at batches of so many rows; without a line, what takes most of a typical batch."""
    if known.cap is not None and rows is not None and rows >= known.cap[1] and _costs(known, known.cap[1], line):
        return Limit("source_limit", f"{known.cap[0]} allows {known.cap[1]:,.0f} rows a batch")
    if not known.parts:
        return Limit("unknown", "no batch after the warm-up")
    largest = max(known.parts, key=lambda part: known.parts[part])
    if largest in CONTENTION:
        spent = f"{known.parts[largest]:.2f} s of a batch of {sum(known.parts.values()):.2f} s are"
        return Limit(largest, f"{spent} {in_words(largest)}")
    if "tasks_unknown" in known.parts or known.stages is None:
        return _without_tasks(known, rows, line)
    outside = {name: sum(known.parts.get(part, 0.0) for part in parts) for name, (_, parts) in PIECES.items()}
    total = sum(known.parts.values())
    if line is None or rows is None or line.overhead <= 0:
        inside = total - sum(outside.values())
        return _in_tasks(known, cores) if inside >= max(outside.values()) else _named(outside, total)
    overhead, growing = line.overhead, line.slope * rows
    factor = known.stages.factor(cores) if cores else 1.0
    task_share = known.stages.of_slope * factor / (1 - known.stages.of_slope * (1 - factor))
    in_tasks = growing * task_share
    if overhead >= max(in_tasks, growing - in_tasks):
        share = overhead / (overhead + growing)
        fixed = f"fixed cost of {overhead:.2f} s, {share:.0%} of a batch of {rows:,.0f} rows"
        largest = max(outside, key=lambda name: outside[name])
        if largest != "planning" and outside[largest] >= MIN_OVERHEAD_SHARE * overhead:
            return Limit(largest, f"{fixed}; most of it in {PIECES[largest][0]}")
        return Limit("fixed_overhead", fixed)
    if in_tasks >= growing - in_tasks:
        return _in_tasks(known, cores)
    return _named({name: outside[name] for name in ("source", "sink", "driver")}, total)


def _costs(known: Situation, cap: float, line: Fit | None) -> bool:
    """Whether larger batches than a cap allows would process more: it leaves time of the interval, or the fixed cost of
    a batch is a good part of it."""
    if line is None:
        return True

    def utmost(most: float | None) -> float:
        return line.estimate(lambda a, b: utmost_rate(a, b, known.trigger or 0.0, most)).value

    return utmost(cap) < (1 - NOISE_SHARE) * utmost(None)


def _in_tasks(known: Situation, cores: int | None) -> Limit:
    assert known.stages is not None
    if cores is None:
        return Limit("unknown", "the number of cores is not known")
    bound = known.stages.bound(cores)
    if bound is None:
        return Limit("unknown", "no stage ran")
    return Limit("hot_key", f"{bound.detail} (by {known.key})") if bound.what == "hot_key" and known.key else bound


def _named(outside: dict[str, float], total: float) -> Limit:
    largest = max(outside, key=lambda name: outside[name])
    what = "fixed_overhead" if largest == "planning" else largest
    return Limit(what, f"{outside[largest]:.2f} s of a batch of {total:.2f} s are spent in {PIECES[largest][0]}")


def _without_tasks(known: Situation, rows: float | None, line: Fit | None) -> Limit:
    if line is not None and rows is not None and line.overhead >= line.slope * rows:
        whole = line.overhead + line.slope * rows
        return Limit("fixed_overhead", f"{line.overhead:.2f} s of a batch of {whole:.2f} s are fixed cost")
    return Limit("unknown", "tasks were recorded for too few batches")
