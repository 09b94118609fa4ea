"""The manifest of a load: exactly what was sent, as one JSON file that `ledgerops verify` compares outputs with.

```json
{"version": 1, "source": "plan", "plan": "default", "digest": "...", "seed": 7, "origin": 1700000000.0, "text": "...",
 "table": "transactions", "topic": "transactions", "records": 50000,
 "sent": {"planned": 50050, "acknowledged": 50050, "refused": 0, ...}, "exact": true, "poison": {"invalid_json": 50},
 "summary": {"rows": 50000, "distinct": 49510, "duplicates": 490, "conflicting": 0, "late": {...}, "future": {...},
             "all_rows": {...}, "distinct_rows": {...}, "buckets": {...}}}
```

`records` is n: the records numbered 0 to n - 1 were sent, and no other. Plan, seed and origin give each of them again,
so nothing is kept for a row. `exact` is false when a record was refused or its delivery is not known: then nobody can
tell from this file what arrived. The digests are explained in `digest`: counts and digests together tell lost,
repeated and changed rows.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledgerops.common.files import write_json
from ledgerops.errors import UserError, cannot_read, cannot_write
from ledgerops.input_files import read_text
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, ReplayStream, Stream
from ledgerops.ledger.plan.summary import Summary

VERSION = 1
MAX_RECORDS = 2**40  # a million a second for twelve days
MAX_EPOCH_SECONDS = 2**36  # seconds since the epoch: in the year 4147


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _whole(value) and 0 <= value <= MAX_RECORDS


def _text(value: object) -> bool:
    return isinstance(value, str)


def is_instant(value: Any) -> bool:
    """Whether a value of JSON can be seconds since the epoch."""
    return (_whole(value) or isinstance(value, float)) and 0 <= value <= MAX_EPOCH_SECONDS


# by field: what it must be, and whether a value is that
FORM: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "source": ("plan or replay", lambda value: value in ("plan", "replay")),
    "plan": ("text", _text),
    "digest": ("text", _text),
    "table": ("text", _text),
    "topic": ("text or null", lambda value: value is None or _text(value)),
    "records": ("a count of records", _count),
    "seed": ("a whole number or null", lambda value: value is None or _whole(value)),
    "origin": ("seconds since the epoch or null", lambda value: value is None or is_instant(value)),
    "text": ("text or null", lambda value: value is None or _text(value)),
    "data": ("text or null", lambda value: value is None or _text(value)),
    "poison": ("counts by reason", lambda value: isinstance(value, dict) and all(map(_count, value.values()))),
    "sent": ("an object", lambda value: isinstance(value, dict)),
    "exact": ("true or false", lambda value: isinstance(value, bool)),
}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """See the module. `origin` is in seconds since the epoch; a replay has none, and the text of no plan."""

    source: str  # "plan" or "replay"
    plan: str  # its name, or the name of the file
    digest: str  # of the plan's meaning, or of the file
    table: str
    topic: str | None
    records: int
    summary: Summary
    seed: int | None = None
    origin: float | None = None
    text: str | None = None
    data: str | None = None  # folder of the file that was replayed
    poison: Mapping[str, int] = field(default_factory=dict)  # by reason
    sent: Mapping[str, Any] = field(default_factory=dict)  # how it went, see load.generator.request and .report
    exact: bool = True

    def write(self, file: Path) -> None:
        """Writes the manifest under a temporary name, then renames it. Raises UserError if it cannot be written."""
        document = {"version": VERSION, **vars(self), "summary": self.summary.document()}
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, document, indent=1)
        except OSError as error:
            raise cannot_write(file, error) from None

    def stream(self, data: Path | None) -> Stream | None:
        """The records again; `data` is the folder of a replayed file, by default the one that the sender read.

        None when they cannot be had, because the file is not there or has changed.
        """
        if self.source == "plan":
            if self.text is None or self.origin is None:
                return None
            return PlanStream(parse_plan(self.text, self.plan), self.origin, self.table)  # type: ignore[arg-type]
        folder = data if data is not None else Path(self.data) if self.data is not None else None
        if folder is None or not (folder / self.plan).is_file():
            return None
        file = folder / self.plan
        replayed = ReplayStream(file, 1.0, self.table)  # type: ignore[arg-type]
        return replayed if replayed.digest == self.digest else None


def read_manifest(file: Path) -> Manifest:
    """The manifest in `file`. Raises UserError if it is not a manifest, or of an unknown version."""
    try:
        document: dict[str, Any] = json.loads(read_text(file))
        version = document.pop("version")
    except OSError as error:
        raise cannot_read(file, error, "give --manifest") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"cannot read {file}: not a manifest; ledgerops load writes them") from None
    if version != VERSION:
        raise UserError(f"cannot read {file}: a manifest of version {version}; this ledgerops reads version {VERSION}")
    try:
        summary = _summary(document.pop("summary"))
        _check(document)
        return Manifest(**document, summary=summary)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"cannot read {file}: a damaged manifest ({error})") from None


def _summary(document: dict[str, Any]) -> Summary:
    found = Summary.read(document)
    counts = [found.all.rows, found.distinct.rows, found.late, found.future, found.conflicting]
    counts += [each.rows for each in found.buckets.values()]
    if not all(map(_count, counts)) or not all(map(_whole, found.buckets)):
        raise ValueError("summary: its counts are not whole numbers")
    return found


def _check(document: Mapping[str, Any]) -> None:
    """Raises ValueError for a field that is not what it must be."""
    for name, value in document.items():
        if name not in FORM:
            raise ValueError(f"no field {name!r} is known")
        words, fits = FORM[name]
        if not fits(value):
            raise ValueError(f"{name}: expected {words}, got {value!r:.40}")


def replay_manifest(stream: ReplayStream) -> Manifest:
    """What a replay of the file gives, as if it had been sent."""
    rows = stream.rows(0, stream.total or 0)
    return Manifest(
        source="replay",
        plan=stream.file.name,
        digest=stream.digest,
        table=stream.table,
        topic=None,
        records=len(rows.numbers),
        summary=Summary.of([rows]),
    )
