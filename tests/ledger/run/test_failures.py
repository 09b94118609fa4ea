"""What a query died of, in Spark's words and in ours."""

from pathlib import Path

import pytest

from ledgerops.ledger.run.failures import cause, incompatible
from tests.tables import cases

CHECKPOINT = Path("runs/kafka/checkpoints/daily_counts")
VALUES = """[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match existing state value schema.
Existing value_schema=StructType(StructField(count,LongType,false),StructField(sum,DecimalType(28,2),true)) and new \
value_schema=StructType(StructField(count,LongType,false))."""


def test_state_of_another_version_is_told_with_what_changed_and_the_two_ways_on():
    """Other kinds of change are in tests/ledger/jobs/test_upgrade.py, in Spark's own words."""
    assert incompatible("daily_counts", CHECKPOINT, VALUES) == (
        f"daily_counts cannot resume from {CHECKPOINT}: the values in its state (the columns kept for each key) "
        "changed since it was written (count long, sum decimal(28, 2); now count long); restore the earlier version of "
        "the job, or start over with empty state: --fresh (with Kafka also --start TIME)"
    )


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
