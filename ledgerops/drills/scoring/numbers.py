"""Whether the numbers of a bundle's findings are true: each is computed again from the recording, by other code."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
import zstandard

from ledgerops.diagnosis.report import document
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.scoring.recompute import Compared, recompute
from ledgerops.drills.scoring.replay import looks
from ledgerops.model.finding import Verdict

Said = Callable[[Bundle], Iterator[Verdict]]


class Number(NamedTuple):
    """One number of one finding: when it was told, of what, and what the recording gives."""

    at: float
    query: str
    rule: str
    compared: Compared


def wrong(bundle: Bundle, said: Said = looks) -> tuple[str, ...]:
    """One line for each rule and number that the recording does not give, with the first instance of it."""
    found: dict[tuple[str, str], str] = {}
    for number in check(bundle, said):
        each = number.compared
        if not each.agrees:
            given = "no formula or no data" if each.found is None else f"{each.found:.6g}"
            found.setdefault((number.rule, each.name), f"{number.rule}: {each.name} {each.told:.6g}, is {given}")
    return tuple(found.values())


def check(bundle: Bundle, said: Said = looks) -> Iterator[Number]:
    """Every number of every finding, each time that a rule told new ones. A finding that merely lingers is not new."""
    lines = list(_lines(bundle))
    told: dict[tuple[str, str, str], Any] = {}
    for verdict in said(bundle):
        if not verdict.findings:
            continue
        [query] = document([verdict], verdict.at, "")["queries"]
        for finding in query["findings"]:
            key = (verdict.query, finding["rule"], str(finding["component"]))
            if told.get(key) == finding["evidence"]:
                continue
            told[key] = finding["evidence"]
            for compared in recompute(lines, verdict.query, verdict.at, finding):
                yield Number(verdict.at, verdict.query, finding["rule"], compared)


def _lines(bundle: Bundle) -> Iterator[dict[str, Any]]:
    for file in sorted(bundle.recording.glob("recording-*")):
        data = file.read_bytes()
        if file.suffix == ".zst":
            with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
                data = reader.read()
        for line in data.splitlines():
            try:
                yield orjson.loads(line)
            except ValueError:
                continue  # torn
