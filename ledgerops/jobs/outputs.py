"""Reads what a job has committed, without Spark.

Spark's file sink writes the data files of a batch first and then names them in one file of `_spark_metadata`, which
appears whole or not at all. Data files that no such file names belong to a batch that failed or that is still being
written; a reader that takes `*.parquet` would count their rows twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

LOG = "_spark_metadata"
COMPACT = ".compact"  # every tenth file of the log repeats all before it


def committed_files(output: Path) -> list[Path]:
    """The data files in `output` that belong to committed batches, in order of commit; none before the first batch.

    Names are taken relative to `output`, so a folder that was moved since reads the same.
    """
    log = _log(output)
    compacted = [batch for batch, file in log.items() if file.name.endswith(COMPACT)]
    first = max(compacted, default=0)
    # the log holds absolute URLs; the jobs write no partitions, so every file lies directly in the folder
    return [
        output / Path(unquote(entry["path"])).name
        for batch, file in sorted(log.items())
        if batch >= first
        for entry in map(json.loads, file.read_text("utf-8").splitlines()[1:])
        if entry["action"] == "add"
    ]


def last_batch(output: Path) -> int | None:
    """The number of the newest batch committed to `output`; None before the first."""
    return max(_log(output), default=None)


def _log(output: Path) -> dict[int, Path]:
    folder = output / LOG
    if not folder.is_dir():
        return {}
    files = {}
    for file in folder.iterdir():
        number = file.name.removesuffix(COMPACT)
        if number.isdigit():  # besides batches there are checksums and unfinished files, all with a leading dot
            files[int(number)] = file
    return files
