"""Dead letters: what a source could not read as a row, kept with the reason, to be looked at and sent again.

Reads `rejects`, the records of every topic (or landing folder) that are no row of their table, and writes each once:
reason and detail, where it came from (topic, partition, offset, and when), its key, the first MAX_VALUE_BYTES bytes of
its value and the length of all of it. Only Kafka and landing folders have rejects; for a file, `topic` is folder and
file name.
State: none. Watermark: none.
Restart: goes on with the first record that was not committed. Upgrade: rules and columns may change at any restart;
what was written before stays as it was judged then.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import Job

MAX_VALUE_BYTES = 1024  # enough to recognise a record by, and no flood of large ones


def transform(rejects: DataFrame) -> DataFrame:
    """Rejects in; one row for each out."""
    return rejects.select(
        *("reason", "detail", "topic", "partition", "offset", "timestamp", "key"),
        F.substring("value", 1, MAX_VALUE_BYTES).alias("value"),
        F.octet_length("value").alias("value_length"),
    )


JOB = Job(
    name="dead_letters",
    group="sql",
    summary="Every record that cannot be parsed as a row of its table, with the reason.",
    transform=transform,
    stateful=False,
    inputs=("rejects",),
    event_time="timestamp",
)
