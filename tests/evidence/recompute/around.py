"""Numbers that others tell about a query: its sources, its tables, the machines, its neighbours, and the observer."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from tests.evidence.recompute.batch import tiny
from tests.evidence.tape import Batch, Formula, Given, Json, Place, Tape, instant, total_of

MINUTE = 60.0
HEADROOM, LAG = "ledgerops_retention_headroom_seconds", "ledgerops_source_lag_seconds"


# -- what a source still has


def _place(tape: Tape) -> Place:
    """The partition that a finding names: `topic-2`."""
    topic, _, number = tape.name.rpartition("-")
    return topic, number


def _answers(tape: Tape) -> list[Json]:
    return [look for look in tape.asked if not look.get("error")]


def _gaps(tape: Tape) -> float:
    """Offsets between where the query goes on and the oldest that is left."""
    earliest, ends = tape.asked[-1].get("earliest") or {}, tape.newest.offsets("endOffset")
    return float(sum(max(0, earliest.get(topic, {}).get(number, 0) - end) for (topic, number), end in ends.items()))


def _leaping(tape: Tape) -> Batch:
    """The batch of which the finding tells that it read fewer rows than offsets."""
    told = tape.told["batch_rows"], tape.told["batch_offsets"]
    return next(batch for batch in reversed(tape.run) if (batch.rows, batch.offsets_read) == told)


def _lost(tape: Tape) -> float:
    if "batch_rows" not in tape.told:
        return _gaps(tape)
    return _leaping(tape).offsets_read - _leaping(tape).rows


def _unread(tape: Tape) -> float:
    """What the topic had of the finding's partition before the query went on in it, once its id was another."""
    topic, number = _place(tape)
    named = [look for look in tape.asked if topic in look.get("topic_ids", {})]
    former, first = next(
        pair for pair in reversed([*pairwise(named)]) if pair[0]["topic_ids"][topic] != pair[1]["topic_ids"][topic]
    )
    start = next(batch for batch in tape.all if batch.start > former["at"]).offsets("startOffset")[topic, number]
    return float(start - first["earliest"][topic][number])


def _skipped(tape: Tape) -> float:
    """Batches without rows that moved a source, up to the newest that was in the log of the output before the run."""
    begun = max(at for at, run in tape.starts if run == tape.run_id)
    old = max(c["batch_id"] for sample in tape.tables for c in sample["commits"] if c["files"] and c["at"] < begun)
    moved = [any(each["startOffset"] != each["endOffset"] for each in batch.raw["sources"]) for batch in tape.run[-60:]]
    return float(sum(m and b.id <= old and b.rows == 0 for m, b in zip(moved, tape.run[-60:], strict=True)))


def _arrivals(tape: Tape) -> list[float]:
    """The instants at which some partition of the topic was seen to have grown. A batch tells of its heads when it has
    ended: what was asked for meanwhile is newer, and the batch's own look then says nothing any more."""
    looks = [(batch.end, batch.asked, {place[1]: at for place, at in batch.heads.items() if place[0] == tape.name})
             for batch in tape.all]  # fmt: skip
    looks += [(look["at"], look["at"], (look.get("latest") or {}).get(tape.name, {})) for look in tape.asked]
    found, highest = [], dict[str, int]()
    for _, at, heads in sorted(looks, key=lambda each: each[0]):
        found += [at] * any(number in highest and head > highest[number] for number, head in heads.items())
        highest |= {number: max(head, highest.get(number, -1)) for number, head in heads.items()}
    return found


def _silent(tape: Tape) -> float:
    told = next(each["at"] for each in tape.finding["evidence"] if each["name"] == "seconds_without_arrival")
    return instant(told) - _arrivals(tape)[-1]


def _keeps(tape: Tape) -> float:
    """Seconds that a topic keeps."""
    return float(_answers(tape)[-1]["retention_seconds"][_place(tape)[0]])


def _headroom(tape: Tape) -> Given:
    if tape.finding["rule"] == "data-loss":
        return 0.0 if _gaps(tape) > 0 else None
    return max(0.0, _keeps(tape) - (tape.lag(_place(tape)) or 0.0))


def _headroom_lost(tape: Tape) -> float:
    """Seconds of lag that each second added since the newest batch of a minute ago."""
    place, earlier = _place(tape), [batch for batch in tape.all if batch.start <= tape.now - MINUTE][-1]
    end, since = (tape.was_head(place, batch.offsets("endOffset")[place]) for batch in (earlier, tape.newest))
    return (tape.now - since - max(0.0, earlier.asked - end)) / (tape.now - earlier.asked)


# -- what single causes tell beside their parts


def _answer_seconds(tape: Tape) -> list[float]:
    return [look["seconds"] for look in tape.asked if look.get("seconds") is not None]


def _hot_shares(tape: Tape) -> Iterator[float]:
    """The share of the most frequent key, of each of the newest batches."""
    for batch in tape.run[-5:]:
        rows = [row for row in batch.observed.values() if row.get("rows") and row.get("hot_keys")]
        yield from (row["hot_keys"][0]["count"] / row["rows"] for row in rows)


