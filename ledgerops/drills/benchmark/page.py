"""The results of all methods as Markdown, between the marks of the page on the benchmark."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ledgerops.drills.benchmark.methods import Method
from ledgerops.drills.benchmark.score import judge, share
from ledgerops.drills.scoring.report import table

STRENGTHS = ("just", "clear", "gross")
# the confidences that rules state are at most a few values: 0.5 (unsure), 0.8 (likely), 0.95 (clear), and shares
BINS = ((0.0, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.0))


Truths = Mapping[str, Mapping[str, Any]]  # by case
Answers = Mapping[str, Sequence[Mapping[str, Any]]]


class Result(NamedTuple):
    """What one method scored (`figures` of score.py, `all` and by group), and the CPU seconds that it took."""

    method: Method
    figures: Mapping[str, Any]
    cpu_seconds: float


def section(
    results: Sequence[Result], ablations: Sequence[Result], truths: Truths, answers: Answers, split: str, ran: str
) -> str:
    """Everything between the marks. `truths` and `answers` of the recording: of the cases of the split, by their names;
    `ran`: when and on what machine."""
    counts = results[0].figures["all"]
    seeds = ", ".join(map(str, sorted({int(case.partition("-")[0]) for case in truths})))
    cpu = sum(result.cpu_seconds for result in (*results, *ablations))
    parts = [
        f"Measured {ran}, in {cpu:.0f} CPU seconds: {counts['faults']} faults and {counts['healthy']} healthy cases, "
        f"split `{split}`, seeds {seeds}. In brackets: Wilson's interval of 95 %.\n",
        compared(results),
        "",
        "### Without a part of the data\n",
        "The same recordings, with one kind of data taken away.\n",
        ablated(results, ablations),
        "",
        "### By strength of the fault\n",
        strengths(results),
        "",
        "### Is the stated confidence true?\n",
        "Each first cause at warning or above that stood for a tenth of its case, healthy cases included, by the "
        "confidence with which the replay of the recording stated it.\n",
        calibrated(claims(truths, answers)),
        "",
        "### What was missed\n",
        "Faults whose cause was not first in the recording.\n",
        missed(truths, answers),
        "",
    ]
    return "\n".join(parts)


def compared(results: Iterable[Result]) -> str:
    """A row for each method."""
    rows = []
    for method, figures, cpu in results:
        every = figures["all"]
        time, alarms = every["time"], every["alarms/hour"]
        rows.append(
            (
                method.name, method.given, *(_share(every[key]) for key in ("recall", "AC@1", "AC@3")),
                _share(every["silent"]), "" if alarms is None else f"{alarms:.1f}",
                "" if time is None else f"{time:.1f} s", f"{cpu:.1f} s",
            )
        )  # fmt: skip
    head = ("method", "is given", "recall", "AC@1", "AC@3", "healthy silent", "alarms/healthy hour", "median time")
    return table((*head, "CPU"), rows)


def ablated(results: Iterable[Result], ablations: Iterable[Result]) -> str:
    """The recording, whole and without a part."""
    whole = [result for result in results if result.method.slug == "recording"]
    rows = [
        (name, *(_share(every[key]) for key in ("recall", "AC@1", "silent")))
        for name, every in [
            *(("nothing", result.figures["all"]) for result in whole),
            *((result.method.name, result.figures["all"]) for result in ablations),
        ]
    ]
    return table(("without", "recall", "AC@1", "healthy silent"), rows)


def strengths(results: Iterable[Result]) -> str:
    """AC@1 of each method by the strength of the fault."""
    rows = []
    for method, figures, _ in results:
        some = [figures.get(f"strength: {strength}") for strength in STRENGTHS]
        rows.append((method.name, *(_share(each["AC@1"]) if each else "" for each in some)))
    return table(("AC@1", *STRENGTHS), rows)


class Claim(NamedTuple):
    """A first cause at warning or above: how sure it was on the median, and whether it is accepted."""

    confidence: float
    true: bool


def claims(truths: Truths, answers: Answers) -> list[Claim]:
    """One claim for each case and each cause that stood first in it for at least a tenth of its answers. Void cases are
    left out, as are causes that are true of the machine."""
    found = []
    for case, truth in truths.items():
        if truth["void"]:
            continue
        firsts: dict[str, list[float]] = {}
        for answer in answers.get(case, ()):
            serious = [cause for cause in answer["causes"] if cause.get("severity", "warning") != "info"]
            if serious and "confidence" in serious[0]:
                firsts.setdefault(serious[0]["cause"], []).append(serious[0]["confidence"])
        for cause, sure in firsts.items():
            if 10 * len(sure) >= len(answers[case]) and cause not in truth["also_true"]:
                found.append(Claim(sorted(sure)[len(sure) // 2], cause in truth["accepted"]))
    return found


def calibrated(claims: Sequence[Claim]) -> str:
    """A row for each bin of confidence that has claims: of so many, how many were right, with Wilson's interval."""
    rows = []
    for low, high in BINS:
        some = [claim for claim in claims if low <= claim.confidence < high or claim.confidence == high == 1.0]
        if right := share(sum(claim.true for claim in some), len(some)):
            said = sum(claim.confidence for claim in some) / len(some)
            interval = "{share:.0%} [{low:.0%}, {high:.0%}]".format(**right)
            rows.append((f"{low:.0%} to {high:.0%}", f"{said:.0%}", str(len(some)), str(right["count"]), interval))
    return table(("confidence", "on average", "first causes", "true", "share"), rows)


def missed(truths: Truths, answers: Answers) -> str:
    """A row for each fault whose cause does not lead, with what stood first in most answers from the harm on; the last
    column is for a person."""
    rows = []
    for case, truth in truths.items():
        if truth["void"] or truth["healthy"] or judge(truth, answers[case]).leads[1]:
            continue
        after = [answer["causes"] for answer in answers[case] if answer["at"] >= truth["harm_at"]]
        firsts = Counter(causes[0]["cause"] if causes else "nothing" for causes in after)
        named = firsts.most_common(1)[0][0] if firsts else "nothing"
        fault = ", ".join(filter(None, (truth["kind"], truth["onset"], truth["strength"])))
        rows.append((case, fault, ", ".join(truth["accepted"]), named, ""))
    return table(("case", "fault", "accepted", "named first", "reason"), rows) if rows else "Nothing."


def _share(given: Mapping[str, Any] | None) -> str:
    return "" if given is None else f"{given['share']:.2f} [{given['low']:.2f}, {given['high']:.2f}]"
