"""What the formulas have in common: medians over batches with tasks, operators by name, backlogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.evidence.tape import Batch, Json, Tape, middle

OVER = 1.1  # of the trigger interval
REMEMBERED = 200  # batches

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


def phase(name: str) -> Formula:
    def of(tape: Tape, finding: Json) -> float | None:
        return middle(batch.phase(name) for batch in tape.late_with_tasks)

    return of


def over_stages(of: Callable[[Tape, Batch, Sequence[Json]], float | None]) -> Formula:
    """The median over the late batches with tasks."""

    def formula(tape: Tape, finding: Json) -> float | None:
        told = [of(tape, batch, tape.stages(batch)) for batch in tape.late_with_tasks]
        return middle(each for each in told if each is not None)

    return formula


def total_of(stages: Sequence[Json], key: str) -> float:
    return float(sum(stage[key] for stage in stages))


def python(tape: Tape, batch: Batch) -> float:
    return float(tape.tasks[(batch.run, batch.id)].get("python_seconds") or 0.0)


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


def heap(tape: Tape) -> float:
    return float(sum(each["memory_max_bytes"] / 0.6 + 300 * 2**20 for each in tape.executors))


def plain(value: Callable[[Tape], float | None]) -> Formula:
    return lambda tape, finding: value(tape)


def slots(tape: Tape, tasks: int) -> float:
    """How many of so many tasks run at once."""
    return float(max(1, min(tasks, tape.cores or tasks)))
