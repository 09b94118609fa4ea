"""Some records of a load with their times, one JSON line each, and the latency of each leg of their way as histograms.

```json
{"number": 42000, "transaction_id": "T0000042000", "scheduled": 1700000000.84, "created": 1700000000.846,
 "acknowledged": 1700000000.861, "appended": 1700000000.858}
```

Times are seconds since the epoch. `scheduled`: when the plan wanted it sent (null when sent at once); `created`: handed
to the producer; `acknowledged`: the sender heard that all replicas have it (a landing folder: the file has its name);
`appended`: the broker's own time, of a topic with message.timestamp.type=LogAppendTime, else null. Only a transaction's
first record is sampled, so an id occurs once; ad events have none. Join by the id with what a job wrote for a fourth
time, seen at the sink.

Latency from `scheduled` is what a reader of the data feels, and counts the sender's own delays in (corrected, as in
Gil Tene's wrk2); that from `created` leaves them out (uncorrected). Where both differ, the sender was the bottleneck.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ledgerops.errors import UserError, cannot_write
from ledgerops.ledger.plan.seeded_hash import mixed

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

    from ledgerops.ledger.plan.record_stream import Rows, Stream

SAMPLES_PER_SECOND = 100  # of 9,000 in 90 s, nine are above the p99.9
_MAX_MICROS = 3_600_000_000  # an hour; what took longer counts as that
_DIGITS = 3
# name -> from which time to which
LEGS: Mapping[str, tuple[str, str]] = {
    "append": ("created", "appended"),
    "acknowledge": ("created", "acknowledged"),
    "acknowledge_corrected": ("scheduled", "acknowledged"),
}


@dataclass(slots=True)
class LatencySample:
    """A record whose times are kept. `due`: seconds after the beginning."""

    place: int  # among the records it is made with
    number: int
    transaction_id: str | None
    due: float | None
    sampler: Sampler
    created: float = 0.0


class Sampler:
    """Picks every `every`-th record and writes its times to `file`; the histograms are in `legs`."""

    def __init__(self, every: int, file: Path, at_once: bool = False) -> None:
        """Raises UserError when the file cannot be written or the library of histograms is missing."""
        self.every = every
        self._at_once, self._began = at_once, 0.0
        self.legs = {name: histogram() for name in LEGS}
        self._file = file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._out: IO[str] = file.open("w", encoding="utf-8")
        except OSError as error:
            raise cannot_write(file, error) from None

    def begin(self, at: float) -> None:
        """Sets when the schedule began, in seconds since the epoch."""
        self._began = at

    def pick(self, numbers: NDArray[np.int64], rows: Rows, due: NDArray[np.float64]) -> list[LatencySample]:
        """The samples among the records of these rows, in their order; `numbers` and `due` are those of the records."""
        # by a hash: partitions and workers have the records of one remainder each
        mixed_numbers = mixed(rows.numbers.astype(np.uint64))
        chosen = np.flatnonzero((mixed_numbers % np.uint64(self.every) == 0) & rows.first)
        named = "transaction_id" in rows.batch.schema.names
        samples = []
        for row in chosen.tolist():
            number = int(rows.numbers[row])
            place = int(np.searchsorted(numbers, number))
            id = str(rows.batch.column("transaction_id")[row]) if named else None
            samples.append(LatencySample(place, number, id, None if self._at_once else float(due[place]), self))
        return samples

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            with suppress(OSError):  # what found no room finds none now
                self._out.close()
            raise cannot_write(self._file, error) from None

    def keep(self, sample: LatencySample, acknowledged: float, appended: float | None) -> None:
        """Writes a sample once the target has its record. Times are seconds since the epoch; `appended` is None if the
        broker did not report it. Raises UserError if the file cannot be written."""
        times = {
            "scheduled": None if sample.due is None else round(self._began + sample.due, 6),
            "created": round(sample.created, 6),
            "acknowledged": round(acknowledged, 6),
            "appended": appended,
        }
        with self._reporting_errors():
            row = {"number": sample.number, "transaction_id": sample.transaction_id, **times}
            self._out.write(json.dumps(row) + "\n")
        for name, into in self.legs.items():
            begin, end = (times[time] for time in LEGS[name])
            if begin is not None and end is not None:  # between two machines' clocks it may be negative
                into.record_value(min(max(1, round((end - begin) * 1e6)), _MAX_MICROS))

    def close(self) -> None:
        """Closes the file. Raises UserError if its last lines cannot be written."""
        with self._reporting_errors():
            self._out.close()


def every(stream: Stream, records: int | None) -> int:
    """Of how many records one is sampled, for SAMPLES_PER_SECOND over the load or over its first minute."""
    if records:
        last = float(stream.due_time(np.array([records - 1]))[0])
        rate = records / max(last, 1.0)
    else:
        rate = stream.due(60.0) / 60.0
    return max(1, round(rate / SAMPLES_PER_SECOND))


def part_of(file: Path, number: int) -> Path:
    """The file of one of several senders: samples.jsonl is samples-0.jsonl, samples-1.jsonl, ..."""
    return file.with_name(f"{file.stem}-{number}{file.suffix}")


def gather(file: Path, count: int) -> None:
    """Joins the files of `count` senders into one and removes them. Raises UserError if it cannot be written."""
    try:
        with file.open("wb") as whole:
            for part in (part_of(file, number) for number in range(count)):
                if part.is_file():
                    whole.write(part.read_bytes())
                    part.unlink()
    except OSError as error:
        raise cannot_write(file, error) from None


def histogram(encoded: Iterable[str] = ()) -> HdrHistogram:
    """A histogram of microseconds up to an hour, exact to three digits; the sum of the `encoded` ones."""
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError:
        raise UserError("samples need hdrhistogram: pip install 'ledgerops[load]'") from None
    made = HdrHistogram(1, _MAX_MICROS, _DIGITS)
    for each in encoded:
        made.decode_and_add(each)
    return made


def percentile(histogram: HdrHistogram, share: float) -> float | None:
    """The percentile in seconds; `share` is 0 to 1. None without samples."""
    return histogram.get_value_at_percentile(100 * share) / 1e6 if histogram.get_total_count() else None
