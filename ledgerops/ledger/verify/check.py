"""Applies to one output what is expected of its job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ledgerops.ledger.plan.digest import ID, whole_numbers
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.plan.record_stream import Rows
from ledgerops.ledger.plan.summary import Summary
from ledgerops.ledger.verify import keys, rows, totals, windows
from ledgerops.ledger.verify.expectations import (
    EXPECTATIONS,
    LATENESS_SECONDS,
    ONLY,
    DeadLetters,
    PassedOn,
    Totals,
    Unique,
    Windowed,
)
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import Result, judge
from ledgerops.ledger.verify.rows import ExpectedRows, Sources

Show = Callable[[int], None]  # called with the number of rows read


@dataclass(frozen=True)
class VerifyInput:
    """What was sent. `data`: folder of transactions.csv, for a replay."""

    manifest: Manifest
    data: Path | None = None
    lateness: float = LATENESS_SECONDS  # seconds that the jobs waited for late rows
    strict: bool = False  # repeats are an error whatever the sink

    @cached_property
    def source(self) -> Sources | None:
        """The records again, a replayed file read once for all jobs; None when they cannot be had."""
        stream = self.manifest.stream(self.data)
        return None if stream is None else Sources(stream, self.manifest.records)

    @property
    def patience(self) -> float:
        """Seconds of delay up to which a row is sure to be in time; a row dated ahead takes the watermark with it."""
        return self.lateness - self.manifest.summary.ahead

    @property
    def late(self) -> bool:
        """Whether rows came so late that a job with a watermark may have dropped them."""
        return self.manifest.summary.latest > self.patience


def check(job: str, output: Output, case: VerifyInput, show: Show = lambda rows: None) -> Result:
    """The result of one job. Raises UserError when the output cannot be read."""
    expected = EXPECTATIONS.get(job)
    result = Result(job, "not checked", rows=output.rows)
    if output.deleted:
        result.notes.append(f"Kafka has deleted {output.deleted:,} records of the topic, which are missed here")
    summary = case.manifest.summary
    copies = summary.all.rows - summary.distinct.rows
    match expected:
        case None:
            result.notes.append("verify has no expectation for this job")
            return result
        case PassedOn():
            if not _check_rows(result, output, expected, case, show):
                return result
        case Windowed():
            if output.at_least_once:
                result.notes.append("the sink may repeat rows, so sums cannot be compared; only the keys were checked")
                result.repeated, found = keys.repeated(output, ("window_start", "window_end", "customer_id"))
                result.examples = {"repeated": found} if found else {}
            else:
                windows.check(result, output, expected, summary, case.late)
        case Unique(key, affected):
            if affected and copies:
                result.notes.append(f"not checked: the input has {copies:,} copies, so the output has copies too")
                return result
            result.repeated, found = keys.repeated(output, key)
            result.examples = {"repeated": found} if found else {}
            result.notes.append(f"only checked that no {' and '.join(key)} occurs twice")
        case Totals(kind):
            source = case.source
            if source is None:
                result.notes.append(_unavailable(case))
                return result
            totals.check(result, output, kind, source)
        case DeadLetters():
            totals.check_dead_letters(result, output, case.manifest)
    return judge(result, output.at_least_once and not case.strict)


def _check_rows(result: Result, output: Output, expected: PassedOn, case: VerifyInput, show: Show) -> bool:
    """False when the counts do not decide the verdict, which is then set."""
    summary = case.manifest.summary
    known = summary.all.digests
    columns = [ID, *(name for name in known if name in output.columns and name not in (ID, *expected.other))]
    if ID not in output.columns:
        result.notes.append(f"the output has no column {ID}" if output.rows else "nothing is written")
        result.lost = summary.all.rows if not output.rows else None
        result.verdict = "broken"
        return False
    source, sent = case.source, summary.all
    keep: Callable[[Rows], Rows] | None = None
    if expected.only:
        keep = ONLY[expected.only]
    elif expected.gathers:
        keep = _gathered(output, expected.gathers)
    if keep is not None:
        if source is None:
            result.notes.append(_unavailable(case))
            return False
        source = Sources(source.stream, source.records, keep)
        sent = _sent(source).all
    wanted = summary.distinct if expected.once else sent
    found = rows.read(output, columns, show)
    result.rows = found.rows
    result.money = rows.money_of(found, wanted, columns)
    if rows.agrees(found, wanted, columns):
        result.lost = result.repeated = result.changed = 0
        return True
    if source is None:
        result.lost, result.repeated = max(0, wanted.rows - found.rows), max(0, found.rows - wanted.rows)
        result.notes.append(f"lower bounds; the rows cannot be named: {_unavailable(case)}")
        result.verdict = "broken"
        return False
    late_after = case.patience if expected.waits and case.late else None
    difference = rows.compare(output, source, ExpectedRows(wanted, expected.once), columns, late_after)
    rows.record_difference(result, difference, rows.name(difference, source, output))
    if expected.once and summary.conflicting:
        result.notes.append(
            f"{summary.conflicting:,} copies were sent with another amount; the job may keep any of them"
        )
    return True


def _gathered(output: Output, seconds: int) -> Callable[[Rows], Rows]:
    """Keeps the rows of the stretches of event time that the output's rows show to be handed on."""
    micros = seconds * 1_000_000
    last = max((int(whole_numbers(each.column(0)).max()) for each in output.batches(["event_time"])), default=0)
    until = last - last % micros + micros
    return lambda rows: rows.where(whole_numbers(rows.batch.column("event_time")) < until)


def _sent(source: Sources) -> Summary:
    summary = Summary()
    for each in source.rows():
        summary.add(each.batch, each.first, each.delays, each.conflicting)
    return summary


def _unavailable(case: VerifyInput) -> str:
    if case.manifest.source == "replay":
        return f"{case.manifest.plan} of the manifest was not found; give --data FOLDER"
    return "the manifest has no plan"
