"""What must hold for the output of each job, whatever it ran on.

A job that is not here is listed as not checked. `campaign_views` reads ad events, of which a manifest of transactions
knows nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow.compute as pc

from ledgerops.ledger.jobs.large_credits import MIN_AMOUNT
from ledgerops.ledger.plan.record_stream import Rows

LATENESS_SECONDS = 60.0  # that the jobs wait by default; a row later than that may be missing where one waits


def large_credits(rows: Rows) -> Rows:
    """What the job large_credits lets through."""
    kept = pc.and_(pc.equal(rows.batch.column("type"), "Credit"), pc.greater(rows.batch.column("amount"), MIN_AMOUNT))
    return rows.where(kept.to_numpy(zero_copy_only=False))


def conflicting_copies(rows: Rows) -> Rows:
    """What the job conflicting_transactions lets through."""
    return rows.where(rows.conflicting)


def exact_copies(rows: Rows) -> Rows:
    """What the job conflicting_transactions lets through besides, of a transaction of which it took another for the
    first: of two rows in one batch nobody knows which came first."""
    return rows.where(~rows.first & ~rows.conflicting)


@dataclass(frozen=True)
class PassedOn:
    """Each transaction comes out, as often as it was sent or `once`, in the columns that the job does not change."""

    once: bool = False
    other: tuple[str, ...] = ()  # columns that the job changes
    waits: bool = False  # rows that come later than the watermark are dropped
    # seconds of event time that the job gathers before it hands rows on; the last ones sent may still be held back
    gathers: int | None = None
    only: Callable[[Rows], Rows] | None = None  # keeps the transactions that come through
    perhaps: Callable[[Rows], Rows] | None = None  # keeps further rows that may come out of these transactions


@dataclass(frozen=True)
class Windowed:
    """For each written window the customers' counts and amounts add up to what happened in it; no key comes twice."""

    size: int | None  # seconds; None: from midnight (UTC) to the end
    slide: int  # seconds from one window's end to the next one's


@dataclass(frozen=True)
class Unique:
    """No two rows of the same key."""

    key: tuple[str, ...]
    copies: bool = False  # a transaction that was sent twice makes two such rows, and no check is possible


@dataclass(frozen=True)
class Totals:
    """The last row of each customer is what the transactions of that customer come to."""

    kind: Literal["activity", "ratio"]


@dataclass(frozen=True)
class DeadLetters:
    """As many rows of each reason as poison was sent, and no place twice."""


Expectation = PassedOn | Windowed | Unique | Totals | DeadLetters

DAY, TWO_HOURS = 86_400, 7_200
EXPECTATIONS: Mapping[str, Expectation] = {
    "account_lookup": PassedOn(),
    # a reader cannot know which of two copies in one batch came first: so their amounts are not compared
    "conflicting_transactions": PassedOn(other=("amount",), waits=True, only=conflicting_copies, perhaps=exact_copies),
    "customer_activity": Totals("activity"),
    "customer_sessions": Unique(("customer_id", "session_start")),
    "customer_transactions": PassedOn(),
    "cumulative_counts": Windowed(None, TWO_HOURS),
    "daily_counts": Windowed(DAY, DAY),
    "dead_letters": DeadLetters(),
    "debit_credit_pairs": Unique(("debit_transaction_id", "credit_transaction_id"), copies=True),
    "debit_credit_ratio": Totals("ratio"),
    "dedup_transactions": PassedOn(once=True, waits=True),
    "enriched_transactions": PassedOn(),
    "landed_transactions": PassedOn(),
    "large_credits": PassedOn(only=large_credits),
    "late_transactions": PassedOn(),
    "masked_transactions": PassedOn(other=("account_id", "customer_id")),
    "operation_words": Unique(("transaction_id", "position"), copies=True),
    "risk_scores": PassedOn(),
    "sliding_counts": Windowed(DAY, TWO_HOURS),
    "spending_profile": Unique(("window_start", "customer_id")),
    "split_transactions": PassedOn(),
    "top_customers": Unique(("window_start", "rank")),
    "unified_flow": PassedOn(),
    "versioned_customers": PassedOn(waits=True, gathers=10),
}
