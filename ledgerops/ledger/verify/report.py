"""The results as a table for people."""

from collections.abc import Iterable, Iterator

from ledgerops.common.format import UNKNOWN
from ledgerops.ledger.verify.result import JobCheck

HEADINGS = ("job", "rows", "lost", "repeated", "changed", "money", "verdict")


def lines(results: Iterable[JobCheck]) -> Iterator[str]:
    """One line for each job, with its notes and examples below."""
    results = list(results)
    table = [HEADINGS, *(_cells(result) for result in results)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    yield _row(HEADINGS, widths)
    for result, cells in zip(results, table[1:], strict=True):
        yield _row(cells, widths)
        for note in result.notes:
            yield f"    {note}"
        for what, examples in result.examples.items():
            yield f"    {what}: {', '.join(examples)}"


def _cells(result: JobCheck) -> tuple[str, ...]:
    counts = (result.rows, result.lost, result.repeated, result.changed)
    return (
        result.job,
        *(UNKNOWN if count is None else f"{count:,}" for count in counts),
        result.money or UNKNOWN,
        result.verdict,
    )


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    # names to the left, counts to the right
    padded = [
        cell.rjust(width) if 0 < column < 5 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
