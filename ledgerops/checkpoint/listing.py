"""What the files of checkpoints and the run's recording tell of the state: no Spark is started, nor imported."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from ledgerops.checkpoint.batch_log import is_checkpoint
from ledgerops.checkpoint.operators import Operator
from ledgerops.checkpoint.reader import Checkpoint, open_checkpoint
from ledgerops.errors import UserError
from ledgerops.model import recording
from ledgerops.model.records import Progress
from ledgerops.model.spark_progress import BadRecord, parse_progress

TEMPORARY = "temporary-"  # Spark's prefix (StreamingQueryManager)
MAX_SEGMENTS = 2  # of the recording, the newest: hours


def checkpoints_in(path: Path) -> list[Path]:
    """The checkpoints of a run, whose folder (or folder of checkpoints) `path` is; none when it is no such folder.
    Temporary ones, which Spark makes in the machine's folder for queries without a checkpoint, are of no run."""
    for folder in (path / "checkpoints", path):
        entries = sorted(entry for entry in folder.glob("*") if not entry.name.startswith(TEMPORARY))
        found = [entry for entry in entries if entry.is_dir() and is_checkpoint(entry)]
        if found:
            return found
    return []


def listing(path: Path, checkpoints: list[Path]) -> dict[str, Any]:
    """A document with `jobs`: each with `job`, what `ledgerops state CHECKPOINT --json` begins with, and `error`. The
    `rows` of an operator are those that `rows_batch` left: as the recording says, else as RocksDB's snapshots say."""
    newest = _progress(path if (path / "recording").is_dir() else path.parent)
    jobs: list[dict[str, Any]] = []
    for folder in checkpoints:
        try:
            checkpoint = open_checkpoint(folder)
        except UserError as error:
            jobs.append({"job": folder.name, "checkpoint": str(folder), "operators": [], "error": str(error)})
            continue
        progress = newest.get(checkpoint.query_id or "")
        operators = []
        for operator in checkpoint.operators:
            described = operator_document(checkpoint, operator, checkpoint.committed[-1], [], whole=False)
            batch, rows = _rows(checkpoint, operator, progress)
            operators.append({**described, "rows": rows, "rows_batch": batch, "stores": None})
        jobs.append({"job": folder.name, **head(checkpoint), "operators": operators, "error": None})
    return {"version": 1, "run": str(path), "jobs": jobs}


def head(checkpoint: Checkpoint) -> dict[str, Any]:
    """What holds for the whole checkpoint."""
    return {
        "version": 1,
        "checkpoint": str(checkpoint.path),
        "query_id": checkpoint.query_id,
        "provider": checkpoint.provider,
        "batch": checkpoint.committed[-1],
        "kept": {"first": checkpoint.kept[0], "last": checkpoint.kept[-1], "batches": len(checkpoint.kept)},
        "operators": [],
    }


def operator_document(
    checkpoint: Checkpoint, operator: Operator, batch: int, stores: list[dict[str, Any]], whole: bool
) -> dict[str, Any]:
    """An operator with its files; its rows are known when all its stores were read."""
    counted = [store["keys"] if store["kind"] == "list" else store["rows"] for store in stores if store["counted"]]
    files = []
    for (partition, store), found in sorted(checkpoint.of(operator).items()):
        snapshot = found.snapshot_for(batch + 1)
        files.append(
            {
                "partition": partition,
                "store": store,
                "bytes": found.snapshot_bytes + found.change_bytes,
                "snapshot_bytes": found.snapshot_bytes,
                "change_bytes": found.change_bytes,
                "snapshot_batch": None if snapshot is None else snapshot - 1,
                "snapshot_age": None if snapshot is None else batch + 1 - snapshot,
            }
        )
    return {
        "operator": operator.id,
        "name": operator.name,
        "partitions": operator.partitions,
        "format": operator.format_version(checkpoint.conf),
        "rows": sum(counted) if whole else None,
        "bytes": sum(file["bytes"] for file in files),
        "files": files,
        "stores": stores,
    }


def _rows(checkpoint: Checkpoint, operator: Operator, progress: Progress | None) -> tuple[int | None, int | None]:
    """(batch, rows): of the newest batch of which both are known without reading the state."""
    # the record has names and no ids: two operators of one name cannot be distinguished
    named = [seen for seen in progress.operators if seen.name.split("-")[0] == operator.name] if progress else []
    if progress is not None and len(named) == 1:
        return progress.batch_id, named[0].rows
    counted = {view.store for view in operator.views if view.counted}
    stores = [files for (_, store), files in checkpoint.of(operator).items() if store in counted]
    common = set.intersection(*({*files.snapshots} for files in stores)) if stores else set()
    for version in sorted(common, reverse=True):
        rows = [files.snapshot_rows(version) for files in stores]
        if all(number is not None for number in rows):
            return version - 1, sum(number for number in rows if number is not None)
    return None, None


def _progress(run: Path) -> dict[str, Progress]:
    """The last batch of each query id in the run's recording."""
    newest: dict[str, Progress] = {}
    for segment in sorted((run / "recording").glob("recording-*.jsonl"))[-MAX_SEGMENTS:]:
        with suppress(UserError):
            for seen in recording.read(segment):
                if seen.kind == "progress":
                    with suppress(BadRecord):
                        progress = parse_progress(seen.data)
                        newest[progress.query_id] = progress
    return newest
