"""One batch by parts, as `batch_parts` describes them, from the JSON of a recording."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.evidence.tape import Batch, Json, Tape, total_of

PHASES = {
    "latest_offset": "latestOffset", "get_batch": "getBatch", "query_planning": "queryPlanning",
    "wal_commit": "walCommit", "commit_offsets": "commitOffsets", "add_batch": "addBatch",
}  # fmt: skip
SPILL_RATE = 16 * 2**20  # bytes that a task spills in a second, at the least


def parts_of(tape: Tape, batch: Batch) -> Counter[str]:
    """Seconds by part; they add up to the duration."""
    found = Counter({name: batch.phase(theirs) for name, theirs in PHASES.items()})
    found["unattributed"] = max(0.0, batch.seconds - found.total())
    adding, stages = found.pop("add_batch"), tape.stages(batch)
    if not stages:
        return found + Counter(tasks_unknown=adding)
    at_work = min(adding, _wall(stages))
    began = batch.end - batch.phase("commitOffsets") - batch.phase("addBatch")
    idle = adding - at_work
    found["after_tasks"] = min(idle, max(0.0, began + adding - max(each["ended"] for each in stages)))
    idle -= found["after_tasks"]
    found["driver_before"] = min(idle, max(0.0, min(each["started"] for each in stages) - began))
    found["driver_between"] = idle - found["driver_before"]
    walls = [max(0.0, stage["ended"] - stage["started"]) for stage in stages]
    cores = tape.cores_during(batch)
    for stage, wall in zip(stages, walls, strict=True):
        share = wall / sum(walls) if sum(walls) else 1 / len(stages)
        found.update(_of_stage(stage, share * at_work, cores))
    even = found.pop("even", 0.0)
    ran_seconds = total_of(stages, "run_seconds")
    for name, seconds in _of_tasks(tape, batch, stages) if ran_seconds else [("waiting", 1.0)]:
        found[name] += seconds / (ran_seconds or 1.0) * even
    return found


def _wall(stages: Sequence[Json]) -> float:
    """Seconds in which at least one stage was at work."""
    total, until = 0.0, 0.0
    for start, end in sorted((stage["started"], stage["ended"]) for stage in stages):
        total, until = total + max(0.0, end - max(start, until)), max(until, end)
    return total


def _of_stage(stage: Json, wall: float, cores: Mapping[str, int]) -> Mapping[str, float]:
    """What a stage takes beyond an even split of its tasks over the cores, by part, and the rest as `even`."""
    width, count = sum(cores.values()), stage["tasks"]
    ran, longest = stage["run_seconds"], stage["seconds_max"]
    if tiny(stage, width):
        return {"even": wall * 3 * width / count, "many_tasks": wall * (1 - 3 * width / count)}
    slots = min(count, width)
    needs = longest if count <= width else longest + (ran - longest) / slots
    name, even = _uneven(stage, slots)
    if stage["executors"] and 1 < len(cores) <= count:
        most, own = max(stage["executors"].items(), key=lambda each: each[1]["tasks"])
        unfair = own["tasks"] / count >= min(0.95, 1.6 * cores.get(most, float("inf")) / width)
        if unfair and own["run_seconds"] / cores[most] > longest:
            name, even, needs = "uneven_executors", max(longest, ran / width), own["run_seconds"] / cores[most]
    needs = min(wall, needs)
    even = min(needs, even) if name else needs
    again = min(wall - needs, stage.get("failed_seconds", 0.0))
    return {"launch": wall - needs - again, "retries": again, name or "even": needs - even} | {"even": even}


def tiny(stage: Json, width: int) -> bool:
    """Whether its tasks are far too many on so many cores for what each has to do."""
    many, few = stage["tasks"] / width, _of_task(stage)
    return (many >= 50 and few < 50) or (many >= 10 and few < 500 and stage["seconds_median"] <= 0.25)


def _of_task(stage: Json) -> float:
    """Rows or kilobytes that a task reads, whichever are more, by the mean."""
    kilobytes = (stage["input_bytes"] + stage["shuffle_read_bytes"]) / 1000
    return float(max(stage["records"], kilobytes) / stage["tasks"])


def _uneven(stage: Json, slots: int) -> tuple[str, float]:
    """The part to which one large or slow task belongs, and what the stage would take without it."""
    count, ran, longest = stage["tasks"], stage["run_seconds"], stage["seconds_max"]
    if count == 1:
        return "", longest
    pace = (ran - longest) / (count - 1)
    if stage["records_max"] > 1.5 * max(1.0, (stage["records"] - stage["records_max"]) / (count - 1)):
        name = "uneven_keys" if stage["reads_shuffle"] else "uneven_source"
        return (name, ran / slots) if stage["records"] >= 200 else ("", longest)
    if stage["records"] and longest >= 2 * pace:
        return "uneven_task", max(pace, (ran - longest + pace) / slots)
    return "", longest


def _of_tasks(tape: Tape, batch: Batch, stages: Sequence[Json]) -> Iterator[tuple[str, float]]:
    """Task seconds by part: first what is measured, then computing, and what is left waits."""
    left, cpu = total_of(stages, "run_seconds"), total_of(stages, "cpu_seconds")
    python = min(tape.tasks[batch.run, batch.id].get("python_seconds") or 0.0, left)
    operators = batch.operators
    update = sum(each.get("allUpdatesTimeMs", 0) + each.get("allRemovalsTimeMs", 0) for each in operators) / 1000
    stall = sum((each.get("customMetrics") or {}).get("rocksdbWriterStallLatencyMs", 0) for each in operators) / 1e9
    measured = {
        "python": python,
        "gc": total_of(stages, "gc_seconds"),
        "state_commit": sum(each.get("commitTimeMs", 0) for each in operators) / 1000,
        "state_stall": stall,
        "state_update": max(0.0, update - stall),
        "shuffle": sum(stage.get("shuffle_seconds") or 0.0 for stage in stages),
    }
    computing = max(0.0, cpu - measured["state_update"])
    for name, seconds in measured.items():
        yield name, min(seconds, left)
        left -= min(seconds, left)
    computing = min(computing, left)
    waiting = left - computing
    idle = [max(0.0, stage["run_seconds"] - stage["cpu_seconds"] - stage["gc_seconds"]) for stage in stages]
    scanned = total_of(table_stages(batch, stages), "records")
    for place, stage in enumerate(stages):
        computed, waits = _roles(stage, _writes(stages[place:]))
        computes = computing * (stage["cpu_seconds"] / cpu if cpu else 1 / len(stages))
        waited = waiting * (idle[place] / sum(idle) if sum(idle) else 1 / len(stages))
        spilling = min(1.0, stage["spill_bytes"] / SPILL_RATE / (stage["run_seconds"] or 1e-9))
        if _reads_more(batch, stage) and stage["records"] <= 2 * scanned:
            computed, waits, spilling = "table_scan", "table_scan", 0.0
        yield "spill", (computes + waited) * spilling
        yield computed, computes * (1 - spilling)
        yield waits, waited * (1 - spilling)


def table_stages(batch: Batch, stages: Sequence[Json]) -> Sequence[Json]:
    """Those that read what is not from a source."""
    return [stage for stage in stages if not stage["reads_shuffle"] and _reads_more(batch, stage)]


def _reads_more(batch: Batch, stage: Json) -> bool:
    rows = sum(source.get("numInputRows", 0) for source in batch.raw.get("sources", ()))
    return rows > 0 and stage["records"] > 3 * rows and _of_task(stage) > 100


def _writes(stages: Sequence[Json]) -> bool:
    """Whether the first of them does: nothing comes after it, or what it wrote is no shuffle for those after it."""
    stage, *later = stages
    return not later or (stage["shuffle_write_bytes"] == 0 < (stage.get("slowest_wrote") or 0))


def _roles(stage: Json, writes: bool) -> tuple[str, str]:
    """The parts to which the computing and the waiting of a stage belong."""
    reads = stage["records"] > 0 and not stage["reads_shuffle"]
    waits = "source_wait" if reads else "waiting"
    if writes:
        waits = "waiting" if reads else "sink_wait"
    return ("few_rows" if _of_task(stage) <= 100 else "cpu"), waits
