"""What must hold whatever is observed. A breach is an AssertionError that carries its cause."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable

from ledgerops.analysis.batch_samples import samples
from ledgerops.analysis.compare import compare
from ledgerops.analysis.compare_report import document as compared_document
from ledgerops.analysis.compare_report import text as compared_text
from ledgerops.analysis.finding_history import FindingHistory
from ledgerops.analysis.html.page import page
from ledgerops.analysis.plot_series import Track
from ledgerops.analysis.timeline import timeline
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.report import document, text
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.model.finding import SEVERITIES, Verdict
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import BadRecord
from ledgerops.runtime.registry import QueryRegistry, QueryState
from ledgerops.runtime.snapshot import QuerySnapshot
from ledgerops.runtime.status import query_status
from ledgerops.signals.query_view import QueryView

NO_NUMBER = re.compile(r"[=>\s(,](nan|inf|-inf)\b")
SILENCES = (7.0, 45.0, 400.0, 1e7)  # seconds after the last line at which everything is judged once more
MORE_EVERY = 20  # verdicts


def judged(observations: Iterable[Observation], seen: Counter[str], pages: bool = False, every: int = 1) -> None:
    """Every observation goes in, the query that changed is judged after `every` so many of them, at last all are.

    All that is made of a verdict is made now and then.
    """
    registry, story, tracks = QueryRegistry(Diagnoser), dict[str, FindingHistory](), dict[str, Track]()

    def look(state: QueryState, at: float) -> None:
        verdict, view = registry.judge(state, at), registry.view(state, at)
        if errors := state.judge.errors:  # type: ignore[attr-defined]
            _raise_again(view, errors)
        seen["verdicts"] += 1
        check(verdict, seen)
        story.setdefault(verdict.query, FindingHistory(verdict.query)).take(verdict, state.history)
        tracks.setdefault(state.history.query, Track()).take(view)
        if seen["verdicts"] % MORE_EVERY == 0:
            assert QuerySnapshot(state, view, 500, _refuse).exported
            json.dumps(query_status(state, view), allow_nan=False)
            text(document([verdict], at, "fuzz"))

    at = 0.0
    for number, each in enumerate(observations):
        at = max(at, each.at)
        seen[f"line {each.kind}"] += 1
        try:
            state = registry.ingest(each)
        except BadRecord:
            seen["refused"] += 1
            continue
        if state is not None and number % every == 0:
            look(state, at)
    for silence in SILENCES:
        for state in registry.queries.values():
            look(state, at + silence)
    found = document([state.verdict for state in registry.queries.values() if state.verdict], at, "fuzz")
    found["timeline"] = timeline(story)
    text(found, colour=pages)
    json.dumps(found, allow_nan=False)
    seen["documents"] += 1
    if pages and registry.queries:
        worst = {
            name: document([told.worst], told.worst.at, "")["queries"][0]
            for name, told in story.items()
            if told.worst is not None
        }
        html = page(found, worst, tracks)
        assert "<script" not in html and "\x1b" not in html and not NO_NUMBER.search(html)
        seen["pages"] += 1


def check(verdict: Verdict, seen: Counter[str]) -> None:
    for finding in verdict.findings:
        seen[f"rule {finding.rule}"] += 1
    for finding in (*verdict.findings, *verdict.root_causes):
        name = finding.rule
        assert finding.evidence, f"{name}: no evidence"
        assert finding.summary and "\n" not in finding.summary, f"{name}: summary {finding.summary!r}"
        assert all(math.isfinite(each.value) and math.isfinite(each.at) for each in finding.evidence), name
        assert 0 <= finding.confidence <= 1, f"{name}: confidence {finding.confidence}"
        assert finding.share is None or 0 <= finding.share <= 1, f"{name}: share {finding.share}"
        assert finding.severity in SEVERITIES and math.isfinite(finding.since), name
        assert finding.since <= max(verdict.at, 0.0), f"{name}: begins after now"
    assert 0 <= verdict.health <= 100, f"health {verdict.health}"
    numbers = (*verdict.figures.values(), verdict.forecast.drain_seconds, verdict.forecast.seconds_to_slo_breach)
    assert all(each is None or math.isfinite(each) for each in numbers), f"figures {numbers}"


def compared(observations: Iterable[Observation], seen: Counter[str]) -> None:
    """The first half against the second."""
    found = samples(observations)
    halves = [
        {name: some[: len(some) // 2] for name, some in found.items()},
        {name: some[len(some) // 2 :] for name, some in found.items()},
    ]
    told = compared_document(compare(*halves), "a", "b", None, {})
    json.dumps(told, allow_nan=False)
    compared_text(told)
    seen["comparisons"] += 1


def _raise_again(view: QueryView, errors: Iterable[str]) -> None:
    """A diagnoser swallows what a rule raises: asked once more, the rule says it."""
    for slug in errors:
        list(BY_SLUG[slug].check(view))
        ruled_out = BY_SLUG[slug].ruled_out
        if ruled_out is not None:
            ruled_out(view)
    raise AssertionError(f"rules raised: {errors}")


def _refuse(part: str, error: Exception, *more: str) -> None:
    raise AssertionError(f"{part} {more}") from error
