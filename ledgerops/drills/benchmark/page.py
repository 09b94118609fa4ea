"""The results of all methods as Markdown, between the marks of the page on the benchmark."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ledgerops.drills.benchmark.calibration import Bin
from ledgerops.drills.benchmark.methods import Method
from ledgerops.drills.benchmark.score import judge
from ledgerops.drills.scoring.report import table

STRENGTHS = ("just", "clear", "gross")


class Result(NamedTuple):
    """What one method scored (`figures` of score.py, `all` and by group), and the CPU seconds that it took."""

    method: Method
    figures: Mapping[str, Any]
    cpu_seconds: float


class Miss(NamedTuple):
    """A fault whose cause was not first."""

    case: str
    kind: str
    accepted: str
    named: str


def section(results: Sequence[Result], ablations: Sequence[Result], confidence: Sequence[Bin], misses: Sequence[Miss],
            sample: str, date: str, machine: str) -> str:  # fmt: skip
    """Everything between the marks. `sample`: which cases these are."""
    counts = results[0].figures["all"]
    cpu = sum(result.cpu_seconds for result in (*results, *ablations))
    parts = [
        f"Measured on {date} by `make benchmark`, on {machine}, in {cpu:.0f} CPU seconds: {counts['faults']} "
        f"faults and {counts['healthy']} healthy cases, {sample}. In brackets: Wilson's interval of 95 %.\n",
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
        calibrated(confidence),
        "",
        "### What was missed\n",
        "Faults whose cause was not first in the recording.\n",
        missed(misses),
        "",
    ]
    return "\n".join(parts)


def sample_of(split: str, cases: Iterable[str]) -> str:
    """The split of the cases, and their seeds, which are in their names."""
    seeds = sorted({int(case.partition("-")[0]) for case in cases})
    return f"split `{split}`, seeds {', '.join(map(str, seeds))}"


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


def calibrated(found: Iterable[Bin]) -> str:
    """A row for each bin of confidence."""
    rows = [
        (f"{each.low:.0%} to {each.high:.0%}", f"{each.said:.0%}", str(each.of), str(each.true),
         f"{each.true / each.of:.0%} [{each.interval[0]:.0%}, {each.interval[1]:.0%}]")
        for each in found
    ]  # fmt: skip
    return table(("confidence", "on average", "first causes", "true", "share"), rows)


def missed(found: Sequence[Miss]) -> str:
    """A row for each miss; the last column is for a person."""
    rows = [(*miss, "") for miss in found]
    return table(("case", "fault", "accepted", "named first", "reason"), rows) if rows else "Nothing."


def misses(truths: Mapping[str, Any], answers: Mapping[str, Sequence[Any]]) -> list[Miss]:
    """The faults whose cause does not lead, each with what stood first in most answers from the harm on."""
    found = []
    for case, truth in truths.items():
        if truth["void"] or truth["healthy"] or judge(truth, answers[case]).leads[1]:
            continue
        after = [answer["causes"] for answer in answers[case] if answer["at"] >= truth["harm_at"]]
        firsts = Counter(causes[0]["cause"] if causes else "nothing" for causes in after)
        named = firsts.most_common(1)[0][0] if firsts else "nothing"
        fault = ", ".join(filter(None, (truth["kind"], truth["onset"], truth["strength"])))
        found.append(Miss(case, fault, ", ".join(truth["accepted"]), named))
    return found


def _share(given: Mapping[str, Any] | None) -> str:
    return "" if given is None else f"{given['share']:.2f} [{given['low']:.2f}, {given['high']:.2f}]"