def _partitions(tape: Tape) -> Counter[Place]:
    """Offsets by partition of the topic that a finding names."""
    found = Counter[Place]()
    for batch in tape.named():
        found.update(
            {p: max(0, count) for p, count in batch.read().items() if p[0] == tape.finding["component"]["detail"]}
        )
    return found


def _tiny_tasks(tape: Tape) -> float:
    """Of the stages of the newest batch whose tasks are many and have hardly anything to do."""
    batch = tape.named()[-1]
    cores = sum(tape.cores_during(batch).values())
    return total_of((each for each in tape.stages(batch) if tiny(each, cores)), "tasks")


# -- cores


def _busy(tape: Tape) -> float:
    looks = tape.looks
    told = sum(later["cpu_busy_ratio"] * (later["at"] - earlier["at"]) for earlier, later in pairwise(looks))
    return float(told / (looks[-1]["at"] - looks[0]["at"]))


def _others(tape: Tape) -> float:
    """Cores that are busy, less those that the application's own processes use."""
    return max(0.0, _busy(tape) * tape.hosts[-1]["cpu_count"] - sum(tape.cores_by_role.values()))


def _judged(tape: Tape) -> list[list[Batch]]:
    """The newest five batches, or the newest late ones."""
    whole = tape.whole[1:] or tape.run[-1:]
    late = [batch for batch in tape.steady if 0 < 1.05 * tape.interval < batch.seconds]
    return [batches[-5:] for batches in (whole, late) if batches]


def _usual(tape: Tape) -> list[Batch]:
    """Batches before the newest four that had rows and were in time, as most of the five around them."""
    older = tape.steady[:-4]
    in_time = [not 0 < 1.05 * tape.interval < batch.seconds for batch in older]
    mostly = [median(in_time[max(0, place - 2) : place + 3]) > 0.5 for place in range(len(older))]
    found = [b for b, fits, most in zip(older, in_time, mostly, strict=True) if b.rows and fits and most]
    return found if len(found) >= 5 else []


def _slowdown(batches: Sequence[Batch], usual: Sequence[Batch]) -> float:
    rows, usual_rows = (median(batch.rows for batch in some if batch.rows) for some in (batches, usual))
    seconds, usually = (median(batch.seconds for batch in some if batch.rows) for some in (batches, usual))
    return seconds / (usually * max(1.0, rows / usual_rows))


def _fixed(batch: Batch, most_logs: float) -> float:
    planning, logs = batch.phase("queryPlanning"), batch.phase("walCommit") + batch.phase("commitOffsets")
    return planning + min(most_logs * planning, logs) if planning else logs


def _stretch(tape: Tape) -> Iterator[float]:
    """By what the whole batch and the phases of fixed length lost; one other query may take what the batch lost, or
    only hold the slots."""
    usual = _usual(tape)
    for batches in _judged(tape):
        now = median([_fixed(b, 3) for b in batches] or [0.4])
        before = median([_fixed(b, 1e9) for b in usual] or [0.4])
        slower = [_slowdown(batches, usual)] if usual else []
        most = slower or (_by_share_left(tape) if "stretch_by_other_processes" in tape.told else [])
        yield max(1.0, min([*most, now / max(0.05, before)]))
        yield from [*slower, 1.0] if "stretch_by_other_queries" in tape.told else []


def _held_back(tape: Tape) -> float:
    """Cores that the container's limit holds back."""
    looks = tape.looks
    first, last = looks[0], looks[-1]
    return float(last["cpu_held_back_seconds"] - first["cpu_held_back_seconds"]) / float(last["at"] - first["at"])


def _stretch_by_limit(tape: Tape) -> float:
    """What the application would use over what it uses."""
    used = sum(tape.cores_by_role.values())
    return (used + _held_back(tape)) / used


def _stretch_of_tasks(tape: Tape) -> list[float]:
    if "stretch_by_cpu_limit" in tape.told:
        return [max(10.0, _stretch_by_limit(tape)) if tape.is_local else 1.0]
    return [*_stretch(tape), *_by_share_left(tape)]


def _by_share_left(tape: Tape) -> list[float]:
    return [1 / max(0.1, 1 - _others(tape) / tape.hosts[-1]["cpu_count"])] if tape.hosts else []


def _cores(tape: Tape, since: float, until: float) -> float:
    """Cores that the tasks of a query take between two instants: those of a second of its batches, times the share of
    the time that its batches take."""
    own = [batch for batch in tape.run if since <= batch.end <= until and tape.stages(batch)]
    ran = sum(total_of(tape.stages(batch), "run_seconds") for batch in own)
    spans = [(batch.start, batch.end) for batch in tape.run if batch.end >= since and batch.start <= until]
    if tape.running is not None:
        spans.append((max(tape.running["since"], tape.newest.end if tape.all else 0.0), until))
    busy = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in spans)
    return ran / sum(batch.seconds for batch in own) * busy / (until - since)


