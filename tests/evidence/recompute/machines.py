"""The machine's cores and who takes them, and the observer itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tests.evidence.recompute.overrun import judged
from tests.evidence.recompute.shared import (
    Formula,
    cores_by_role,
    evidence,
    looks_at_host,
    median_of,
    nearest,
    plain,
    total_of,
)
from tests.evidence.tape import Batch, Json, Tape

MINUTE = 60.0
FIXED = ("queryPlanning", "walCommit", "commitOffsets")


def _busy(tape: Tape) -> float:
    looks = looks_at_host(tape)
    told = sum(later["cpu_busy_ratio"] * (later["at"] - earlier["at"]) for earlier, later in pairwise(looks))
    return float(told / (looks[-1]["at"] - looks[0]["at"]))


def _others(tape: Tape) -> float:
    """Cores that are busy, less those that the application's own processes use."""
    return max(0.0, _busy(tape) * tape.hosts[-1]["cpu_count"] - sum(cores_by_role(tape).values()))


def _slower(tape: Tape) -> float | None:
    """How much longer the newest batches take for as many rows."""
    newest = [batch for batch in judged(tape) if batch.rows]
    if not newest or len(tape.usual) < 5:
        return None
    rows, usual_rows = (median_of(batch.rows for batch in some) for some in (newest, tape.usual))
    seconds, usual = (median_of(batch.seconds for batch in some) for some in (newest, tape.usual))
    return seconds / (usual * max(1.0, rows / usual_rows))


def _stretch(tape: Tape, finding: Json) -> float | None:
    """By what the whole batch and the phases of fixed length lost; one other query may take what the batch lost, or
    only hold the slots."""

    def fixed(batches: Sequence[Batch]) -> float:
        return median_of(sum(batch.phase(name) for name in FIXED) for batch in batches)

    slower, now = _slower(tape), fixed(judged(tape))
    by_all = max(1.0, now / 0.4 if slower is None else min(slower, now / max(0.05, fixed(tape.usual))))
    if "stretch_by_other_processes" in evidence(finding):
        return by_all
    return nearest([by_all, slower or 1.0, 1.0], finding, "stretch_by_other_queries")


def _stretch_of_tasks(tape: Tape, finding: Json) -> float | None:
    stretch = _stretch(tape, finding)
    if stretch is None or "stretch_by_other_queries" in evidence(finding) or _slower(tape) is not None:
        return stretch
    return max(stretch, 1 / max(0.1, 1 - _others(tape) / tape.hosts[-1]["cpu_count"]))


def _cores(tape: Tape, since: float, until: float, running: bool) -> float | None:
    """Cores that the tasks of a query take between two instants: those of a second of its batches, times the share of
    the time that its batches take."""
    ran = spent = 0.0
    for batch in sorted(tape.run, key=lambda each: -each.start):
        stages = tape.stages(batch)
        if batch.end <= until and stages and (batch.end >= since or not spent):
            ran, spent = ran + total_of(stages, "run_seconds"), spent + batch.seconds
    spans = [(batch.start, batch.end) for batch in tape.run if batch.end >= since and batch.start <= until]
    if running and tape.running is not None:
        spans.append((max(tape.running[1]["since"], tape.all[-1].end if tape.all else 0.0), until))
    if not spent or until <= since:
        return None
    busy = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in spans)
    return ran / spent * min(1.0, busy / (until - since))


def _cores_now(tape: Tape, of: Tape) -> float | None:
    """Of a query while the newest batches of another one, or of its own, ran."""
    newest = judged(tape)
    return _cores(of, newest[0].start, tape.now if tape.running_seconds else newest[-1].end, running=True)


def _neighbour_before(tape: Tape, finding: Json) -> float | None:
    other, until = tape.beside(finding["component"]["name"]), tape.usual[-1].end
    return _cores(other, max(tape.usual[0].start, until - MINUTE), until, running=False)


def _task_cpu_share(tape: Tape, finding: Json) -> float | None:
    stages = [found for batch in judged(tape) if (found := tape.stages(batch))]
    return median_of(total_of(each, "cpu_seconds") / total_of(each, "run_seconds") for each in stages)


def _late_queries(tape: Tape, finding: Json) -> float | None:
    """The other queries that outlast their interval, and whose tasks use the cores."""
    names = {line.get("query") for line in tape.lines} - {None, tape.query}
    found = 0
    for other in map(tape.beside, names):
        stages = next(reversed(other.tasks.values()))["stages"] if other.tasks else []
        computes = total_of(stages, "cpu_seconds") >= 0.3 * total_of(stages, "run_seconds")
        fresh = other.all and other.all[-1].end >= tape.now - MINUTE and not other.ends
        found += bool(fresh and computes and 0 < other.interval < other.all[-1].seconds)
    return float(found)


def _observed(tape: Tape) -> tuple[Json, Json]:
    """The oldest look at the observer within a minute before the newest, and the newest."""
    newest = tape.observers[-1]
    return next(look for look in tape.observers if look["at"] >= newest["at"] - MINUTE), newest


def _grown(key: str) -> Formula:
    return lambda tape, finding: float(_observed(tape)[1][key] - _observed(tape)[0][key])


def _collectors(tape: Tape) -> float:
    first, last = _observed(tape)
    fresh = next(look for look in tape.observers if look["at"] >= last["at"] - 20)["collector_errors"]
    grown = {name: count - first["collector_errors"].get(name, 0) for name, count in last["collector_errors"].items()}
    goes_on = {name for name, count in last["collector_errors"].items() if count > fresh.get(name, 0)}
    return float(sum(count for name, count in grown.items() if count >= 3 and name in goes_on))


def _worker(tape: Tape) -> float:
    first, last = _observed(tape)
    return float((last["worker_seconds"] - first["worker_seconds"]) / (last["at"] - first["at"]))


def _silent(tape: Tape) -> float | None:
    seen = [tape.observers[-1]["at"], *tape.idles[-1:], *(batch.end for batch in tape.all[-1:])]
    return float(tape.now - max(seen))


FORMULAS: Mapping[str, Formula] = {
    "neighbour_cores": lambda tape, finding: _cores_now(tape, tape.beside(finding["component"]["name"])),
    "usual_neighbour_cores": _neighbour_before,
    "own_cores": plain(lambda tape: _cores_now(tape, tape)),
    "slots": plain(lambda tape: float(tape.cores)),
    "late_queries": _late_queries,
    "slowdown_at_equal_rows": plain(_slower),
    "task_cpu_share": _task_cpu_share,
    "stretch_by_other_queries": _stretch,
    "stretch_by_other_processes": _stretch,
    "stretch_of_tasks": _stretch_of_tasks,
    "cpu_busy_ratio": plain(_busy),
    "cores_of_other_processes": plain(_others),
    "cpu_pressure_ratio": plain(lambda tape: min(float(host["cpu_pressure_ratio"]) for host in tape.hosts[-2:])),
    "runnable_threads": plain(lambda tape: min(float(host["runnable_threads"]) for host in tape.hosts[-2:])),
    "seconds_since_last_look": plain(_silent),
    "collector_errors": plain(_collectors),
    "dropped_events": _grown("dropped"),
    "queue_share": plain(lambda tape: float(_observed(tape)[1]["queue_size"] / _observed(tape)[1]["queue_limit"])),
    "worker_busy_ratio": plain(_worker),
}
