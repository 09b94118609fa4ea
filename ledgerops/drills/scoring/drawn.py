"""Scores a drawn drill in three ways: the answers of its live exporter, its recording, and its event log."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ledgerops.analysis.inputs import open_source
from ledgerops.common.bounded_lines import numbered_lines
from ledgerops.drills.benchmark import score
from ledgerops.drills.harness import batches
from ledgerops.drills.harness.batches import Harm
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.drills.scoring.score import GRID_SECONDS
from ledgerops.errors import UserError
from ledgerops.runtime.replay import verdicts

MIN_OTHERS_SHARE = 0.3  # of the machine: from then on it is true that other processes use its cores
OTHERS_RULES = ("cpu-saturated",)  # that say so
MAX_START_SECONDS = 40.0  # of Spark, which takes 10 on an idle machine; slower, other things than the fault do harm


class DiagnosisAt(NamedTuple):
    """What was reported for one query at one moment: rules with their severities, root causes in their order."""

    at: float
    query: str
    roots: tuple[tuple[str, str], ...]
    findings: tuple[tuple[str, str], ...]


class Judgement(NamedTuple):
    """One drill looked at in one way."""

    seconds: float | None  # from the harm to the finding; None: not found
    cause_first: bool  # the fault is the first root cause in most answers from then on
    named: str  # the first root cause of most answers while the harm lasted; "" if there was none
    alarms: tuple[str, ...]  # rules at warning or above that were reported before the fault, or of a healthy run


class CaseResult(NamedTuple):
    """A drawn drill and how it was diagnosed, by way; `void` says why it shows nothing."""

    case: Case
    harm: Harm | None
    void: str
    ways: Mapping[str, Judgement]


class Truth(NamedTuple):
    """What happened to a drawn drill, from the workload alone; instants are epoch seconds."""

    case: Case
    harm: Harm | None
    void: str
    began: float  # its queries
    onset: float
    ended: float
    others: float  # share of the machine that other processes used


def truth_of(folder: Path) -> Truth:
    """The truth of the drill in a folder. Raises UserError when it was not run to its end."""
    try:
        case, times = Case.load(folder), Bundle(folder).times
        began, onset, ended = times["origin"], times["injected"], times["ended"]
    except (UserError, OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder} has no complete drill ({error}); run it again") from None
    harm = None if case.healthy else batches.harm(case, folder, onset, ended)
    void = ""
    if not case.healthy and harm is None:
        void = "the fault did no harm"
    elif batches.slow_machine(case, folder, ended if case.healthy else onset):
        void = "the machine was too slow for it"
    elif (case.trigger is None or case.onset == "birth") and times.get("start_seconds", 0.0) > MAX_START_SECONDS:
        void = f"the machine was too slow: Spark took {times['start_seconds']:.0f} s to start"
    if harm is not None and case.harm == "failure":  # at birth perhaps before the clock of the drill began
        onset = min(onset, harm.at)
    return Truth(case, harm, void, min(began, onset), onset, ended, others_share(folder))


def judge(folder: Path) -> CaseResult:
    """Scores the drill in a folder. Raises UserError when it was not run to its end."""
    truth = truth_of(folder)
    harm = truth.harm
    ways = {}
    for way, read in WAYS.items():
        try:
            answers = [answer for answer in read(folder) if answer.at <= truth.ended]
        except (UserError, OSError) as error:
            ways[way] = Judgement(None, False, f"not readable: {error}", ())
            continue
        due = harm
        if harm is not None and way == LOG and harm.what == batches.OUTLASTS:
            due = harm._replace(level="info")  # Spark's log does not say the interval
        ways[way] = judge_answers(truth.case, due, truth.onset, answers, truth.others)
    return CaseResult(truth.case, harm, truth.void, ways)


def live(folder: Path) -> Iterator[DiagnosisAt]:
    """What `/diagnosis` answered while the drill ran. Raises UserError when that cannot be read."""
    file = folder / "live.jsonl"
    for number, line in numbered_lines(file):
        try:
            found = json.loads(line)
            for query in found.get("diagnosis", {}).get("queries", ()):
                roots = tuple((finding["rule"], finding["severity"]) for finding in query["root_causes"])
                findings = tuple((finding["rule"], finding["severity"]) for finding in query["findings"])
                yield DiagnosisAt(found["at"], query["query"], roots, findings)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"cannot read {file}:{number}: not an answer ({error}); run the drill again") from None


def replayed(place: Path) -> Iterator[DiagnosisAt]:
    """What a replay of a recording or an event log gives at each second. Of several verdicts on a query at one instant
    only the last: nobody can ask between two records of it."""
    answers: dict[tuple[float, str], DiagnosisAt] = {}
    for verdict in verdicts(open_source(str(place)).observations, every=GRID_SECONDS):
        roots = tuple((finding.rule, finding.severity) for finding in verdict.root_causes)
        findings = tuple((finding.rule, finding.severity) for finding in verdict.findings)
        answers[verdict.at, verdict.query] = DiagnosisAt(verdict.at, verdict.query, roots, findings)
    return iter(answers.values())


LOG = "event log"
WAYS: Mapping[str, Callable[[Path], Iterator[DiagnosisAt]]] = {
    "live": live,
    "recording": lambda folder: replayed(folder / "recording"),
    LOG: lambda folder: replayed(folder / "eventlog"),
}


def others_share(folder: Path) -> float:
    """The median share of the machine that processes outside the drill used, 0 to 1."""
    try:
        lines = [json.loads(line) for line in (folder / "machine.jsonl").read_text("utf-8").splitlines()]
    except (OSError, ValueError):
        return 0.0
    return float(max(0.0, median([line["used"] - line["own"] for line in lines] or [0.0])) / 100)


def judge_answers(
    case: Case, harm: Harm | None, onset: float, answers: Sequence[DiagnosisAt], others: float
) -> Judgement:
    """Compares the answers with the case: time of the first correct finding, root cause, and false alarms. Without harm
    `harm` is None; `onset` is in the clock of the answers; `others` is a share of the machine (0 to 1)."""
    judged = score.judge(scored_truth(case, harm, onset, answers, others), ranked(answers))
    about = [answer for answer in answers if harm is None or case.blamed in ("", answer.query)]
    named = _most(about, onset if harm is None else harm.at)
    return Judgement(judged.seconds, judged.leads[1], named, tuple(sorted(set().union(*judged.alarms))))


def scored_truth(
    case: Case, harm: Harm | None, onset: float, answers: Iterable[DiagnosisAt], others: float
) -> dict[str, Any]:
    """What the scorer of the benchmark reads of a case's truth."""
    return {
        "healthy": case.healthy,
        "onset": case.onset,
        "fault_at": None if case.healthy else onset,
        "harm_at": harm.at if harm is not None else None,
        "due": harm.level if harm is not None else "",
        "accepted": list(case.expected),
        "also_true": list(OTHERS_RULES) if others >= MIN_OTHERS_SHARE else [],
        "elsewhere": sorted({answer.query for answer in answers} - {case.blamed}) if case.blamed else [],
    }


def ranked(answers: Iterable[DiagnosisAt]) -> list[dict[str, Any]]:
    """Answers as the scorer of the benchmark reads them, one for each instant: the root causes of all queries by their
    rank, then the other findings."""
    found: list[dict[str, Any]] = []
    for at, together in groupby(answers, key=lambda answer: answer.at):
        causes = []
        for answer in together:
            # one rule may be found of several places; its gravest finding counts, also where it is a root cause
            severities = dict(sorted(answer.findings, key=lambda finding: score.LEVELS[finding[1]]))
            roots = dict(answer.roots)
            for place, rule in enumerate(roots | severities):
                cause = {"cause": rule, "place": answer.query, "severity": severities.get(rule, roots.get(rule))}
                causes.append((rule not in roots, place, cause))
        causes.sort(key=lambda cause: cause[:2])
        found.append({"at": at, "causes": [cause for _, _, cause in causes]})
    return found


def _most(answers: Sequence[DiagnosisAt], since: float) -> str:
    """The first root cause of most answers since then; a healthy verdict counts as none."""
    first = Counter(answer.roots[0][0] if answer.roots else "" for answer in answers if answer.at >= since)
    return first.most_common(1)[0][0] if first else ""
