"""Short answers about one source for an assistant: each a text with the numbers, within MAX_CHARACTERS.

They show what a diagnosis shows, and nothing else of a recording. What they quote (names of queries, topics, columns)
was written by others: control characters are removed.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from ledgerops.analysis.inputs import open_source
from ledgerops.analysis.session import DEFAULTS, Investigation, settings_of
from ledgerops.common.format import clean, counted
from ledgerops.config import Config
from ledgerops.diagnosis.do_first import section
from ledgerops.diagnosis.muting import read_muted
from ledgerops.diagnosis.report import figures_of, text, timeline_lines
from ledgerops.diagnosis.rules import BY_SLUG, RULES
from ledgerops.diagnosis.runbook import on_call
from ledgerops.errors import UserError, did_you_mean
from ledgerops.metrics import METRICS, QUERY_METRICS, VERDICT_METRICS
from ledgerops.metrics.cause_texts import CAUSE_TEXTS
from ledgerops.model.spark_progress import format_instant, parse_instant
from ledgerops.runtime.replay import replay
from ledgerops.runtime.snapshot import QuerySnapshot

MAX_CHARACTERS = 4_000  # of an answer: about 1,000 tokens
MAX_VALUES = 20  # series of a metric that are shown
MAX_SERIES = 10_000  # of a query, among which they are found
# what capacity is asked for: times the rows, seconds (a century), cores of a cluster
MAX_LOAD, MAX_TRIGGER_SECONDS, MAX_CORES = 1_000, 36_500 * 86_400, 100_000
BY_NAME = {metric.name: metric for metric in METRICS}


class Answers:
    """Of a recording, an event log or an exporter; `before` is another one to compare with. Raise UserError. The
    settings `config` count as they do for an `Investigation`."""

    def __init__(self, place: str, before: str | None = None, config: Config = DEFAULTS) -> None:
        self._place, self._before, self._config = place, before, config

    def queries(self) -> str:
        """Every query with its status, health, figures and root causes."""
        found = self._document()
        lines = [f"{counted(len(found['queries']), 'query', 'queries')} at {found['at']}"]
        for query in sorted(found["queries"], key=lambda each: (each["health"], each["query"])):
            causes = ", ".join(cause["rule"] for cause in query["root_causes"]) or "no root cause"
            lines.append(
                f"{clean(query['query'])}: {query['status']}, health {query['health']}, {causes}; {figures_of(query)}"
            )
        return fit(lines)

    def diagnosis(self, query: str | None = None, at: str | None = None) -> str:
        """Root causes with evidence, the next step and what was ruled out."""
        return fit(text(self._document(query, at)).splitlines())

    def timeline(self, query: str | None = None) -> str:
        """What began and ended when, and what followed from it."""
        found = Investigation(self._place, query, with_timeline=True, config=self._config).diagnose(time.time())
        lines = [line for line, _ in timeline_lines(found["timeline"])]
        return fit(clean(line) for line in lines or ["nothing was found in all the time that was recorded"])

    def batch_profile(self, query: str, at: str | None = None) -> str:
        """Where the time of a typical batch goes."""
        [found] = self._document(query, at)["queries"]
        parts = found.get("attribution") or ()
        if not parts:
            raise UserError(f"no batch of {query} to take apart yet")
        head = f"{clean(query)}: {figures_of(found)}; a typical batch, by what takes its time:"
        return fit([head, *(f"  {each['part']}: {each['seconds']:.3f} s, {each['share']:.0%}" for each in parts)])

    def capacity(
        self, query: str, load_factor: float | None = None, trigger_seconds: float | None = None,
        cores: int | None = None,
    ) -> str:  # fmt: skip
        """The rate that a query can sustain, what limits it, and the same under other conditions."""
        from ledgerops.analysis.capacity.answer import Question, answer
        from ledgerops.analysis.capacity.inputs import read_views
        from ledgerops.analysis.capacity.report import text as capacity_text
        from ledgerops.analysis.capacity.situation import situation

        for name, value, most in (
            ("load_factor", load_factor, MAX_LOAD), ("trigger_seconds", trigger_seconds, MAX_TRIGGER_SECONDS),
            ("cores", cores, MAX_CORES),
        ):  # fmt: skip
            if value is not None and not 0 < value <= most:
                raise UserError(f"{name} is out of range: {value!r:.40}; give more than 0, and at most {most:,}")
        views, at, _ = read_views(self._place, query, config=self._config)
        questions = [Question()]
        if load_factor or trigger_seconds or cores:
            questions.append(Question(load=load_factor, trigger=trigger_seconds, cores=cores))
        known = [situation(view) for view in views]
        found = [(each, [answer(each, question) for question in questions]) for each in known]
        return fit(capacity_text(found, at).splitlines())

    def comparison(self, query: str | None = None, change_at: str | None = None) -> str:
        """Before and after a moment of the source, or the other source and this one."""
        from ledgerops.analysis.compare_report import comparison as compared
        from ledgerops.analysis.compare_report import text as compare_text

        if change_at is None and self._before is None:
            raise UserError("give change_at, or start the server with --before and another source")
        at = None if change_at is None else _instant(change_at)
        before = self._place if at is not None or self._before is None else self._before
        return fit(compare_text(compared(before, self._place, query, at, change_at, self._config)).splitlines())

    def rule(self, slug: str) -> str:
        """What a rule means, how bad it is, and how it belongs to other rules."""
        rule = _known(slug, BY_SLUG, "rule")
        lines = [f"{slug} ({rule.severity}): {CAUSE_TEXTS[slug].summary}", *_do_first(slug)]
        lines += [f"explains: {', '.join(rule.explains)}"] if rule.explains else []
        causes = [each.slug for each in RULES if slug in each.explains]
        lines += [f"is explained by: {', '.join(causes)}"] if causes else []
        return fit(lines)

    def runbook(self, slug: str) -> str:
        """Meaning, impact, diagnosis and mitigation of a rule."""
        runbook = on_call(_known(slug, BY_SLUG, "rule").runbook)
        return fit([*runbook.strip().splitlines(), *_do_first(slug)])

    def metric(self, name: str, query: str | None = None) -> str:
        """What a metric says, and its newest values."""
        metric = _known(name, BY_NAME, "metric")
        lines = [f"{name} ({metric.kind}): {metric.help}"]
        labels = (*(["query"] if metric in (*QUERY_METRICS, *VERDICT_METRICS) else []), *metric.labels)
        lines += [f"labels: {', '.join(labels)}"] if metric.labels else []
        source, config = open_source(self._place), self._config
        muted, freshness = settings_of(source, read_muted(config.mute, BY_SLUG), config.freshness_objective_seconds)
        found = replay(source.observations, None, freshness, muted, counts=True)
        for state in found.named(query, self._place).values():
            view = found.registry.view(state, found.at or 0.0)
            family = QuerySnapshot(state, view, MAX_SERIES, lambda *_: None).exported.families.get(name)
            for labels, value in family.series[:MAX_VALUES] if family else ():
                shown = format_instant(value) if metric.age or name.endswith("_timestamp_seconds") else f"{value:g}"
                lines.append(clean(f"{view.query} {' '.join(labels)}: {'since ' if metric.age else ''}{shown}"))
        return fit(lines)

    def _document(self, query: str | None = None, at: str | None = None) -> dict[str, Any]:
        moment = None if at is None else _instant(at)
        return Investigation(self._place, query, moment, config=self._config).diagnose(time.time())


def fit(lines: Iterable[str]) -> str:
    """As many whole lines as MAX_CHARACTERS allow, and how many were left out."""
    whole = [line[: MAX_CHARACTERS // 4].rstrip() for line in lines]
    kept, used = 0, 0
    while kept < len(whole) and used + len(whole[kept]) + 1 <= MAX_CHARACTERS - 60:
        used += len(whole[kept]) + 1
        kept += 1
    cut = [] if kept == len(whole) else [f"({len(whole) - kept} more lines are left out; ask for one query)"]
    return "\n".join([*whole[:kept], *cut])


def _do_first(rule: str) -> list[str]:
    return ["Do first:", *section(rule).splitlines()]


def _known(name: str, entries: Mapping[str, Any], kind: str) -> Any:
    if name not in entries:
        hint = did_you_mean(name, entries, "")
        raise UserError(f"no {kind} is called {name[:80]!r}{hint and f'; {hint}'}")
    return entries[name]


def _instant(text_: str) -> float:
    found = parse_instant(text_)
    if found is None:
        raise UserError(f"{text_[:40]!r} is not a time; write it like 2026-11-21T08:30:00Z")
    return found
