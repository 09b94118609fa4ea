"""Ledger imbalance: the money or the rows that left the query differ from what entered it.

Meaning: `ledgerops.book` counts rows and sums amounts where rows enter the query and where they leave it. In at least
    one batch the two differ: rows were lost or added, or an amount was changed on the way.
Impact: the output is wrong, and so is everything that was computed from it. Speed and lag look healthy.
Diagnosis: 1. `increase(ledgerops_unbalanced_batches_total{app="APP",query="QUERY"}[1h])` shows since when. If it began
    with a deployment, that version of the query is the cause.
    2. `ledgerops_book_rows_total{app="APP",query="QUERY"}` by `kind` shows how many rows entered and left. If fewer
    left, look for a filter, an inner join or a dropped late row; if more left, look for a join or an explode that
    repeats rows; if the counts are equal, an amount was changed or rounded.
    3. `ledgerops verify` names the rows, if there is a manifest of what was sent.
Mitigation: stop the query and everything that reads its output, so that no more is computed from wrong numbers. Repair
    the transformation, move the wrong output away, and run again from the last checkpoint before the first unbalanced
    batch. Then verify the output.
Evidence:
    unbalanced_batches: batches that ended in the latest 2 min (at least the newest of the run) in which `rows` or
        `amount` of all observedMetrics `_book_in*` and `_book_out*` differ
    missing_rows: `rows` of side in - `rows` of side out, summed over the unbalanced batches
    missing_amount: the same for `amount`, a decimal number as text; 0 if it is null on one side
    rows_booked: sum of `rows` of side in over all booked batches of these 2 min
"""

from collections.abc import Iterator
from decimal import Decimal

from ledgerops.common.format import counted
from ledgerops.diagnosis.rule import CLEAR, REPORTED_SECONDS, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.model.observed_metrics import book_of, plainly_balanced, reported
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    if view.history.last is None or book_of(view.history.last) is None:
        return
    latest = reported(view.history, view.now - REPORTED_SECONDS)
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
    where = f"{len(wrong)} of the latest {len(booked)} batches" if len(booked) > 1 else "the latest batch"
    why = "each further batch adds wrong results; the comparison lists the rows that differ"
    yield Finding(
        f"{_difference(rows, amount)}, in {where}",
        Component("query", view.query, "between the books where rows enter and leave"),
        (
            Evidence("unbalanced_batches", float(len(wrong)), "count", "0", at),
            Evidence("missing_rows", float(rows), "rows", "0", at),
            Evidence("missing_amount", float(amount), "amount", "0", at),
            Evidence("rows_booked", float(total), "rows", "as many as leave", at),
        ),
        (first_step("ledger-imbalance", GENERAL, why, command="ledgerops verify FOLDER"),),
        confidence=CLEAR,
        began=wrong[0][0].ended,
    )


def _difference(rows: int, amount: Decimal) -> str:
    """`rows` and `amount` are what entered less what left."""
    less = "lower" if amount > 0 else "higher"
    if not rows:
        return f"the amount that left the query is {abs(amount):,} {less} than the amount that entered it"
    what = counted(abs(rows), "row")
    verb = "entered the query and did not leave it" if rows > 0 else "left the query without entering it"
    if not amount:
        return f"{what} {verb}"
    if (rows > 0) == (amount > 0):
        return f"{what} with a total of {abs(amount):,} {verb}"
    return f"{what} {verb}, and the amount that left is {less} by {abs(amount):,}"


def ruled_out(view: QueryView) -> str | None:
    book = book_of(view.last) if view.last else None
    if book is None or not book.balanced:
        return None
    return f"all {book.rows_in:,} rows of the newest batch left the query, with the same amount"


# of several batches a second fewer are remembered than two minutes have
RULE = Rule("ledger-imbalance", "critical", check, __doc__, (), ruled_out, linger=60.0, at_rest=True)
