"""Diagnoses a place, once or repeatedly: what is wrong now, what was wrong since a moment, and the timeline."""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ledgerops.analysis.finding_history import FindingHistory, FindingPeriod
from ledgerops.analysis.inputs import Source, is_exporter, open_source
from ledgerops.analysis.plot_series import Track
from ledgerops.analysis.timeline import timeline
from ledgerops.common.format import counted
from ledgerops.config import Config
from ledgerops.diagnosis.engine import ENDED_SECONDS
from ledgerops.diagnosis.facts.silent_input import UNNAMED
from ledgerops.diagnosis.muting import Muted, read_muted
from ledgerops.diagnosis.report import ENDED_BY_ITSELF, document, finding_document
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.errors import UserError
from ledgerops.model.finding import SEVERITIES, Finding
from ledgerops.model.records import CONTINUOUS, Observation
from ledgerops.model.spark_progress import format_instant, parse_instant
from ledgerops.runtime.registry import QueryState
from ledgerops.runtime.replay import Replay

TICK_SECONDS = 5.0  # as the observer of a running query judges when nothing happens
CONTEXT_SECONDS = 3600.0  # read before `since` as well: a query is judged by its past hour
DEFAULTS = Config()
OVERLAP_SECONDS = 10.0  # that an exporter is asked for again, so that late records are not missed
BROKE_DOWN = "broke down and found nothing where it did; that is a defect of ledgerops: please report it"


@dataclass(frozen=True)
class Moment:
    """An instant, or so many seconds before the moment of the diagnosis."""

    instant: float | None = None
    ago: float = 0.0

    def before(self, now: float) -> float:
        """The moment in epoch seconds, for a diagnosis at `now` (epoch seconds, too)."""
        return self.instant if self.instant is not None else now - self.ago


def warn_of_bad_records(bad: int, name: str) -> None:
    """Prints on stderr how many records of a place could not be read."""
    print(f"ledgerops: skipped {counted(bad, 'record')} of {name} that could not be read", file=sys.stderr)


def settings_of(source: Source, muted: Muted, freshness: float) -> tuple[Muted, float]:
    """What is muted, and the freshness objective, where these are our own: an exporter's mutes come on top, and its
    objective counts instead."""
    return muted | read_muted(source.mute, BY_SLUG, strict=False), source.freshness or freshness


