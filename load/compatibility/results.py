"""What was tried, kept as JSON, and the tables that are made of it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path

from ledgerops.metrics import event_time, identity, latency, pressure, resources, skew, state, throughput, verdict
from load.compatibility.probe import FAULTS

KEPT = Path(__file__).with_name("results.json")
SPARKS = ("4.3.0", "4.2.0", "4.1.4", "4.0.5", "3.5.7")
SESSIONS = ("classic", "connect")
PYTHONS = ("3.11", "3.12", "3.13")
REFERENCE = ("4.2.0", "classic", "3.11")  # what the ledger and the tests of this project run on
MIN_BUSY_SHARE = 0.5  # of `waiting`, from which a rule may be missing because no core was free
UNMEASURED = {"python-bound": "Spark 3 does not measure the time in Python workers"}
BEGIN_MARK, END_MARK = "<!-- tried: begin -->", "<!-- tried: end -->"


Key = tuple[str, str, str]  # Spark, session, Python
GROUPS = {
    "identity": identity.METRICS,
    "throughput": throughput.METRICS,
    "latency": latency.METRICS,
    "event time": event_time.METRICS,
    "pressure": pressure.METRICS,
    "state": state.METRICS,
    "skew": skew.METRICS,
    "resources": resources.METRICS,
    "verdict": verdict.METRICS,
}


@dataclass(frozen=True)
class Tried:
    """One environment. `reason` says why it was not watched; empty when it was."""

    spark: str
    session: str
    python: str
    families: Sequence[str] = ()
    rules: Sequence[str] = ()
    reason: str = ""
    at: str = ""
    waiting: float = 0.0  # share of the time in which a thread of the machine waited for a core
    # what was otherwise than elsewhere: packages that were left out, a query that did not start
    notes: Sequence[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Spark, session and Python, under which it is kept."""
        return self.spark, self.session, self.python


def read(file: Path = KEPT) -> dict[Key, Tried]:
    """What is kept, by Spark, session and Python; empty without the file."""
    if not file.exists():
        return {}
    return {(each := Tried(**kept)).key: each for kept in json.loads(file.read_text("utf-8"))}


def write(found: Mapping[Key, Tried], file: Path = KEPT) -> None:
    """Replaces what is kept."""
    lines = [asdict(found[key]) for key in sorted(found)]
    file.write_text(json.dumps(lines, indent=1) + "\n", "utf-8")


def keep(tried: Tried, file: Path = KEPT) -> None:
    """Adds one environment to what is kept, in place of what was known of it; other processes may do so as well."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = read(file) if file.stat().st_size else {}
        write({**known, tried.key: tried}, file)


def missing(tried: Tried, reference: Tried) -> dict[str, list[str]]:
    """By group, the families that the reference had and this has not; groups that are whole are left out."""
    lacking = set(reference.families) - set(tried.families)
    found = {group: [each.name for each in metrics if each.name in lacking] for group, metrics in GROUPS.items()}
    return {group: names for group, names in found.items() if names}


def tables(found: Mapping[Key, Tried]) -> str:
    """The part of docs/compatibility.md that is made: a table, and what is missing where."""
    reference = found.get(REFERENCE, Tried(*REFERENCE))
    head = ["Spark", "session", *(f"Python {python}" for python in PYTHONS)]
    lines = [_row(head), _row(["---"] * len(head))]
    for spark in SPARKS:
        for session in SESSIONS:
            cells = [_cell(found.get((spark, session, python)), reference) for python in PYTHONS]
            lines.append(_row([spark, session, *cells]))
    notes = list(_notes(found, reference))
    return "\n".join([*lines, "", *([*notes, ""] if notes else []), _counted(list(found.values()))])


def _counted(tried: Sequence[Tried]) -> str:
    """How many of all combinations were tried, when, and on how busy a machine."""
    every = len(SPARKS) * len(SESSIONS) * len(PYTHONS)
    days = sorted({each.at for each in tried} - {""})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    busy = sum(each.waiting >= MIN_BUSY_SHARE for each in tried)
    beside = f" In {busy} of them the machine was busy: threads waited for a core half of the time or more."
    return f"Tried: {len(tried)} of {every} combinations{when}.{beside if busy else ''}"


def _cell(tried: Tried | None, reference: Tried) -> str:
    if tried is None:
        return "not tried"
    if tried.reason:
        return "no"
    groups = len(GROUPS) - len(missing(tried, reference))
    return f"{groups} of {len(GROUPS)} groups, {len(tried.rules)} of {len(FAULTS)} rules"


def _notes(found: Mapping[Key, Tried], reference: Tried) -> Iterator[str]:
    """One line for all combinations of a Spark version of which the same is to be said."""
    for spark in SPARKS:
        alike: dict[str, dict[str, list[str]]] = {}  # by what is said: the Pythons of each session
        for session, python in product(SESSIONS, PYTHONS):
            tried = found.get((spark, session, python))
            if tried is not None and (said := "; ".join(_said(tried, reference))):
                alike.setdefault(said, {}).setdefault(session, []).append(python)
        for said, sessions in alike.items():
            which = "; ".join(f"{session}, Python {', '.join(pythons)}" for session, pythons in sessions.items())
            yield f"- Spark {spark}, {which}: {said}."


def _said(tried: Tried, reference: Tried) -> Iterator[str]:
    if tried.reason:
        yield tried.reason.rstrip(".")
        return
    for group, names in missing(tried, reference).items():
        yield f"{group} without {', '.join(f'`{name}`' for name in names)}"
    yield from tried.notes
    known = unmeasured(tried.spark)
    unnamed = [rule for rule in FAULTS if rule not in tried.rules]
    yield from (f"not named: `{rule}`, because {known[rule]}" for rule in unnamed if rule in known)
    unnamed = [rule for rule in unnamed if rule not in known]
    if unnamed:
        busy = ""
        if tried.waiting >= MIN_BUSY_SHARE:
            busy = f" (the machine was busy: threads waited for a core {tried.waiting:.0%} of the time)"
        yield f"not named: {', '.join(f'`{rule}`' for rule in unnamed)}{busy}"


def unmeasured(spark: str) -> Mapping[str, str]:
    """The rules that cannot name their query on this Spark, and why."""
    return UNMEASURED if spark.startswith("3.") else {}


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def replace_part(page: str, text: str) -> str:
    """The page with the text between its marks. Raises ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN_MARK)
    _, end, after = rest.partition(END_MARK)
    if not (begin and end):
        raise ValueError(f"no {BEGIN_MARK} and {END_MARK} in the page")
    return f"{before}{begin}\n{text}\n{end}{after}"