def _cores_now(tape: Tape, of: Tape) -> list[float]:
    """Of a query while the newest batches of another one, or of its own, ran."""
    return [
        _cores(of, batches[0].start, tape.now if tape.running_seconds else batches[-1].end) for batches in _judged(tape)
    ]


# -- the observer


def _observed(tape: Tape, seconds: float = MINUTE) -> Json:
    """The oldest look at the observer within some seconds before the newest."""
    return next(look for look in tape.observers if look["at"] >= tape.observers[-1]["at"] - seconds)


def _collectors(tape: Tape) -> float:
    errors, before, lately = (
        each["collector_errors"] for each in (tape.observers[-1], _observed(tape), _observed(tape, 20))
    )
    grown = {name: count - before.get(name, 0) for name, count in errors.items()}
    return float(sum(count for name, count in grown.items() if count >= 3 and errors[name] > lately.get(name, 0)))


def _processes(tape: Tape) -> list[tuple[Json, float]]:
    """What was seen of the blamed processes in ten minutes, and when."""
    role = "python_workers" if "workers" in tape.name else "driver_python"
    return [(each, host["at"]) for host in tape.hosts[-60:] for each in host["processes"] if each["role"] == role]


def _memory_growth(tape: Tape) -> float:
    """Bytes a second by which the least that they hold has grown from the oldest fifth of that time to the newest."""
    seen = _processes(tape)
    held = [(each["memory_bytes"] / each["processes"], at) for each, at in seen]
    (oldest, begin), (newest, end) = min(held[: len(held) // 5]), min(held[4 * len(held) // 5 :])
    return float((newest - oldest) / (end - begin) * seen[-1][0]["processes"])


FORMULAS: Mapping[str, Formula] = {
    # what a source still has
    "offsets_lost": _lost,
    "offsets_unread": _unread,
    "skipped_batches": _skipped,
    "batch_rows": lambda tape: float(_leaping(tape).rows),
    "batch_offsets": lambda tape: (_leaping(tape) if "batch_rows" in tape.told else tape.newest).offsets_read,
    "ledgerops_source_reachable": lambda tape: 0.0 if tape.asked[-1].get("error") else None,
    "seconds_without_answer": lambda tape: tape.now - float(tape.asked[-1]["unreachable_since"]),
    "seconds_without_arrival": _silent,
    "longest_pause_seconds": lambda tape: max(later - earlier for earlier, later in pairwise(_arrivals(tape))),
    HEADROOM: _headroom,
    "headroom_share": lambda tape: tape.told[HEADROOM] / _keeps(tape),
    "headroom_lost_each_second": _headroom_lost,
    f"retention-risk: {LAG}": lambda tape: tape.lag(_place(tape)),
    # what single causes tell beside their parts
    "broker_answer_seconds": lambda tape: median(_answer_seconds(tape)[-3:]),
    "usual_broker_answer_seconds": lambda tape: median(_answer_seconds(tape)[:-15]),
    "ledgerops_hot_key_share": _hot_shares,
    "partition_rows": lambda tape: float(_partitions(tape)[_place(tape)]),
    "partition_share": lambda tape: _partitions(tape)[_place(tape)] / _partitions(tape).total(),
    "tasks": _tiny_tasks,
    "spilled_bytes": lambda tape: median(total_of(tape.stages(b), "spill_bytes") for b in tape.named()),
    "persisted_share_of_memory": lambda tape: (
        total_of(tape.executors, "memory_used_bytes") / total_of(tape.executors, "memory_max_bytes")
    ),
    "state_share_of_heap": lambda tape: total_of(tape.newest.operators, "memoryUsedBytes") / tape.heap,
    # cores
    "neighbour_cores": lambda tape: _cores_now(tape, tape.beside(tape.name)),
    "usual_neighbour_cores": lambda tape: _cores(tape.beside(tape.name), _usual(tape)[0].start, _usual(tape)[-1].end),
    "own_cores": lambda tape: _cores_now(tape, tape),
    "slots": lambda tape: float(tape.cores),
    "slowdown_at_equal_rows": lambda tape: [_slowdown(batches, _usual(tape)) for batches in _judged(tape)],
    "stretch_by_other_queries": _stretch,
    "stretch_by_other_processes": _stretch,
    "stretch_by_cpu_limit": _stretch_by_limit,
    "stretch_of_tasks": _stretch_of_tasks,
    "cores_allowed": lambda tape: float(tape.hosts[-1]["cpu_limit_cores"]),
    "cores_held_back": _held_back,
    "own_cores_used": lambda tape: sum(tape.cores_by_role.values()),
    "cpu_busy_ratio": _busy,
    "cores_of_other_processes": _others,
    # memory
    "ledgerops_process_memory_bytes": lambda tape: float(_processes(tape)[-1][0]["memory_bytes"]),
    "memory_growth": _memory_growth,
    "available_bytes": lambda tape: float(tape.hosts[-1]["memory_available_bytes"]),
    "seconds_until_full": lambda tape: tape.told["available_bytes"] / tape.told["memory_growth"],
    # the observer
    "collector_errors": _collectors,
}