class Investigation:
    """`at` is the instant of the diagnosis (the newest one when None), `since` leaves out what had ended before it.

    A file is diagnosed after the fact, unless it is `live`: without `at` and `since` its document has `incidents`, all
    that went wrong.

    With `with_timeline` the document has a timeline, with `plots` the figures of each batch are kept in `tracks`.
    Of the settings `config`, `mute` and `freshness_objective_seconds` count: rules that an exporter mutes are muted as
    well, its freshness objective counts instead. Raises UserError where a muted rule is none.
    """

    def __init__(
        self, place: str, query: str | None = None, at: float | None = None, since: Moment | None = None,
        with_timeline: bool = False, plots: bool = False, trigger_interval: float | None = None, live: bool = False,
        config: Config = DEFAULTS,
    ) -> None:  # fmt: skip
        self.place, self.query, self.at, self.since = place, query, at, since
        self.muted, self.freshness = read_muted(config.mute, BY_SLUG), config.freshness_objective_seconds
        self.with_timeline, self.plots, self.trigger_interval = with_timeline, plots, trigger_interval
        self.live = live or is_exporter(place)
        self._reported_bad = 0
        self._warned: set[str] = set()  # of these rules that they broke down
        self._begin()

    def _begin(self) -> None:
        self.replay = Replay(trigger_interval=self.trigger_interval)
        self.findings: dict[str, FindingHistory] = {}
        self.tracks: dict[str, Track] = {}
        self._muted: dict[str, dict[str, Finding]] = {}  # by query and rule, the newest of each
        self._known: dict[tuple[float, str, str | None, int], None] = {}
        self._asked: float | None = None  # when the exporter was asked last

    def diagnose(
        self, now: float | None = None, follow: Callable[[Iterator[Observation]], Iterator[Observation]] = iter
    ) -> dict[str, Any]:
        """The diagnosis document. Raises UserError when there is nothing to judge; `now` is the caller's clock. An
        exporter is asked only for what is new since the last time; a file is read anew. `follow` gets the observations
        and yields them: it may tell how far the reading is."""
        exporter = is_exporter(self.place)
        if not exporter and self.replay.at is not None:
            self._begin()
        source = open_source(self.place, self._seconds(now) if exporter else None)
        self._asked = now
        self.replay.muted, self.replay.freshness = settings_of(source, self.muted, self.freshness)
        seen = self._new(source.observations) if exporter else source.observations
        history = self.with_timeline or self.since is not None or (self.at is None and not self.live)
        every = TICK_SECONDS if history else None
        for verdict in self.replay.verdicts(follow(seen), self.at, every):
            self._take(verdict.query, verdict.at)
        if self.replay.bad > self._reported_bad:
            warn_of_bad_records(self.replay.bad - self._reported_bad, source.name)
            self._reported_bad = self.replay.bad
        self.replay.named(self.query, source.name, self._when())
        newest = max(self.replay.at or 0.0, source.now or 0.0)
        moment = newest if self.at is None else self.at
        if not self.replay.more and moment > newest + TICK_SECONDS:
            print(
                f"ledgerops: {source.name} ends at {format_instant(newest)}: this is how it was then", file=sys.stderr
            )
            moment = newest
        for name, state in self.replay.registry.queries.items():
            self.replay.registry.judge(state, moment)
            self._take(name, moment)
            self._warn_of_broken_rules(state)
        if exporter:
            self.replay.at = moment  # a later diagnosis must not go back before this one
        return self._document(moment, source.name)

    def _warn_of_broken_rules(self, state: QueryState) -> None:
        for rule in sorted(state.judge.errors.keys() - self._warned):
            print(f"ledgerops: the rule {rule} {BROKE_DOWN}", file=sys.stderr)
        self._warned |= state.judge.errors.keys()

    def _seconds(self, now: float | None) -> float | None:
        """How far back an exporter is asked; all that it has when None."""
        if now is None:
            return None
        if self._asked is not None:  # by the caller's clock alone: the driver's may be another
            return max(0.0, now - self._asked) + OVERLAP_SECONDS
        return None if self.since is None else max(0.0, now - self.since.before(now)) + CONTEXT_SECONDS

    def _new(self, observations: Iterator[Observation]) -> Iterator[Observation]:
        """Without the observations of earlier calls."""
        for seen in observations:
            key = (seen.at, seen.kind, seen.query, _fingerprint(seen.data))
            if key not in self._known:
                self._known[key] = None
                yield seen
        newest = max((key[0] for key in self._known), default=0.0)
        self._known = {key: None for key in self._known if key[0] >= newest - 6 * OVERLAP_SECONDS}

    def _take(self, query: str, at: float) -> None:
        state = self.replay.registry.queries[query]
        if state.verdict is None or self.query not in (None, query):
            return
        self._muted.setdefault(query, {}).update({each.rule: each for each in state.verdict.muted})
        if self.with_timeline or self.at is None or self.since is not None:
            self.findings.setdefault(query, FindingHistory(query)).take(state.verdict, state.history)
        if self.plots:
            self.tracks.setdefault(query, Track()).take(self.replay.registry.view(state, at))

    def _when(self) -> str:
        return "" if self.at is None else f" before {format_instant(self.at)}"

    def _document(self, moment: float, name: str) -> dict[str, Any]:
        queries = self.replay.named(self.query, name, self._when())
        since = -math.inf if self.since is None else self.since.before(moment)
        shown = {
            query: state.verdict
            for query, state in queries.items()
            if state.verdict is not None and self._alive(query, since)
        }
        if not shown:
            raise UserError(f"nothing was recorded in {name} since {format_instant(since)}")
        found = document(shown.values(), moment, name)
        for query in found["queries"]:
            view = self.replay.registry.view(queries[query["query"]], moment)
            query["trigger_known"] = view.trigger.known or view.trigger.ends_itself
            query["judged"] = view.plan.trigger != CONTINUOUS
        if self.since is not None:
            for query in found["queries"]:
                query["ended"] = [
                    finding_document(each.root or each.finding)
                    | {
                        "until": format_instant(each.until or moment),
                        "explained_by": list(self.findings[each.query].causes(each)),
                    }
                    for each in self._ended(query["query"], since)
                ]
        elif self.at is None and self.live:
            found["ended_lately"] = self._ended_lately(shown, moment)
        elif self.at is None:
            found["incidents"] = self._incidents(shown, moment)
            for query in found["queries"]:
                query["muted"] = [finding_document(each) for each in self._muted.get(query["query"], {}).values()]
                ended = queries[query["query"]].history.ended
                query["end_recorded"] = ended is not None and not ended.unrecorded
                lost = self.findings[query["query"]].unrecorded_ends if query["query"] in self.findings else ()
                query["unrecorded_ends"] = [format_instant(at) for at in lost]
        if self.with_timeline:
            found["timeline"] = timeline(self.findings, max(0.0, since), self.query)
        return found

    def page(self, found: Mapping[str, Any]) -> str:
        """The HTML report of the last diagnosis; needs `with_timeline` and `plots`."""
        from ledgerops.analysis.html.page import page

        well = {
            query["query"]
            for query in found["queries"]
            if all(each["severity"] == "info" for each in query["root_causes"])
        }
        worst = {
            name: document([findings.worst], findings.worst.at, "")["queries"][0]
            for name, findings in self.findings.items()
            if name in well and findings.worst is not None and findings.worst.root_causes[0].severity != "info"
        }
        at = parse_instant(found["at"]) or 0.0
        registry = self.replay.registry
        views = {each["query"]: registry.view(registry.queries[each["query"]], at) for each in found["queries"]}
        return page(found, worst, self.tracks, None if self.since is None else self.since.before(at), views)

    def _alive(self, query: str, since: float) -> bool:
        """Whether a query reported anything, or has a finding, since then."""
        state = self.replay.registry.queries[query]
        seen = max(state.history.last_seen or 0.0, state.history.ended.at if state.history.ended else 0.0)
        return seen >= since or bool(state.verdict and state.verdict.findings)

    def _incidents(self, shown: Iterable[str], moment: float) -> list[dict[str, Any]]:
        """What was a root cause at any time, the worst first, of equal ones what takes most."""
        periods, told = [], defaultdict[int, list[FindingPeriod]](list)
        for findings in (self.findings[query] for query in shown if query in self.findings):
            for period in findings.periods:
                if period.causes:
                    continue
                if (cause := findings.later_cause(period)) is not None:
                    told[id(cause)].append(period)
                else:
                    periods.append(period)
        periods = [each for each in periods if not any(_is_precise(other, each) for other in periods)]
        found = [self._incident(period, told[id(period)], moment) for period in periods]
        return sorted(
            found, key=lambda each: (-SEVERITIES.index(each["severity"]), -(each["share"] or 0.0), -each["seconds"])
        )

    def _ended_lately(self, shown: Iterable[str], moment: float) -> list[dict[str, Any]]:
        """What was a warning or worse in its own right, and ended in the last hour."""
        return [
            {
                "query": query,
                "rule": each.finding.rule,
                "severity": each.finding.severity,
                "until": format_instant(each.until or moment),
            }
            for query in shown
            for each in self._ended(query, moment - ENDED_SECONDS)
            if not self.findings[query].causes(each) and each.finding.severity != "info"
        ]

    def _incident(self, period: FindingPeriod, told: Sequence[FindingPeriod], moment: float) -> dict[str, Any]:
        """A period as an incident, with what it is `told` to explain by now: `ended` says whether it was over by
        itself, or ended with its run or the source."""
        run = self.replay.registry.queries[period.query].history.ended
        until = period.until if period.until is not None else run.at if run is not None else moment
        held = "with the run" if period.with_run or run is not None else "with the source"
        found = period.root or period.finding
        explained = [rule for rule in (each.finding.rule for each in told) if rule not in found.explains]
        return {
            **finding_document(replace(found, explains=(*found.explains, *explained))), "query": period.query,
            "severity": max((each.finding.severity for each in (period, *told)), key=SEVERITIES.index),
            "since": format_instant(period.began), "until": format_instant(until),
            "seconds": round(max(0.0, until - period.began), 3),
            "ended": held if period.until is None or period.with_run else ENDED_BY_ITSELF,
        }  # fmt: skip

    def _ended(self, query: str, since: float) -> Sequence[FindingPeriod]:
        findings = self.findings.get(query)
        periods = findings.periods if findings else ()
        return [each for each in periods if each.until is not None and each.until >= since]


def _is_precise(other: FindingPeriod, vague: FindingPeriod) -> bool:
    """Whether another period is the same trouble, with the input named that this one could not name."""
    return (
        vague.finding.component.name == UNNAMED != other.finding.component.name
        and (other.query, other.finding.rule) == (vague.query, vague.finding.rule)
        and other.began <= (vague.until or math.inf)
        and vague.began <= (other.until or math.inf)
    )


def _fingerprint(data: Mapping[str, Any]) -> int:
    """Equal for equal data; 0 for data that is nested too deeply to be written."""
    try:
        return hash(orjson.dumps(data, default=str))
    except TypeError:
        return 0
