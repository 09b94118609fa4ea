"""Whether the numbers of findings are true: each is computed again from the recording, by other code."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import zstandard

from ledgerops.diagnosis.report import document
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.diagnosis.runbook import evidence_of
from ledgerops.model.finding import Verdict
from tests.evidence.recompute import Compared, recompute


class Number(NamedTuple):
    """One number of one finding: when it was reported, for which query and rule, and what the recording gives."""

    at: float
    query: str
    rule: str
    compared: Compared


def wrong_numbers(recording: Path, verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """One line for each rule and number that differs from the recording, with its first instance."""
    found: dict[tuple[str, str], str] = {}
    for number in compare(recording, verdicts):
        each = number.compared
        if not each.agrees:
            given = "no formula or no data" if each.found is None else f"{each.found:.6g}"
            found.setdefault((number.rule, each.name), f"{number.rule}: {each.name} {each.told:.6g}, is {given}")
        if not _described(number.rule, each.name):
            found.setdefault((number.rule, each.name), f"{number.rule}: {each.name} is not in the runbook")
    return tuple(found.values())


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
            for compared in recompute(lines, verdict.query, verdict.at, finding):
                yield Number(verdict.at, verdict.query, finding["rule"], compared)


def _lines(recording: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(recording.glob("recording-*")):
        data = file.read_bytes()
        if file.suffix == ".zst":
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
                data = reader.read()
        for line in data.splitlines():
            try:
                yield orjson.loads(line)
            except ValueError:
                continue  # torn
