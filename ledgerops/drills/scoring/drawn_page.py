"""The scores of drawn drills as Markdown: what was found, split by onset, trigger and way of looking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from ledgerops.drills.scoring import sections
from ledgerops.drills.scoring.drawn import WAYS, CaseResult, judge
from ledgerops.drills.scoring.report import folded, table
from ledgerops.errors import UserError

SEEN = range(1, 21)  # seeds on which rules were tuned, or whose misses were read before a rule was changed
NEVER_SEEN_TITLE, SEEN_TITLE = "Seeds never seen by the rules", "Seeds seen by the rules"
ANCHOR = "#" + NEVER_SEEN_TITLE.lower().replace(" ", "-")
INTRODUCTION = """\
`ledgerops drill --seed N` draws plain PySpark applications that know nothing of ledgerops, with a fault or a healthy
peculiarity. Each drill is scored three ways: the answers of `/diagnosis` while it runs, a replay of its recording, and
a replay of its event log. Recall: named at all. Cause first: named, and the first root cause in most answers from then
on. From birth: the fault is there from the start of the query; later: it begins after a healthy time. Just, clear and
gross are the strength of the fault.

A seed that was never seen is a new seed of the generator with which the rules were developed: other applications, other
numbers, the same kinds of faults. That is less than [applications of others](applications.md) are.
"""
MEANING = "new seeds of the generator that the rules were developed with, which is less than applications of others are"
METHOD = """\
What is drawn: source, trigger, sink and functions, a fault with its onset and strength, or a healthy peculiarity. Each
application runs for a minute or two under `ledgerops exec` with Spark's event log enabled. That a fault does harm is
verified from the checkpoint and from the logs of the application, never from what the diagnosis reads; a drill whose
fault did no harm on this machine proves nothing and is left out. A fault without harm, such as slow batches of a query
without a trigger that still keeps up, must be named at info or above, any other fault at warning or above. Spark's
event log does not say the trigger interval, and it is not given to the replay with `--trigger`: there, batches that are
only longer than their interval count as named at info, too. Live answers are those of the rules at the time of the run;
recordings and event logs are replayed with the current rules.

