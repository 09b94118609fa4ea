"""What the formulas have in common: medians over batches with tasks, operators by name, backlogs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from tests.evidence.tape import Batch, Json, Tape, running_tasks

Formula = Callable[[Tape, Json], float | None]


def newest_of(tape: Tape) -> Batch:
    return tape.all[-1]


def backlog(batch: Batch) -> int:
    return sum(max(0, head - batch.ended_at_offsets.get(place, head)) for place, head in batch.heads.items())


def head(batch: Batch) -> int:
    return sum(batch.heads.values())


def operator_of(tape: Tape, finding: Json, batch: Batch) -> Json:
    """The operator that the finding names, of a batch; `-2` is the second of its kind."""
    name, _, number = str(finding["component"]["name"]).partition("-")
    same = [each for each in batch.operators if each["operatorName"] == name]
    return same[int(number or 1) - 1] if same else (batch.operators or [{}])[0]


def parallel(tape: Tape, operator: Json) -> float:
    partitions = operator.get("numShufflePartitions") or tape.cores or 1
    return float(max(1, min(partitions, tape.cores or partitions)))


def total_of(rows: Iterable[Json], key: str) -> float:
    return float(sum(row[key] for row in rows))


def median_of(values: Iterable[float]) -> float:
    return float(median(values))


def evidence(finding: Json) -> Mapping[str, float]:
    return {each["name"]: each["value"] for each in finding["evidence"]}


def offsets_read(batch: Batch) -> float:
    return float(sum(end - batch.began_at_offsets.get(place, end) for place, end in batch.ended_at_offsets.items()))


def looks_at_host(tape: Tape) -> list[Json]:
    """From the newest one that is four seconds older than the last."""
    known = [host for host in tape.hosts if host.get("cpu_busy_ratio") is not None]
    older = [place for place, host in enumerate(known) if host["at"] <= known[-1]["at"] - 4.0]
    return known[older[-1] :] if older else []


def cores_by_role(tape: Tape) -> Mapping[str, float]:
    """Cores that the application's own processes use."""
    looks = looks_at_host(tape)
    if len(looks) < 2 or looks[-1]["at"] < tape.now - 25:
        return {}
    first, last = ({each["role"]: each["cpu_seconds"] for each in look["processes"]} for look in (looks[0], looks[-1]))
    span = looks[-1]["at"] - looks[0]["at"]
    return {role: max(0.0, seconds - first.get(role, 0.0)) / span for role, seconds in last.items()}


def collecting(tape: Tape) -> float | None:
    """Of the executors' run time of the last half minute the share in which they collected garbage."""
    looks = [host for host in tape.hosts if running_tasks(host)]
    looks = [host for host in looks if host["at"] >= looks[-1]["at"] - 30]
    if len(looks) < 2 or looks[-1]["at"] < tape.now - 30:
        return None
    gc, run = (
        total_of(running_tasks(looks[-1]), key) - total_of(running_tasks(looks[0]), key)
        for key in ("gc_seconds", "run_seconds")
    )
    return gc / run if run > 0 and gc >= 0 else None


def falling_delay(tape: Tape, finding: Json) -> float | None:
    """By the batch that is done, or by the one at work: whichever the finding tells of."""
    run = tape.run[-2:]
    asked = [batch.start + batch.phase("latestOffset") for batch in run]
    found = [max(tape.now, run[-1].end) - asked[0]] if len(run) > 1 else []
    if tape.running is not None:
        found.append(tape.now - asked[-1])
    return nearest(found, finding, "result_delay_seconds")


def nearest(found: Sequence[float], finding: Json, name: str) -> float | None:
    """Of what the runbook allows, what the finding is nearest to."""
    told = next((each["value"] for each in finding["evidence"] if each["name"] == name), None)
    return min(found, key=lambda each: abs(each - told)) if found and told is not None else None


def file_waits(tape: Tape) -> list[tuple[int, float]]:
    """Of the run's batches whose files are known, oldest first: how many there were, and how long the newest waited.
    Of several sources the one in which it waited longest at last."""
    known = [(batch, tape.files[batch.run, batch.id]) for batch in tape.steady if (batch.run, batch.id) in tape.files]
    found = [
        [(sources[name]["files"], batch.start - sources[name]["newest"]) for batch, sources in known if name in sources]
        for name in (known[-1][1] if known else ())
    ]
    return max(found, key=lambda each: each[-1][1], default=[])


def file_wait(tape: Tape, finding: Json) -> float | None:
    waits = file_waits(tape)
    return waits[-1][1] if waits else None


def file_wait_growth(tape: Tape, finding: Json) -> float | None:
    """Over the 8, 16 or 32 batches that the finding tells of."""
    waits = [wait for _, wait in file_waits(tape)]
    grown = [waits[-1] - waits[-count] for count in (8, 16, 32) if len(waits) >= count]
    return nearest(grown, finding, "file_age_growth_seconds")


def commit_waits(tape: Tape, finding: Json) -> list[float]:
    """After each settled batch, how long the oldest unread commit of a table had waited; of the table that the finding
    names, or of the one in which it waited longest at last."""
    samples = [each for each in tape.tables if each["run_id"] == tape.run_id]
    batches = tape.steady
    found: dict[str, list[float]] = {}
    for place, batch in enumerate(batches):
        until = batches[place + 1].end if place + 1 < len(batches) else tape.now
        first = next((each for each in samples if each["at"] >= batch.end), None)
        if first is None or first["at"] > until:
            continue
        for name, read in first["sources"].items():
            if read["versions"] == 0 or read["since"] is not None:
                waited = max(0.0, first["at"] - read["since"]) if read["versions"] else 0.0
                found.setdefault(name, []).append(waited)
    named = found.get(str(finding["component"]["name"]))
    return named or max(found.values(), key=lambda each: each[-1], default=[])


def commit_wait_growth(tape: Tape, finding: Json) -> float | None:
    """Over the 8, 16 or 32 batches that the finding tells of."""
    waits = commit_waits(tape, finding)
    grown = [waits[-1] - waits[-count] for count in (8, 16, 32) if len(waits) >= count]
    return nearest(grown, finding, "commit_wait_growth_seconds")


def heap(tape: Tape) -> float:
    return float(sum(each["memory_max_bytes"] / 0.6 + 300 * 2**20 for each in tape.executors))


def plain(value: Callable[[Tape], float | None]) -> Formula:
    return lambda tape, finding: value(tape)
