"""Tables, files and queues: what is unread of them, and what the batches of a query commit to the table of its sink."""

from collections.abc import Iterator, Mapping

from ledgerops.metrics.model import Metric, Series, known
from ledgerops.metrics.throughput import OUTPUT_ROWS
from ledgerops.model.records import TableCommit
from ledgerops.signals.query_view import QueryView


def _by_source(values: Mapping[str, int]) -> Series:
    return {(name,): float(value) for name, value in values.items()}


UNREAD_VERSIONS: Metric[QueryView] = Metric("ledgerops_source_unread_versions",
    "Versions of a table that the query has not read, one that it has read in part included: from the table's own "
    "history.",
    labels=("source",), read=lambda view: _by_source(view.tables.versions))  # fmt: skip
UNREAD_ROWS: Metric[QueryView] = Metric("ledgerops_source_unread_rows",
    "Rows that were not read: of an Iceberg table from its own history, else as the source reports it (Pub/Sub on "
    "Databricks).",
    labels=("source",), read=lambda view: _by_source(view.tables.rows))  # fmt: skip
UNREAD_FILES: Metric[QueryView] = Metric("ledgerops_source_unread_files",
    "Files that were not read: of a table from its own history, else as the source reports it (Auto Loader and Delta "
    "on Databricks). Absent until all unread versions are known, and in the first snapshot of a table.",
    labels=("source",), read=lambda view: _by_source(view.tables.files))  # fmt: skip
UNREAD_BYTES: Metric[QueryView] = Metric("ledgerops_source_unread_bytes",
    "Bytes that were not read: of a table from its own history, else as the source reports it (Delta, Auto Loader, "
    "Kinesis, Kafka and Pub/Sub on Databricks).",
    labels=("source",), read=lambda view: _by_source(view.tables.bytes))  # fmt: skip
SINK_FILES: Metric[QueryView] = Metric("ledgerops_sink_files_total",
    "Files that the query's batches have added to the table or folder of its sink. In a folder, every "
    "tenth batch is not counted: its entry in the sink's log repeats all before it.")  # fmt: skip
SINK_BYTES: Metric[QueryView] = Metric("ledgerops_sink_bytes_total",
    "Bytes of the files that `ledgerops_sink_files_total` counts.")  # fmt: skip
SINK_CHECKPOINT: Metric[QueryView] = Metric("ledgerops_sink_uncheckpointed_versions",
    "Versions of the sink's table since the newest checkpoint of its log: reading the table reads all of them.",
    read=lambda view: known(view.tables.versions_since_checkpoint))  # fmt: skip
METRICS = (UNREAD_VERSIONS, UNREAD_ROWS, UNREAD_FILES, UNREAD_BYTES, SINK_FILES, SINK_BYTES, SINK_CHECKPOINT)


def counts(commit: TableCommit) -> Iterator[tuple[Metric[QueryView], int]]:
    """What a commit adds to which counter. Sinks that commit to a table do not report their rows to Spark."""
    for metric, count in ((OUTPUT_ROWS, commit.rows), (SINK_FILES, commit.files), (SINK_BYTES, commit.bytes)):
        if count is not None:
            yield metric, count
