"""Reads what a job has committed to a folder, without Spark.

Three layouts. A Delta table has its log. Spark's file sink writes the data files of a batch first and then names them
in one file of `_spark_metadata`, which appears whole or not at all. Jobs that are written batch by batch have a folder
`batch=N` for each, renamed to that when it is whole. Other data files belong to a batch that failed or that is still
being written; a reader that takes all `*.parquet` would count their rows twice. With a job's `route`, files lie one
folder deeper, in `COLUMN=VALUE`.
"""

import json
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ledgerops.checkpoint.batch_log import COMPACT, metadata_log
from ledgerops.errors import UserError
from ledgerops.input_files import read_text
from ledgerops.ledger.sinks import delta_files

LOG = "_spark_metadata"
BATCH = "batch="


def committed_files(output: Path) -> list[Path]:
    """The data files in `output` that belong to committed batches, in order of commit; none before the first batch.

    Names are taken relative to `output`, so a folder that was moved since reads the same. Raises UserError for a log
    that is damaged.
    """
    if (output / delta_files.LOG).is_dir():
        return delta_files.live_files(output)
    log = metadata_log(output / LOG)
    compacted = [batch for batch, file in log.items() if file.name.endswith(COMPACT)]
    first = max(compacted, default=0)
    named = [path for batch, file in sorted(log.items()) if batch >= first for path in _added(output, file)]
    return named + [file for _, folder in sorted(_batches(output).items()) for file in _data_files(folder)]


def last_batch(output: Path) -> int | None:
    """The number of the newest batch committed to `output`; None before the first."""
    return max([*metadata_log(output / LOG), *_batches(output)], default=None)


def batch_folder(output: Path, batch: int) -> Path:
    """Where the files of a batch lie in the layout by batches."""
    return output / f"{BATCH}{batch}"


def _added(output: Path, file: Path) -> list[Path]:
    try:
        entries = [json.loads(line) for line in read_text(file).splitlines()[1:]]
        return [_within(output, entry["path"]) for entry in entries if entry["action"] == "add"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"cannot read {file} ({type(error).__name__}: {error}); the output is damaged") from None


def _within(output: Path, url: str) -> Path:
    # the log holds absolute URLs: what counts is the file's name, and its folder if that is one of a route
    path = PurePosixPath(unquote(url))
    folder = output / path.parent.name
    return folder / path.name if "=" in folder.name and folder.is_dir() else output / path.name


def _data_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("[!._]*.parquet"))


def _batches(output: Path) -> dict[int, Path]:
    numbers = ((folder.name.removeprefix(BATCH), folder) for folder in output.glob(f"{BATCH}*"))
    return {int(number): folder for number, folder in numbers if number.isdecimal()}
