"""Operation words: every word of a transaction's operation, in a row of its own.

Reads `transactions`, writes one row for each word of `operation`: its position from 1, the word and its length in
characters. Words are what stands between white space; an operation that is null or blank gives no row.
State: none. Watermark: none, so no row is ever too late.
Restart: goes on with the first row that was not committed. Upgrade: what counts as a word may change at any restart;
rows already written stay.

The table function is a Python one, row by row, joined laterally: Spark 4.2 refuses an Arrow table function there
(LATERAL_JOIN_WITH_ARROW_UDTF_UNSUPPORTED), on streams as on tables.
"""

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import Job


class Words:
    """The table function: text in, one row for each of its words out."""

    def eval(self, text: str | None) -> Iterator[tuple[int, str, int]]:
        for position, word in enumerate((text or "").split(), start=1):
            yield position, word, len(word)


def transform(transactions: DataFrame) -> DataFrame:
    """Transactions in; transaction_id, customer_id, event_time, position, word and length out."""
    words = F.udtf(Words, returnType="position INT, word STRING, length INT")
    rows = transactions.select("transaction_id", "customer_id", "event_time", "operation")
    return rows.lateralJoin(words(F.col("operation").outer())).drop("operation")


JOB = Job(
    name="operation_words",
    group="udfs",
    summary="One row for each word of a transaction's operation.",
    transform=transform,
    stateful=False,
)
