"""What was tried, kept as JSON, and the tables that are made of it."""

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ledgerops.metrics import METRICS
from load.bench.lines import markdown
from load.compatibility.probe import FAULTS

KEPT = Path(__file__).with_name("results.json")
SPARKS = ("4.3.0", "4.2.0", "4.1.4", "4.0.5", "3.5.7")
SESSIONS = ("classic", "connect")
PYTHONS = ("3.11", "3.12", "3.13")
REFERENCE = ("4.2.0", "classic", "3.11")  # what the ledger and the tests of this project run on
MARK = "tried"  # of the page, around what is made


Key = tuple[str, str, str]  # Spark, session, Python


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


def keep(tried: Tried, file: Path = KEPT) -> None:
    """Adds one environment to what is kept, in place of what was known of it; other processes may do so as well."""
    with file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = {**(read(file) if file.stat().st_size else {}), tried.key: tried}
        lines = ",\n".join(json.dumps(asdict(known[key])) for key in sorted(known))  # one environment each
        file.write_text(f"[\n{lines}\n]\n", "utf-8")


def missing(tried: Tried, reference: Tried) -> list[str]:
    """The families that the reference had and this has not, in the order of the reference of metrics."""
    lacking = set(reference.families) - set(tried.families)
    return [each.name for each in METRICS if each.name in lacking]


def tables(found: Mapping[Key, Tried]) -> str:
    """The part of docs/compatibility.md that is made: a table, and how many combinations were tried."""
    reference = found.get(REFERENCE, Tried(*REFERENCE))
    head = ["Spark", "session", "Python", "rules that named their query", "metrics that are absent"]
    rows = ([spark, *cells] for spark in SPARKS for cells in _alike(found, reference, spark))
    return f"{markdown(head, rows)}\n{_counted(list(found.values()))}"


def _alike(found: Mapping[Key, Tried], reference: Tried, spark: str) -> Iterator[Sequence[str]]:
    """The rows of a Spark version. Pythons, and then sessions, of which the same is to be said share a row."""
    sessions: dict[Sequence[str], list[str]] = {}
    for session in SESSIONS:
        pythons: dict[Sequence[str], list[str]] = {}
        for python in PYTHONS:
            pythons.setdefault(_cells(found.get((spark, session, python)), reference), []).append(python)
        for cells, which in pythons.items():
            sessions.setdefault((", ".join(which), *cells), []).append(session)
    for cells, which in sessions.items():
        yield [", ".join(which), *cells]


def _cells(tried: Tried | None, reference: Tried) -> tuple[str, str]:
    """The rules that named their query, and the metrics that were absent."""
    if tried is None:
        return "not tried", "–"
    if tried.reason:
        return "no session can be watched", "–"
    unnamed = ", ".join(f"`{rule}`" for rule in FAULTS if rule not in tried.rules)
    absent = ", ".join(f"`{name}`" for name in missing(tried, reference))
    return f"all but {unnamed}" if unnamed else f"all {len(FAULTS)}", absent or "none"


def _counted(tried: Sequence[Tried]) -> str:
    """How many of all combinations were tried, and when."""
    every = len(SPARKS) * len(SESSIONS) * len(PYTHONS)
    days = sorted({each.at for each in tried} - {""})
    when = f" ({' to '.join(dict.fromkeys((days[0], days[-1])))})" if days else ""
    return f"{len(tried)} of {every} combinations were tried{when}."


def unmeasured(spark: str) -> frozenset[str]:
    """The rules that cannot name their query on this Spark: Spark 3 does not measure the time in Python workers."""
    return frozenset({"python-bound"} if spark.startswith("3.") else ())
