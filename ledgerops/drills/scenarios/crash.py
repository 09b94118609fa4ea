"""F14, query crash: a row cannot be parsed in FAILFAST mode. Nothing restarts the query."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import dies

# the one row that is dated an hour ahead is the poison: the same at each attempt, as a bad record in a topic is
PLAN = """
seed: 44
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 150}]
changes:
  - {from: 45s, to: 90s, disorder: {future: {count: 1, ahead: 1h}}}
"""
POISON = "event_time > current_timestamp() + INTERVAL 30 MINUTES"


def parsed(rows: DataFrame) -> DataFrame:
    """The rows as JSON text, the poison cut short, and read again by a reader that takes no nonsense."""
    text = F.to_json(F.struct("transaction_id", "account_id"))
    cut = rows.select(F.when(F.expr(POISON), F.substring(text, 1, 20)).otherwise(text).alias("text"))
    read = F.from_json("text", "transaction_id string, account_id string", {"mode": "FAILFAST"})
    return cut.select(read.alias("row")).select("row.*")


DRILL = Drill(
    name="crash",
    id="F14a",
    summary="one record that cannot be parsed ends the query",
    start=lambda app: app.query(parsed(app.rows(PLAN))),
    effect=dies(),
    fault_seconds=20.0,
    recovery_seconds=5.0,
    recovers=False,
    truth=cause(
        "query-failed", component=("query=MALFORMED_RECORD",), remedy="same checkpoint", may=("freshness-breach",)
    ),
)
