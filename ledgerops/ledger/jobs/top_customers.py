"""Top customers: the three customers with the most transactions in a week.

Reads `transactions`, writes three rows for each window of seven days (fewer if there were fewer customers) once the
watermark has passed its end: the ranks 1 to 3. Of customers with equally many transactions the one with the larger sum
comes first, then the one with the lesser id. Windows are counted from 1 January 1970, so they begin on a Thursday,
midnight UTC, as Flink's do.
State: one row for each customer and open week. The second aggregation, which ranks them, is handed a week's customers
and writes them in one and the same batch; its state, one row with all customers of the week, is gone by the end of it.
Watermark: the largest event time seen, less the lateness; rows of a week that has been closed are dropped. The last
week stays in state until newer rows arrive.
Restart: open weeks come back with the checkpoint; a week is written once.
Upgrade: the lateness and the number of ranks may change at a restart; the window, the key, the order and the aggregates
may not (begin with a new checkpoint and output).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job

WINDOW = "7 days"
MAX_RANKS = 3


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; window_start, window_end, rank, customer_id, transactions (count) and amount (sum) out."""
    customers = (
        transactions.withWatermark("event_time", lateness)
        .groupBy(F.window("event_time", WINDOW), "customer_id")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
    )
    # streams have no ranking functions; an array is sorted by the fields of its structs, in their order, upwards only
    order = F.struct(
        (-F.col("transactions")).alias("fewer"), (-F.col("amount")).alias("less"), F.col("customer_id").alias("id")
    )
    return (
        customers.groupBy("window")
        .agg(F.slice(F.sort_array(F.collect_list(order)), 1, MAX_RANKS).alias("ranked"))
        .select("window", F.posexplode("ranked").alias("place", "one"))
        .selectExpr(
            *("window.start AS window_start", "window.end AS window_end", "place + 1 AS rank", "one.id AS customer_id"),
            *("-one.fewer AS transactions", "-one.less AS amount"),
        )
    )


JOB = Job(
    name="top_customers",
    group="windows",
    summary=f"The {MAX_RANKS} customers with the most transactions in {WINDOW}.",
    transform=transform,
    stateful=True,
    key="customer_id",
    lateness=LATENESS,
)
