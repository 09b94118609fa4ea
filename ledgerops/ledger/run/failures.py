"""Why a query failed, in one line that says what to do."""

import re
from pathlib import Path

from ledgerops.errors import UserError

# Spark's error classes for state that another version of the job has written
INCOMPATIBLE = re.compile(
    r"STATE_STORE_(KEY|VALUE)_SCHEMA_NOT_COMPATIBLE"
    r"|STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
    r"|STATE_STORE_(KEY|VALUE)_SCHEMA_EVOLUTION\w*"
    r"|STATE_STORE_INVALID_\w+|STATE_STORE_STATE_SCHEMA\w*|STATE_STORE_PROVIDER_\w*|StateSchemaNotCompatible"
    r"|STATEFUL_PROCESSOR_\w*|INVALID_STATE_STORE\w*"
)
OURS = f"{UserError.__module__}.{UserError.__name__}: "
SLOW_SOURCE = "Python worker failed to connect back"
CHANGED = {
    "STATE_STORE_KEY": "the keys of its state (the columns of its grouping or join)",
    "STATE_STORE_VALUE": "the values in its state (the columns kept for each key)",
    "StateSchema": "the rows in its state",
    "STREAMING_STATEFUL": "its stateful operators",
}


def first_line(error: str) -> str:
    """The first meaningful line of a Java exception's text; a line from ledgerops itself comes first."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    ours = next((line for line in lines if OURS in line), None)
    if ours is not None:
        return ours.split(OURS, 1)[1]
    first = next((line for line in lines if not line.startswith("===")), "unknown error")
    # the name of a class says less than its message
    return re.sub(r"^(?:[\w$]+\.)+\w+(?:Exception|Error): ", "", first)


def incompatible(job: str, checkpoint: Path, error: str) -> str | None:
    """What to say when a job's state is of another version of it; None when it failed of something else."""
    found = INCOMPATIBLE.search(error)
    if found is None:
        return None
    what = next((words for start, words in CHANGED.items() if found[0].startswith(start)), "the form of its state")
    return (
        f"{job} cannot resume from {checkpoint}: {what} changed since it was written{_details(error)}; "
        "restore the earlier version of the job, or start over with empty state: --fresh (with Kafka also --start TIME)"
    )


def _details(error: str) -> str:
    """The difference, where Spark reports it."""
    operators = re.search(r"in the metadata: \[(.*?)\]; Stateful operators in current batch: \[(.*?)\]", error, re.S)
    if operators:
        before, now = (", ".join(re.findall(r"OperatorName: (\w+)", part)) or "none" for part in operators.groups())
        return f" ({before}; now {now})"
    schemas = re.search(r"Existing \w+_schema=(.*?) and new \w+_schema=(.*?)\.?$", error, re.M)
    if schemas:
        before, now = map(_columns, schemas.groups())
        return f" ({before}; now {now})"
    return ""


def _columns(schema: str) -> str:
    """Spark's text of a schema as names and types."""
    for _ in range(schema.count("StructType")):  # from the inside out
        schema = re.sub(r"StructField\((\w+),([^()]*(?:\([^()]*\))?),(?:true|false)\)", r"\1 \2", schema)
        schema = re.sub(r"StructType\(([^()]*(?:\([^()]*\)[^()]*)*)\)", r"<\1>", schema)
    plain = re.sub(r"(\w)Type\b", r"\1", schema).lower().replace(",", ", ")
    return plain.removeprefix("<").removesuffix(">")


def cause(error: str) -> str:
    """One line for a query that failed, with what to do where that is known."""
    first = first_line(error)
    if SLOW_SOURCE in error:
        return (
            "the process of its source did not start within the 10 s that Spark gives it, because this machine is too "
            "busy; end other programs or run fewer jobs, then start again: nothing is lost"
        )
    if "KAFKA_DATA_LOSS" in error:
        return (
            f"{first.rstrip(';')}; records were deleted before they were read; --allow-data-loss continues without them"
        )
    if re.search(r"kafka.*TimeoutException|Call\(callName=\w+.*timed out", error, re.S | re.I):
        return f"Kafka did not answer in time ({first}); start again when the broker is back; nothing is lost"
    return first
