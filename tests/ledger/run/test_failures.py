"""What a query died of, in Spark's words and in ours."""

from pathlib import Path

import pytest

from ledgerops.ledger.run.failures import cause, incompatible
from tests.tables import cases

CHECKPOINT = Path("runs/kafka/checkpoints/daily_counts")
KEYS = """[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key schema.
Please check number and type of fields.
Existing key_schema=StructType(StructField(window,StructType(StructField(start,TimestampType,true),StructField(end,\
TimestampType,true)),false),StructField(customer_id,StringType,true)) and new key_schema=StructType(StructField(\
customer_id,IntegerType,true)).
If you want to force running the query without schema validation, please set x to false."""
VALUES = """[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match existing state value schema.
Existing value_schema=StructType(StructField(count,LongType,false),StructField(sum,DecimalType(28,2),true)) and new \
value_schema=StructType(StructField(count,LongType,false))."""
OPERATORS = """[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator does not match.
Stateful operators in the metadata: [(OperatorId: 0 -> OperatorName: stateStoreSave)]; Stateful operators in current \
batch: []. SQLSTATE: 42K03"""
WAYS = (
    "; restore the earlier version of the job, or start over with empty state: --fresh (with Kafka also --start TIME)"
)


# what Spark says -> what is said of it
@cases(
    "error, what",
    ("another key", KEYS, "the keys of its state (the columns of its grouping or join) changed since it was written "
     "(window <start timestamp, end timestamp>, customer_id string; now customer_id integer)"),
    ("another value", VALUES, "the values in its state (the columns kept for each key) changed since it was written "
     "(count long, sum decimal(28, 2); now count long)"),
    ("an operator less", OPERATORS, "its stateful operators changed since it was written (stateStoreSave; now none)"),
)  # fmt: skip
def test_state_of_another_version_is_told_with_what_changed_and_the_two_ways_on(error, what):
    told = incompatible("daily_counts", CHECKPOINT, error)
    assert told == f"daily_counts cannot resume from {CHECKPOINT}: {what}{WAYS}"


@pytest.mark.parametrize(
    "error", ["", "java.lang.OutOfMemoryError", "Job aborted due to stage failure: divide by zero"]
)
def test_other_failures_say_nothing_of_state(error):
    assert incompatible("daily_counts", CHECKPOINT, error) is None


KAFKA = "org.apache.kafka.common.errors.TimeoutException: "
IN_A_WORKER = (
    "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink.\n"
    'Traceback (most recent call last):\n  File "x.py", line 1, in write\n'
    "ledgerops.errors.UserError: the table large_credits lacks the column amount\nmore"
)


@cases(
    "error, told",
    ("the first line that says something", "\n=== Streaming Query ===\n  boom  \nmore", "boom"),
    ("nothing", "", "unknown error"),
    ("without the class", "java.lang.IllegalStateException: no such thing", "no such thing"),
    ("the class where it is all", "java.lang.OutOfMemoryError", "java.lang.OutOfMemoryError"),
    ("what ledgerops said", IN_A_WORKER, "the table large_credits lacks the column amount"),
    (
        "a broker that stayed away, with what to do",
        f"{KAFKA}Timed out waiting for a node. Call: listNodes\n=== Streaming Query ===\nIdentifier: large_credits",
        "Kafka did not answer in time (Timed out waiting for a node. Call: listNodes); "
        "start again when the broker is back; nothing is lost",
    ),
)
def test_the_cause_of_a_failure_is_one_line(error, told):
    assert cause(error) == told


def test_records_that_were_deleted_unread_are_told_with_the_flag():
    error = "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost because they are not available"
    assert cause(f"{error} in Kafka any more;\neither the data was aged out by Kafka or ...").endswith(
        "; records were deleted before they were read; --allow-data-loss continues without them"
    )
