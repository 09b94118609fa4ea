"""Integrity: the books of jobs that conserve money, copies that contradict the first, and numbers of the job's own."""

from collections.abc import Callable

from ledgerops.metrics.model import Metric, Series
from ledgerops.model.observed_metrics import Book, book_of, conflicts_of, own_numbers
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView


def _of_book(series: Callable[[Book], Series]) -> Callable[[Progress], Series]:
    return lambda batch: {} if (book := book_of(batch)) is None else series(book)


def _conflicting(batch: Progress) -> Series:
    return {} if (conflicts := conflicts_of(batch)) is None else {(): float(conflicts.rows)}


BOOKED: Metric[QueryView] = Metric("ledgerops_book_rows_total",
    "Rows that entered (in) and left (out) a job that conserves them; needs ledgerops.book.", labels=("kind",),
    per_batch=_of_book(lambda book: {("in",): float(book.rows_in), ("out",): float(book.rows_out)}))  # fmt: skip
UNBALANCED: Metric[QueryView] = Metric("ledgerops_unbalanced_batches_total",
    "Batches whose rows or amount differ between input and output; should be 0; needs ledgerops.book.",
    per_batch=_of_book(lambda book: {(): float(not book.balanced)}))  # fmt: skip
# the absolute difference: a surplus in one batch does not make up for what is missing in another
MISSING: Metric[QueryView] = Metric("ledgerops_unbalanced_amount_total",
    "Absolute difference between the amounts that entered and left a batch; needs ledgerops.book.",
    per_batch=_of_book(lambda book: {(): float(abs(book.amount))}))  # fmt: skip
CONFLICTING: Metric[QueryView] = Metric("ledgerops_conflicting_rows_total",
    "Copies of a row whose contents differ from those of the first; should be 0; needs ledgerops.conflicts.",
    per_batch=_conflicting)  # fmt: skip
OBSERVED: Metric[QueryView] = Metric("ledgerops_observed",
    "The numbers that the query itself observes (Dataset.observe), as of the newest batch, by observation and column.",
    labels=("name", "field"), read=lambda view: own_numbers(view.last) if view.last else {})  # fmt: skip
METRICS = (BOOKED, UNBALANCED, MISSING, CONFLICTING, OBSERVED)
