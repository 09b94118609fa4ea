"""Conflicting duplicates: one transaction was sent twice and says two different things.

Meaning: copies of a transaction_id came whose content is another than that of the first: another amount, account or
    time. An exact copy can be dropped without harm; of two that differ, nobody can tell which is right.
Impact: whatever keeps the first copy, the last, or both, is wrong for some of them. Speed and lag look healthy.
Diagnosis: `rate(ledgerops_conflicting_rows_total{query="QUERY"}[5m])` against
    `sum(rate(ledgerops_input_rows_total{query="QUERY"}[5m]))` is their share. The output of the query holds the rows;
    the sample of ids in the finding is hashed (the first 12 digits of their SHA-256).
Mitigation: ask the producer: two systems that use one number range, a correction sent under the old id, or a retry that
    rebuilds the record. Hold the conflicting ids back from what is built on them until it is known which copy is right.
Evidence:
    conflicting_rows: sum of `conflicts` over all observedMetrics named `ledgerops` and `_conflicts*`, over the batches
        ended within the latest 30 s (at least the newest one).
    conflicting_share: conflicting_rows over the sum of numInputRows of these batches.
    conflicting_batches: number of these batches with `conflicts` above 0.
"""

from collections.abc import Iterator

from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.observed_metrics import conflicts_of, newest
from ledgerops.signals.query_view import QueryView

KEPT = 30.0  # seconds that a conflict is told of; at 0.5 % of 100 rows a second one comes every two
SAMPLE = 3  # ids named in the sentence


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or conflicts_of(view.last) is None:
        return
    latest = newest(view.batches, view.now - KEPT)
    found = [(batch, each) for batch in latest if (each := conflicts_of(batch)) is not None and each.rows]
    if not found:
        return
    rows, read = sum(each.rows for _, each in found), sum(batch.rows for batch in latest)
    ids = list(dict.fromkeys(key for _, each in reversed(found) for key in each.ids))[:SAMPLE]
    at = found[-1][0].ended
    share = rows / read if read else 1.0
    what = f"{rows:,} copies contradict" if rows != 1 else "1 copy contradicts"
    batches = f"{len(latest)} batches" if len(latest) > 1 else "batch"
    named = f" (hashed: {', '.join(ids)})" if ids else ""
    source = max(found[-1][0].sources, key=lambda source: source.rows, default=None)
    yield Finding(
        f"{what} the first transaction of the same id, {share:.2%} of the rows of the latest {batches}{named}",
        Component("source", source.name if source else view.query, f"ids {', '.join(ids)}" if ids else None),
        (
            Evidence("conflicting_rows", float(rows), "rows", "0", at),
            Evidence("conflicting_share", share, "ratio", "0", at),
            Evidence("conflicting_batches", float(len(found)), "count", "0", at),
        ),
        (
            Remedy("ask the producer which copy is right", "the rows themselves do not tell"),
            Remedy(
                "hold these ids back from what is built on them",
                "keeping the first, the last or both is wrong for some of them",
                safe=False,
            ),
        ),
        confidence=0.99,  # two contents of one id are a fact; only the hashes of two contents may be equal by chance
        began=found[0][0].ended,
    )


def acquit(view: QueryView) -> str | None:
    none = view.last is not None and (found := conflicts_of(view.last)) is not None and not found.rows
    return "no copy of the newest batch contradicts the first of its id" if none else None


RULE = Rule(
    slug="conflicting-duplicates",
    severity="critical",
    check=check,
    runbook=__doc__,
    acquit=acquit,
    linger=0.0,  # it looks back itself
)