Behind: named, but in most answers not first. Silent: no finding at warning or above at any time. The truth is what
happened to the query, with the rules in brackets that are accepted as its cause.
"""


def part(results: Sequence[CaseResult], note: str = "") -> sections.Part:
    """The Markdown of all samples that have results, which are never mixed; `note` stands below the first."""
    parts, rows = [sections.DRAWN, INTRODUCTION], [sections.DRAWN]
    for title, some in _samples(results):
        ran = ", ".join(str(seed) for seed in sorted({result.case.seed for result in some}))
        parts += [f"### {title}\n", f"Seeds run: {ran}. [Drill by drill]({sections.BESIDE}).\n", sums(some), ""]
        rows += [f"### {title}\n", drills(some), ""]
        parts += [note, ""] if note else []
        note = ""
    text = "\n".join([*parts, folded("How a drawn drill is run and judged", METHOD)])
    return sections.Part(text, _summary(_samples(results)[0][1]), "\n".join(rows))


def _samples(results: Sequence[CaseResult]) -> list[tuple[str, list[CaseResult]]]:
    seen = [result for result in results if result.case.seed in SEEN]
    unseen = [result for result in results if result.case.seed not in SEEN]
    return [(title, some) for title, some in ((NEVER_SEEN_TITLE, unseen), (SEEN_TITLE, seen)) if some]


def _summary(results: Sequence[CaseResult]) -> tuple[str, str, str, str]:
    faults, healthy = _counted(results)
    first = ", ".join(f"{way} {sum(result.ways[way].cause_first for result in faults)}" for way in WAYS)
    silent = ", ".join(f"{way} {sum(not result.ways[way].alarms for result in healthy)}" for way in WAYS)
    return (
        f"[drawn by seed]({ANCHOR}): {len(faults) + len(healthy)} applications",
        f"of {len(faults)}: {first}",
        f"of {len(healthy)}: {silent}",
        MEANING,
    )


def _counted(results: Sequence[CaseResult]) -> tuple[list[CaseResult], list[CaseResult]]:
    """The faults and the healthy ones that are not void."""
    valid = [result for result in results if not result.void]
    return [result for result in valid if not result.case.healthy], [result for result in valid if result.case.healthy]


def sums(results: Sequence[CaseResult]) -> str:
    """A table with a line for each group of drills and each way of looking."""
    faults, healthy = _counted(results)
    splits: list[tuple[str, Callable[[CaseResult], bool]]] = [
        ("all faults", lambda result: True),
        ("from birth", lambda result: result.case.onset == "birth"),
        ("later", lambda result: result.case.onset == "later"),
        ("no trigger", lambda result: result.case.trigger is None),
        ("trigger of 1 or 2 s", lambda result: result.case.trigger in (1.0, 2.0)),
        ("trigger of 10 s", lambda result: result.case.trigger == 10.0),
        *(
            (strength, lambda result, strength=strength: result.case.strength == strength)
            for strength in ("just", "clear", "gross")
        ),
    ]
    rows = []
    for name, belongs in splits:
        some = [result for result in faults if belongs(result)]
        for way in WAYS:
            judged = [result.ways[way] for result in some]
            times = [result.seconds for result in judged if result.seconds is not None]
            rows.append(
                (
                    name,
                    way,
                    str(len(some)),
                    _share(len(times), len(some)),
                    _share(sum(result.cause_first for result in judged), len(some)),
                    f"{median(times):.1f} s" if times else "",
                )
            )
    silent = [
        f"{way} {sum(not result.ways[way].alarms for result in healthy)} of {len(healthy)}" for way in WAYS if healthy
    ]
    void = [result for result in results if result.void]
    return "\n".join(
        [
            table(("faults", "seen", "drills", "recall", "cause first", "median time"), rows),
            "",
            f"Silent healthy runs: {', '.join(silent) or 'none run'}. Void: {len(void)} of {len(results)}.",
        ]
    )


def drills(results: Sequence[CaseResult]) -> str:
    """A table with a line for each drill: its truth, and what was named in each way."""
    rows = []
    for result in results:
        case = result.case
        harm = "healthy" if result.harm is None else f"{result.harm.what} ({'/'.join(case.expected)})"
        answers = (_answer(result, way) for way in WAYS)
        rows.append((f"{case.seed}-{case.name}", case.summary.partition(": ")[2], result.void or harm, *answers))
    return table(("drill", "application", "truth", *WAYS), rows)


def one_line(folder: Path) -> str:
    """A drill's truth, and what was named in each way. Raises UserError when it was not run to its end."""
    result = judge(folder)
    truth = result.void or ("healthy" if result.harm is None else result.harm.what)
    return f"{truth}; {'; '.join(f'{way}: {_answer(result, way)}' for way in WAYS)}"


def finish(folders: Sequence[Path], problems: Mapping[str, str], page: Path | None, note: str = "") -> int:
    """Scores all drawn drills below the folders, prints the tables and gives the exit code of the command."""
    results = []
    for place in sorted(file.parent for folder in folders for file in folder.glob("**/case.json")):
        try:
            results.append(judge(place))
        except UserError as error:
            problems = {place.name: str(error), **problems}
    if results:
        print(sums(results), "", drills(results), "", sep="\n")
    if page is not None and results:
        sections.publish(page, part(results, note))
        print(f"wrote {page}")
    for name, problem in problems.items():
        print(f"{name} could not be run: {problem}")
    if problems or not results:
        return 2
    return int(not all(_passed(result) for result in results))


def _passed(result: CaseResult) -> bool:
    if result.void:
        return True
    return all(not judged.alarms and (judged.cause_first or result.case.healthy) for judged in result.ways.values())


def _answer(result: CaseResult, way: str) -> str:
    judged = result.ways[way]
    alarms = f" (before: {', '.join(judged.alarms)})" if judged.alarms and not result.case.healthy else ""
    if result.case.healthy:
        return ", ".join(judged.alarms) or "silent"
    if judged.seconds is None:
        return f"missed: {judged.named or 'nothing'}{alarms}"
    return f"{judged.seconds:.0f} s{'' if judged.cause_first else f', behind {judged.named}'}{alarms}"


def _share(count: int, total: int) -> str:
    return f"{count / total:.2f}" if total else ""
