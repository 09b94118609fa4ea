"""The machine's cores and who takes them, and the observer itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Any

from tests.evidence.recompute.shared import Formula, plain, total_of
from tests.evidence.tape import Json, Tape

SPAN = 4.0  # seconds that lie between two looks at least
MINUTE = 60.0


def _spanned(tape: Tape) -> list[Json]:
    """The looks at the host from the newest one that is four seconds older than the last."""
    last = tape.hosts[-1]["at"]
    older = [place for place, host in enumerate(tape.hosts) if host["at"] <= last - SPAN]
    return tape.hosts[older[-1] :] if older else []


def _busy(tape: Tape) -> float | None:
    looks = _spanned(tape)
    if len(looks) < 2:
        return None
    spans = [later["at"] - earlier["at"] for earlier, later in pairwise(looks)]
    told = sum(look["cpu_busy_ratio"] * span for look, span in zip(looks[1:], spans, strict=True))
    return float(told / sum(spans))


def _by_role(look: Json) -> Mapping[str, float]:
    return {process["role"]: process["cpu_seconds"] for process in look["processes"]}


ROLES = {"the driver's Python": "driver_python", "the driver's JVM": "driver_jvm", "Python workers": "python_workers"}


def _heaviest(tape: Tape, finding: Json) -> float | None:
    looks = _spanned(tape)
    busy = _busy(tape)
    if len(looks) < 2 or busy is None:
        return None
    span = looks[-1]["at"] - looks[0]["at"]
    first, last = _by_role(looks[0]), _by_role(looks[-1])
    used = {role: max(0.0, (last[role] - first.get(role, 0.0)) / span) for role in last}
    used["others"] = max(0.0, busy * looks[-1]["cpu_count"] - sum(used.values()))
    return float(used[ROLES.get(finding["component"]["detail"], "others")])


def _planning(tape: Tape) -> float | None:
    def planned(batches: Any) -> float:
        return float(median(batch.phase("queryPlanning") for batch in batches))

    return planned(tape.steady[-3:]) / max(0.05, planned(tape.usual)) if tape.usual else None


def _observed(tape: Tape) -> tuple[Json, Json] | None:
    """The newest look at the observer, and the oldest within a minute before it."""
    if not tape.observers:
        return None
    newest = tape.observers[-1]
    within = [look for look in tape.observers if look["at"] >= newest["at"] - MINUTE]
    return within[0], newest


def _grown(key: str) -> Formula:
    def formula(tape: Tape, finding: Json) -> float | None:
        looks = _observed(tape)
        return float(looks[1][key] - looks[0][key]) if looks else None

    return formula


def _collectors(tape: Tape) -> float | None:
    looks = _observed(tape)
    if looks is None:
        return None
    first, last = looks
    fresh = [look for look in tape.observers if look["at"] >= last["at"] - 20]
    total = 0.0
    for name, count in last["collector_errors"].items():
        grown = count - first["collector_errors"].get(name, 0)
        if grown >= 3 and count > fresh[0]["collector_errors"].get(name, 0):
            total += grown
    return total


def _worker(tape: Tape) -> float | None:
    looks = _observed(tape)
    if looks is None or looks[1]["at"] <= looks[0]["at"]:
        return None
    return float((looks[1]["worker_seconds"] - looks[0]["worker_seconds"]) / (looks[1]["at"] - looks[0]["at"]))


def _queue(tape: Tape) -> float | None:
    looks = _observed(tape)
    return float(looks[1]["queue_size"] / looks[1]["queue_limit"]) if looks else None


def _silent(tape: Tape) -> float | None:
    seen = [tape.observers[-1]["at"], *tape.idles[-1:], *(batch.end for batch in tape.all[-1:])]
    return float(tape.now - max(seen))


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


def _neighbour(tape: Tape, finding: Json) -> float | None:
    other = tape.beside(finding["component"]["name"])
    return _cores(other, tape.steady[-3].start, tape.now, running=True)


def _neighbour_before(tape: Tape, finding: Json) -> float | None:
    other, until = tape.beside(finding["component"]["name"]), tape.usual[-1].end
    return _cores(other, max(tape.usual[0].start, until - MINUTE), until, running=False)


FORMULAS: Mapping[str, Formula] = {
    "neighbour_cores": _neighbour,
    "usual_neighbour_cores": _neighbour_before,
    "own_cores": plain(lambda tape: _cores(tape, tape.steady[-3].start, tape.now, running=True)),
    "seconds_since_last_look": plain(_silent),
    "cpu_busy_ratio": plain(_busy),
    "cores_of_the_heaviest": _heaviest,
    "planning_slowdown": plain(_planning),
    "slots": plain(lambda tape: float(tape.cores)),
    "collector_errors": plain(_collectors),
    "dropped_events": _grown("dropped"),
    "queue_share": plain(_queue),
    "worker_busy_ratio": plain(_worker),
}
