"""Applies to one output what is expected of its job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ledgerops.ledger.plan.digest import ID, whole_numbers
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.plan.record_stream import Rows
from ledgerops.ledger.plan.summary import Bucket, Summary
from ledgerops.ledger.verify import keys, rows, totals, windows
from ledgerops.ledger.verify.expectations import (
    EXPECTATIONS,
    LATENESS_SECONDS,
    DeadLetters,
    PassedOn,
    Totals,
    Unique,
    Windowed,
)
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import JobCheck, judge
from ledgerops.ledger.verify.rows import SentRecords

Show = Callable[[int], None]  # called with the number of rows read


@dataclass(frozen=True)
class VerifyInput:
    """What was sent. `data`: folder of transactions.csv, for a replay."""

    manifest: Manifest
    data: Path | None = None
    lateness_seconds: float = LATENESS_SECONDS  # for which the jobs waited for late rows
    strict: bool = False  # repeats are an error whatever the sink

    @cached_property
    def sent(self) -> SentRecords | None:
        """The records that were sent, made again, for all jobs once; None when neither plan nor file is there."""
        stream = self.manifest.stream(self.data)
        return None if stream is None else SentRecords(stream, self.manifest.records)

    @property
    def in_time_seconds(self) -> float:
        """The delay up to which a row is sure to be in time; a row dated ahead takes the watermark with it."""
        return self.lateness_seconds - self.manifest.summary.ahead_seconds

    @property
    def has_late_rows(self) -> bool:
        """Whether rows came so late that a job with a watermark may have dropped them."""
        return self.manifest.summary.latest_seconds > self.in_time_seconds

    @cached_property
    def in_time(self) -> Mapping[int, Bucket] | None:
        """What happened when, of the rows that were sure to be in time: None where all were, empty where that is not
        known. Made once, for all jobs."""
        if not self.has_late_rows or self.sent is None:
            return {} if self.has_late_rows else None
        summary = Summary()
        for each in self.sent.rows():
            summary.add_buckets(each.where(each.delays <= self.in_time_seconds).batch)
        return summary.buckets


def check(job: str, output: Output, case: VerifyInput, show: Show = lambda rows: None) -> JobCheck:
    """The result of one job. Raises UserError when the output cannot be read."""
    expected = EXPECTATIONS.get(job)
    result = JobCheck(job, "not checked", rows=output.rows)
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
                _check_keys(result, output, windows.KEY)
            else:
                windows.check(result, output, expected, summary, case.in_time)
        case Unique(key, affected):
            if affected and copies:
                result.notes.append(f"not checked: the input has {copies:,} copies, so the output has copies too")
                return result
            _check_keys(result, output, key)
            result.notes.append(f"only checked that no {' and '.join(key)} occurs twice")
        case Totals(kind):
            if case.sent is None:
                result.notes.append(_unavailable(case))
                return result
            totals.check(result, output, kind, case.sent)
        case DeadLetters():
            totals.check_dead_letters(result, output, case.manifest)
    return judge(result, output.at_least_once and not case.strict)


def _check_keys(result: JobCheck, output: Output, key: Sequence[str]) -> None:
    result.repeated, result.examples["repeated"] = keys.repeated(output, key)


def _check_rows(result: JobCheck, output: Output, expected: PassedOn, case: VerifyInput, show: Show) -> bool:
    """Fills the result; False where it also sets the verdict, which the counts do not decide."""
    summary = case.manifest.summary
    known = summary.all.digests
    columns = [ID, *(name for name in known if name in output.columns and name not in (ID, *expected.other))]
    if ID not in output.columns and (output.rows or expected.only is None):
        result.notes.append(f"the output has no column {ID}" if output.rows else "nothing is written")
        result.lost = summary.all.rows if not output.rows else None
        result.verdict = "broken"
        return False
    sent, totals_sent = case.sent, summary.all
    keep = _gathered(output, expected.gathers) if expected.gathers else expected.only
    if keep is not None:
        if sent is None:
            result.notes.append(_unavailable(case))
            return False
        sent = SentRecords(sent.stream, sent.records, keep)
        totals_sent = Summary.of(sent.rows()).all
    wanted = summary.distinct if expected.once else totals_sent
    found = rows.read(output, columns, show)
    result.rows = found.rows
    result.money = rows.money_of(found, wanted, columns)
    if rows.agrees(found, wanted, columns):
        result.lost = result.repeated = result.changed = 0
        return True
    if sent is None:
        result.lost, result.repeated = max(0, wanted.rows - found.rows), max(0, found.rows - wanted.rows)
        result.notes.append(f"lower bounds; the rows cannot be named: {_unavailable(case)}")
        result.verdict = "broken"
        return False
    late_after = case.in_time_seconds if expected.waits and case.has_late_rows else None
    perhaps = None if expected.perhaps is None else SentRecords(sent.stream, sent.records, expected.perhaps)
    rows.compare(result, output, sent, wanted, expected.once, columns, late_after, perhaps)
    if expected.once and summary.conflicting:
        result.notes.append(
            f"{summary.conflicting:,} copies were sent with another amount; the job may keep any of them"
        )
    return True


def _gathered(output: Output, seconds: int) -> Callable[[Rows], Rows]:
    """Keeps the rows that the job must have handed on: those of all stretches of event time up to the output's last."""
    micros = seconds * 1_000_000
    last = max((int(whole_numbers(each.column(0)).max()) for each in output.batches(["event_time"])), default=0)
    until = last - last % micros + micros
    return lambda rows: rows.where(whole_numbers(rows.batch.column("event_time")) < until)


def _unavailable(case: VerifyInput) -> str:
    if case.manifest.source == "replay":
        return f"{case.manifest.plan} of the manifest was not found; give --data FOLDER"
    return "the manifest has no plan"
