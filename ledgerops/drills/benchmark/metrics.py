"""The scrapes of a drill as a table: what a Prometheus server would have stored of them."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families
from pyarrow import parquet

from ledgerops.drills.harness.watching import SCRAPES_FILE
from ledgerops.errors import UserError, cannot_read
from ledgerops.metrics import verdict

INSTANCE = "driver"
# what a tool is tested on must not have our own answers in it
VERDICTS = tuple(
    metric.name
    for metric in (
        verdict.FINDING, verdict.ROOT_CAUSE, verdict.ROOT_CAUSE_INFO, verdict.ROOT_CAUSE_SINCE, verdict.HEALTH,
        verdict.STATUS,
    )
)  # fmt: skip


class Sample(NamedTuple):
    """One value of one series; `labels` is JSON with sorted keys."""

    time: float  # of the scrape, epoch seconds
    metric: str
    labels: str
    value: float


def samples(folder: Path, clean: Callable[[str], str]) -> Iterator[Sample]:
    """What the scrapes of a drill read, in their order, with `up` for each. `clean` is applied to each text. Raises
    UserError when the drill was not scraped, or when a scrape cannot be read."""
    file = folder / SCRAPES_FILE
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            scrapes = [json.loads(line) for line in lines]
    except OSError as error:
        raise cannot_read(file, error) from None
    except (ValueError, EOFError):
        raise UserError(f"cannot read {file}: not a file of scrapes; run the drill again") from None
    for scrape in scrapes:
        try:
            own = {"instance": INSTANCE, "job": scrape["job"]}
            for family in text_string_to_metric_families(clean(scrape.get("text", ""))):
                for name, labels, value, *_ in family.samples:
                    if not name.startswith(VERDICTS):
                        yield Sample(scrape["at"], name, _json(labels | own), float(value))
            yield Sample(scrape["at"], "up", _json(own), float("text" in scrape))
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"cannot read {file}: not a scrape ({error}); run the drill again") from None


def _json(labels: dict[str, str]) -> str:
    return json.dumps(labels, sort_keys=True)


def write_parquet(found: list[Sample], file: Path) -> None:
    """Writes samples as Parquet: dictionaries for the repeated texts, in zstd."""
    kinds = (pa.float64(), pa.string(), pa.string(), pa.float64())
    table = pa.Table.from_pylist([each._asdict() for each in found], pa.schema(zip(Sample._fields, kinds, strict=True)))
    parquet.write_table(table, file, compression="zstd", compression_level=19, use_dictionary=["metric", "labels"])
