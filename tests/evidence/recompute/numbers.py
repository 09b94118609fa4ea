"""What formulas are made of: medians, sums, and how a number of a query changed between two of its batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from tests.evidence.tape import Batch, Json, Tape

Given = float | None | Iterable[float]
Formula = Callable[[Tape], Given]
OfBatch = Callable[[Batch], float]


def total_of(rows: Iterable[Json], key: str) -> float:
    return float(sum(row[key] for row in rows))


def median_of(values: Iterable[float]) -> float:
    return float(median(values))


def backlog(batch: Batch) -> float:
    ends = batch.offsets("endOffset")
    return float(sum(max(0, head - ends.get(place, head)) for place, head in batch.heads.items()))


def head(batch: Batch) -> float:
    return float(sum(batch.heads.values()))


def offsets_read(batch: Batch) -> float:
    return float(sum(batch.read().values()))


def change(batches: Sequence[Batch], of: OfBatch) -> Iterator[float]:
    """By how much the number of the newest batch is above that of each earlier one, for each second between them."""
    newest = batches[-1]
    return ((of(newest) - of(batch)) / (newest.end - batch.end) for batch in batches[:-1])


def of_each(found: Callable[[Tape], Iterable[Mapping[str, float]]], name: str) -> Formula:
    """One of the numbers that are found together, for each choice of batches."""
    return lambda tape: (numbers[name] for numbers in found(tape))


def cores_by_role(tape: Tape) -> dict[str, float]:
    """Cores that the application's own processes use."""
    looks = looks_at_host(tape)
    if len(looks) < 2 or looks[-1]["at"] < tape.now - 25:
        return {}
    first, last = ({each["role"]: each["cpu_seconds"] for each in look["processes"]} for look in (looks[0], looks[-1]))
    span = looks[-1]["at"] - looks[0]["at"]
    return {role: max(0.0, seconds - first.get(role, 0.0)) / span for role, seconds in last.items()}


def looks_at_host(tape: Tape) -> list[Json]:
    """From the newest one that is four seconds older than the last."""
    known = [host for host in tape.hosts if host.get("cpu_busy_ratio") is not None]
    older = [place for place, host in enumerate(known) if host["at"] <= known[-1]["at"] - 4.0]
    return known[older[-1] :] if older else []
