"""Whether the numbers of findings are true: each is computed again from the recording, by other code."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ledgerops.common.bounded_lines import numbered_lines
from ledgerops.diagnosis.causes import CAUSES
from ledgerops.diagnosis.report import document
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.diagnosis.runbook import evidence_of
from ledgerops.model.finding import Verdict
from tests.evidence.recompute import TINY, Compared, recompute

# the parts of a batch that belong to each cause, as the table of docs/verdict.md has them
OWNED = {
    cause.slug: {"parts": cause.parts, "grown": cause.grown, "born": cause.born, "normal": cause.normal}
    for cause in CAUSES
}
MIN_TOLD = 5  # times, before it counts that a number agrees by chance with another choice of batches


class Number(NamedTuple):
    """One number of one finding: when it was reported, for which query and rule, and what the recording gives."""

    at: float
    query: str
    rule: str
    compared: Compared


def wrong(numbers: Iterable[Number]) -> tuple[str, ...]:
    """One line for each rule and number that differs from the recording, with its first instance."""
    found: dict[tuple[str, str], str] = {}
    for _, _, rule, each in numbers:
        if not each.agrees:
            given = "no formula or no data" if each.found is None else f"{each.found:.6g}"
            found.setdefault((rule, each.name), f"{rule}: {each.name} {each.told:.6g}, is {given}")
        if not _described(rule, each.name):
            found.setdefault((rule, each.name), f"{rule}: {each.name} is not in the runbook")
    return tuple(found.values())


def blind(numbers: Iterable[Number], changed: float) -> tuple[str, ...]:
    """The rules' numbers that would mostly agree with the recording, too, if the finding told so many times as much."""
    seen: dict[str, list[bool]] = {}
    for _, _, rule, each in numbers:
        if abs(each.told) * abs(changed - 1) > 2 * TINY:
            other = each._replace(told=each.told * changed)
            seen.setdefault(f"{rule}: {each.name}", []).append(not other.agrees)
    return tuple(name for name, each in seen.items() if len(each) >= MIN_TOLD and sum(each) < len(each) / 2)


@cache
def _described(rule: str, name: str) -> bool:
    """Whether the runbook of the rule says how the number is computed."""
    known = evidence_of(BY_SLUG[rule].runbook)
    return name == "saving_seconds" or any(re.fullmatch(re.sub("<.*>", ".+", each), name) for each in known)


def compare(recording: Path, verdicts: Iterable[Verdict]) -> Iterator[Number]:
    """Every number of every finding, each time that a rule reports new ones; one that merely lingers is not new."""
    lines = list(_lines(recording))
    last: dict[tuple[str, str, str], Any] = {}
    for verdict in verdicts:
        if not verdict.findings:
            continue
        [query] = document([verdict], verdict.at, "")["queries"]
        for finding in query["findings"]:
            key = (verdict.query, finding["rule"], str(finding["component"]))
            if last.get(key) == finding["evidence"]:
                continue
            last[key] = finding["evidence"]
            finding["owned"] = OWNED.get(finding["rule"])
            for compared in recompute(lines, verdict.query, verdict.at, finding):
                yield Number(verdict.at, verdict.query, finding["rule"], compared)


def _lines(recording: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(recording.glob("recording-*")):
        for _, line in numbered_lines(file):
            try:
                yield orjson.loads(line)
            except ValueError:
                continue  # torn
