"""Ledger imbalance: what came out of a job that conserves money is not what went in.

Meaning: the query is booked (`ledgerops.book`) where rows enter and where they leave, and the two sides of a batch
    differ in rows or in their exact sum. Rows were lost or made, or an amount was changed on the way.
Impact: what is written is wrong, and everything that reads it. Speed and lag look healthy all the while.
Diagnosis: `increase(ledgerops_unbalanced_batches_total{query="QUERY"}[1h])` tells since when, and
    `ledgerops_book_rows_total{query="QUERY"}` by `kind` how many rows are missing. Look at what was deployed then;
    `ledgerops verify` names the rows, where a manifest of what was sent is at hand.
Mitigation: stop the query and what reads its output before more is built on it. Repair the transformation, move the
    output away and run again from the last checkpoint before `began`; then verify.
Evidence:
    unbalanced_batches: number of the batches ended within the latest 30 s (at least the newest one) in which `rows` or
        `amount` differ between the sum over all observedMetrics of side in (`ledgerops` and `_book_in*`) and the sum
        over those of side out (`ledgerops` and `_book_out*`).
    missing_rows: `rows` of side in less `rows` of side out, summed over the unbalanced batches.
    missing_amount: the same of `amount`, a decimal number as text; 0 where it is null on one side.
    rows_booked: `rows` of side in, summed over all booked batches of these 30 s.
"""

from collections.abc import Iterator
from decimal import Decimal

from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.observed_metrics import book_of, newest, plainly_balanced
from ledgerops.signals.query_view import QueryView

KEPT = 30.0  # seconds that a wrong batch is told of: a scrape and an alert come by in it; what is written stays wrong
ROUNDS = 3  # unbalanced batches from which chance (a repeated attempt of a task) has no part in it


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or book_of(view.last) is None:
        return
    latest = newest(view.batches, view.now - KEPT)
    if all(plainly_balanced(batch) for batch in latest):
        return
    booked = [(batch, book) for batch in latest if (book := book_of(batch)) is not None]
    wrong = [(batch, book) for batch, book in booked if not book.balanced]
    if not wrong:
        return
    rows = sum(book.rows for _, book in wrong)
    amount = sum((book.amount for _, book in wrong), Decimal(0))
    at = wrong[-1][0].ended
    total = sum(book.rows_in for _, book in booked)
    yield Finding(
        f"{_told(rows, amount)} in {len(wrong)} of the latest {_batches(len(booked))}",
        Component("query", view.query, "what is between the entrance and the exit of its books"),
        (
            Evidence("unbalanced_batches", float(len(wrong)), "count", "0", at),
            Evidence("missing_rows", float(rows), "rows", "0", at),
            Evidence("missing_amount", float(amount), "amount", "0", at),
            Evidence("rows_booked", float(total), "rows", "as many as leave", at),
        ),
        (
            Remedy("stop the query and whatever reads its output", "each further batch is written wrong", safe=False),
            Remedy(
                "compare the output with what was sent: ledgerops verify",
                "it names the rows that are lost, repeated or changed",
                command="ledgerops verify FOLDER",
            ),
        ),
        confidence=0.99 if len(wrong) >= ROUNDS else 0.9,
        began=wrong[0][0].ended,
    )


def _batches(count: int) -> str:
    return f"{count} batches" if count > 1 else "1 batch"


def _told(rows: int, amount: Decimal) -> str:
    if rows:
        what = f"{abs(rows):,} rows" if abs(rows) != 1 else "1 row"
        money = f" and an amount of {abs(amount):,}" if amount else ""
        if amount and (rows > 0) != (amount > 0):
            money = f", and the amount is {'lower' if amount > 0 else 'higher'} by {abs(amount):,},"
        return f"{what}{money} {'did not come out' if rows > 0 else 'came out that did not go in'}"
    return f"the amount that came out is {abs(amount):,} {'less' if amount > 0 else 'more'} than what went in"


def acquit(view: QueryView) -> str | None:
    book = book_of(view.last) if view.last else None
    if book is None or not book.balanced:
        return None
    return f"all {book.rows_in:,} rows of the newest batch came out, with the same amount"


RULE = Rule(
    slug="ledger-imbalance",
    severity="critical",
    check=check,
    runbook=__doc__,
    acquit=acquit,
    linger=0.0,  # it looks back itself
)
