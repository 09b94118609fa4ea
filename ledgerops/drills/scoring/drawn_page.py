"""The scores of drawn drills as Markdown: what was found, split by onset, trigger and way of looking."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from ledgerops.drills.harness.case import Case
from ledgerops.drills.scoring import sections
from ledgerops.drills.scoring.drawn import WAYS, CaseResult, judge
from ledgerops.drills.scoring.report import table
from ledgerops.errors import UserError

# seeds on which rules were tuned, or whose misses were read before a rule was changed
SEEN = (*range(1, 21), *range(29, 45), 47)
NEVER_SEEN_TITLE, SEEN_TITLE = "Seeds never seen by the rules", "Seeds seen by the rules"
ANCHOR = "#" + NEVER_SEEN_TITLE.lower().replace(" ", "-")
SPLITS: Mapping[str, Callable[[Case], bool]] = {
    "all faults": lambda case: True,
    "from birth": lambda case: case.onset == "birth",
    "later": lambda case: case.onset == "later",
    "no trigger": lambda case: case.trigger is None,
    "trigger of 1 or 2 s": lambda case: case.trigger in (1.0, 2.0),
    "trigger of 10 s": lambda case: case.trigger == 10.0,
    "just": lambda case: case.strength == "just",
    "clear": lambda case: case.strength == "clear",
    "gross": lambda case: case.strength == "gross",
}
MEANING = "new seeds of the generator that the rules were developed with, which is less than applications of others are"


def part(results: Sequence[CaseResult], note: str = "") -> sections.Part:
    """The Markdown of all samples that have results, which are never mixed; `note` stands below the first."""
    parts, rows = [], []
    for title, some in _samples(results):
        ran = ", ".join(str(seed) for seed in sorted({result.case.seed for result in some}))
        parts += [f"### {title}\n", f"Seeds run: {ran}.\n", sums(some), ""]
        rows += [f"### {title}\n", drills(some), ""]
        parts += [note, ""] if note else []
        note = ""
    return sections.Part("drawn", "\n".join(parts), _summary(_samples(results)[0][1]), "\n".join(rows))


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
    rows = []
    for name, belongs in SPLITS.items():
        some = [result for result in faults if belongs(result.case)]
        for way in WAYS:
            judged = [result.ways[way] for result in some]
            times = [each.seconds for each in judged if each.seconds is not None]
            first = _share(sum(each.cause_first for each in judged), len(some))
            seconds = f"{median(times):.1f} s" if times else ""
            rows.append((name, way, str(len(some)), _share(len(times), len(some)), first, seconds))
    silent = [
        f"{way} {sum(not result.ways[way].alarms for result in healthy)} of {len(healthy)}" for way in WAYS if healthy
    ]
    void = sum(bool(result.void) for result in results)
    counts = f"Silent healthy runs: {', '.join(silent) or 'none run'}. Void: {void} of {len(results)}."
    return f"{table(('faults', 'seen', 'drills', 'recall', 'cause first', 'median time'), rows)}\n\n{counts}"


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
    sections.conclude(part(results, note) if results and page else None, page, problems)
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
    others = f", behind {judged.named}" if judged.named else ", for a part of the time"
    return f"{judged.seconds:.0f} s{'' if judged.cause_first else others}{alarms}"


def _share(count: int, total: int) -> str:
    return f"{count / total:.2f}" if total else ""
