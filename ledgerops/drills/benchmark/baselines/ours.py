"""ledgerops on the same cases: its answers while they ran, and a replay of their recordings and event logs.

Each replay passes through a filter of observations, so that what is taken away is taken away in one place: the kinds
of records, fields of them, or the time before the fault.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ledgerops.analysis.inputs import open_source
from ledgerops.drills.benchmark.baselines.data import Answer, BenchmarkCase
from ledgerops.drills.scoring.score import GRID_SECONDS
from ledgerops.errors import cannot_read
from ledgerops.model.finding import SEVERITIES, Verdict
from ledgerops.model.records import Observation, ObservationKind
from ledgerops.runtime.replay import verdicts

Filter = Callable[[BenchmarkCase, Observation], Observation | None]
Rows = Mapping[str, Any]


def everything(case: BenchmarkCase, seen: Observation) -> Observation | None:
    """Nothing is taken away."""
    return seen


def without(*kinds: ObservationKind) -> Filter:
    """A filter that takes the records of some kinds away."""
    return lambda case, seen: None if seen.kind in kinds else seen


def without_past(case: BenchmarkCase, seen: Observation) -> Observation | None:
    """As for somebody who attaches when the fault begins: of the time before only what does not come again."""
    if case.onset is not None and seen.at < case.onset and seen.kind not in ("started", "plan", "driver_code"):
        return None
    return seen


def without_trigger(case: BenchmarkCase, seen: Observation) -> Observation | None:
    """The plan without its trigger, as an event log has it."""
    if seen.kind != "plan":
        return seen
    return replace(seen, data={**seen.data, "trigger": None, "trigger_interval": None})


def spark_only(case: BenchmarkCase, seen: Observation) -> Observation | None:
    """What is left of the records without what Spark does not export itself.

    Kept: start and end of a query, without the exception; of each progress its times, rows, state and watermark,
    without offsets and the metrics of its sources; the totals of the executors. Spark's own metrics hold even less of a
    batch: one latency, and no phases.
    """
    data: Rows = seen.data
    match seen.kind:
        case "started" | "idle":
            return seen
        case "terminated":
            return replace(seen, data={**data, "exception": None, "errorClassOnException": None})
        case "progress":
            sources = [
                {key: value for key, value in source.items() if not key.endswith("Offset") and key != "metrics"}
                for source in data.get("sources", ())
            ]
            return replace(seen, data={**data, "sources": sources, "observedMetrics": {}})
        case "host":
            kept = {"at": data.get("at"), "executors": data.get("executors", []), "processes": []}
            return replace(seen, data={**dict.fromkeys(data), "removed_executors": [], **kept})
    return None


def replayed(case: BenchmarkCase, place: str, keep: Filter = everything) -> Iterator[Answer]:
    """The root causes of all queries at each second, those that matter most first. `place` is "recording" or
    "eventlog". Raises UserError when it cannot be read."""
    kept = (keep(case, seen) for seen in open_source(str(case.folder / place)).observations)
    now: dict[str, Verdict] = {}
    due: float | None = None
    for verdict in verdicts((seen for seen in kept if seen is not None), every=GRID_SECONDS):
        due = math.ceil(verdict.at) if due is None else due
        while due <= min(verdict.at, case.ended):
            yield _answer(case, due, now.values())
            due += GRID_SECONDS
        if verdict.at > case.ended:
            return
        now[verdict.query] = verdict
    if due is not None:
        yield _answer(case, min(due, case.ended), now.values())


def _answer(case: BenchmarkCase, at: float, now: Iterable[Verdict]) -> Answer:
    roots = [(verdict.query, root) for verdict in now for root in verdict.root_causes]
    roots.sort(key=lambda each: -SEVERITIES.index(each[1].severity))  # stable: the ranks of a query stay
    causes = [
        {"cause": root.rule, "severity": root.severity, "confidence": round(root.confidence, 2)}
        | ({"place": query} if query else {})
        for query, root in roots
    ]
    return {"case": case.name, "at": at, "causes": causes}


def live(data: Path) -> Iterator[Answer]:
    """What `/diagnosis` answered while the cases of a data set ran. Raises UserError when it is not in the data set."""
    file = data / "answers" / "ledgerops.jsonl"
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError as error:
        raise cannot_read(file, error) from None
    yield from map(json.loads, lines)
