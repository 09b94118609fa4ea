"""Where the outputs of a run are, and the manifest to compare them with."""

import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.input_files import read_text
from ledgerops.ledger.jobs import JOBS
from ledgerops.ledger.plan.manifest import Manifest, read_manifest, replay_manifest
from ledgerops.ledger.plan.record_stream import ReplayStream
from ledgerops.ledger.sources.kafka import TOPICS
from ledgerops.ledger.verify.outputs import KafkaOutput, Output, ParquetOutput, PostgresOutput, postgres

Found = tuple[str, Callable[[], Output]]  # the job's name, and its output when it is wanted


def find_manifest(run: Path | None, given: Path | None, data: Path | None) -> tuple[Manifest, Path]:
    """The manifest that was given, the run's own, that of the last load beside it, or the replayed file's, and where.

    Raises UserError when there is none, or when its counts are not exact.
    """
    manifest, file = _find(run, given, data)
    if not manifest.exact:
        raise UserError(
            "the manifest is of a load with rejected records, so it is not known what arrived; repeat the load"
        )
    if manifest.table != "transactions":
        raise UserError(f"the manifest is of {manifest.table}; verify needs one of transactions")
    return manifest, file


def _find(run: Path | None, given: Path | None, data: Path | None) -> tuple[Manifest, Path]:
    if given is not None:
        return read_manifest(given), given
    if run is None:
        raise UserError("nothing to compare with; give --manifest FILE, as written by ledgerops load")
    if (own := run / "manifest.json").is_file():
        return read_manifest(own), own
    source, topics = _source(run)
    if source in ("kafka", "files") and (beside := run.parent / "manifest.json").is_file():
        manifest = read_manifest(beside)
        if _is_read(manifest.topic, source, topics):
            return manifest, beside
    if source == "replay" and data is not None:
        stream = ReplayStream(data / "transactions.csv", 1.0)
        return replay_manifest(stream), stream.file
    wanted = "set LEDGEROPS_DATA or give --data FOLDER" if source == "replay" else "give --manifest FILE"
    raise UserError(f"no manifest in {run}, so there is nothing to compare with; {wanted}")


def _source(run: Path) -> tuple[str | None, Collection[str]]:
    """What the run reads, and from which of Kafka's topics."""
    try:
        note = json.loads(read_text(run / "run.json"))
        return str(note.get("source")), dict(note.get("topics", {}))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None, ()


def _is_read(topic: str | None, source: str, topics: Collection[str]) -> bool:
    """Whether the run can have read a load that was sent to `topic`, or to a folder where it is None."""
    if topic is None:
        return source == "files"
    prefix = topic.removesuffix("transactions")
    return any(prefix + each in topics for each in TOPICS.values())


def in_folder(run: Path) -> list[Found]:
    """The jobs with a folder in the run's output. Raises UserError when there is no run, or it wrote elsewhere."""
    if not run.is_dir():
        raise UserError(f"no run at {run}; give the folder of a run, such as runs/default")
    folders = sorted(folder for folder in (run / "output").glob("[!._]*") if folder.is_dir())
    if not folders:
        raise UserError(
            f"no output in {run}; for a run that wrote to Kafka or Postgres add --bootstrap-servers or --postgres"
        )
    return [(folder.name, partial(ParquetOutput, folder)) for folder in folders]


def in_kafka(client: KafkaClient, prefix: str, wanted: Collection[str]) -> list[Found]:
    """The jobs whose topics exist. Raises UserError if there are none."""
    there = {name: len(topic.partitions) for name, topic in reach(client).list_topics(timeout=10).topics.items()}
    found: list[Found] = [
        (job, partial(KafkaOutput, client, {name: there[name] for name in topics}))
        for job, topics in _names(wanted, there, prefix)
    ]
    if not found:
        raise UserError(f"no output topic of a job at {client.servers}; check --topic-prefix")
    return found


def in_postgres(url: str, wanted: Collection[str]) -> list[Found]:
    """The jobs whose tables exist. Raises UserError if there are none, or if no server answers."""
    with postgres(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
    there = {name for (name,) in rows}
    found: list[Found] = [
        (job, partial(PostgresOutput, url, tables)) for job, tables in _names(wanted, there, inputs=())
    ]
    if not found:
        raise UserError("no output table of a job in the database of --postgres")
    return found


def _names(
    wanted: Collection[str], there: Collection[str], prefix: str = "", inputs: Collection[str] = tuple(TOPICS.values())
) -> Iterator[tuple[str, list[str]]]:
    """The jobs with outputs among the names `there`, and these. Routes may be topics of the input, too: then the job
    must be asked for."""
    for job in JOBS:
        names = job.routes if job.route else (job.name,)
        found = [prefix + name for name in names if prefix + name in there]
        if found and (job.name in wanted or (not wanted and not set(names) & set(inputs))):
            yield job.name, found
