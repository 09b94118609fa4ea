"""Risk scores: each transaction with a score that a slow service outside gives it.

Reads `transactions`, and asks a service over HTTP (`risk` in the job's services; the questions are those of
servers/risk.py); writes every transaction exactly once, with `score`, `reason` and `output`. A scored one has the
output `risk_scores`; one without a score has `risk_scores.failed`, a null score and the reason. A service that fails
never fails the batch, it only fills the second output, from which transactions can be sent again. The order of rows is
not promised.
Calls: each worker (one a core) sends CALL_TRANSACTIONS transactions a call and has Limits.concurrency calls under way;
a call has a time limit and is tried again with growing pauses. After Limits.total seconds a partition of a batch asks
no more and what is left fails for "no time left": with a service that hangs a batch takes that long and no longer.
State: none. Watermark: none, so no row is ever too late.
Restart: goes on with the first batch that was not committed. A batch that is repeated asks again, and a transaction may
then fall into the other output; a sink that knows its batches holds it once all the same.
Upgrade: all limits may change at any restart; rows already written stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from ledgerops.ledger.jobs.calls import CallFailed, Calls, Failure, Limits, open_calls
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.plan.schemas import TRANSACTIONS

SCORED, FAILED = "risk_scores", "risk_scores.failed"
CALL_TRANSACTIONS = 50  # in each call: the service takes 1000, but all of a call fail together
LIMITS = Limits()
ASKED = ("transaction_id", "type", "amount")  # all that is sent to the service
OUTPUT = f"{TRANSACTIONS}, score DOUBLE, reason STRING, output STRING"

Question = Sequence[Mapping[str, Any]]


def transform(transactions: DataFrame, risk: str, limits: Limits = LIMITS) -> DataFrame:
    """Transactions in; their columns, score, reason and output out. `risk`: URL of the service."""

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return scored(batches, risk, limits)

    return transactions.mapInArrow(score, OUTPUT)


def scored(batches: Iterator[pa.RecordBatch], risk: str, limits: Limits = LIMITS) -> Iterator[pa.RecordBatch]:
    """The batches of one partition with the columns of OUTPUT, each with as many rows as it had."""
    calls = open_calls(risk, limits)
    deadline = calls.deadline()
    for batch in batches:
        questions = _questions(batch)
        answers = calls.run(lambda question: _ask(calls, question), questions, deadline)
        results: list[float | Failure] = []
        for question, answer in zip(questions, answers, strict=True):
            results += [answer] * len(question) if isinstance(answer, Failure) else answer
        failed = [isinstance(result, Failure) for result in results]
        columns = [
            pa.array([None if isinstance(result, Failure) else result for result in results], pa.float64()),
            pa.array([result.reason if isinstance(result, Failure) else None for result in results], pa.string()),
            pa.array([FAILED if one else SCORED for one in failed], pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, *columns], names=[*batch.schema.names, "score", "reason", "output"]
        )


def _questions(batch: pa.RecordBatch) -> list[Question]:
    """The rows of a batch in calls, as the service wants them; amounts as text, so that no cent is lost."""
    columns = [batch.column(name) for name in ASKED]
    texts = zip(*(column.cast(pa.string()).to_pylist() for column in columns), strict=True)
    rows = [dict(zip(ASKED, row, strict=True)) for row in texts]
    return [rows[start : start + CALL_TRANSACTIONS] for start in range(0, len(rows), CALL_TRANSACTIONS)]


def _ask(calls: Calls, question: Question) -> list[float | Failure]:
    """One call: a score, or the reason that there is none, for each of its transactions."""
    answers = calls.post("/scores", {"transactions": question})["scores"]
    if [one["transaction_id"] for one in answers] != [one["transaction_id"] for one in question]:
        raise CallFailed("answer for other transactions")
    return [Failure(f"refused: {one['error']}") if "error" in one else float(one["score"]) for one in answers]


JOB = Job(
    name="risk_scores",
    group="udfs",
    summary="Each transaction with a score from a slow external service; failures go to a separate output.",
    transform=transform,
    stateful=False,
    services=("risk",),
    route="output",
    routes=(SCORED, FAILED),
)
