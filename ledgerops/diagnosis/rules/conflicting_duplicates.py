"""Conflicting duplicates: one transaction arrived twice, with different contents.

Meaning: rows arrived with a transaction_id that was seen before, but with another amount, account or time. An exact
    copy can be dropped safely. If two copies differ, the rows do not show which one is right.
Impact: keeping the first copy, the last copy or both is wrong for some of these transactions. Speed and lag look
    healthy.
Diagnosis: 1. `sum(rate(ledgerops_conflicting_rows_total{app="APP",query="QUERY"}[5m]))` divided by
    `sum(rate(ledgerops_input_rows_total{app="APP",query="QUERY"}[5m]))` is the share of conflicting rows. A few mean
    single retries; a steady share means a producer that works wrongly.
    2. Look up the ids in the output of the query. The finding shows them hashed (the first 12 digits of their SHA-256).
    If accounts differ, two systems use the same range of ids; if only the amount or the time differs, a correction or a
    retry reused the id.
    3. Check when the finding began against the deployments of the producer. If one matches, that version is the cause.
Mitigation: exclude the conflicting ids from reports and payments until the producer has confirmed which copy is right.
    Then have the producer repaired: separate id ranges, a new id for each correction, and retries that send the same
    bytes.
Evidence:
    conflicting_rows: sum of `conflicts` in all observedMetrics `ledgerops` or `_conflicts*` over the batches that ended
        in the latest 2 min (at least the newest)
    conflicting_share: conflicting_rows / sum of numInputRows of these batches
    conflicting_batches: number of these batches with `conflicts` above 0
"""

from collections.abc import Iterator

from ledgerops.diagnosis.proof import MAX_TOLD
from ledgerops.diagnosis.rule import REPORTED_SECONDS, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.observed_metrics import conflicts_of, reported
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    if view.history.last is None or conflicts_of(view.history.last) is None:
        return
    latest = reported(view.history, view.now - REPORTED_SECONDS)
    found = [(batch, each) for batch in latest if (each := conflicts_of(batch)) is not None and each.rows]
    if not found:
        return
    rows, read = sum(each.rows for _, each in found), sum(batch.rows for batch in latest)
    ids = list(dict.fromkeys(key for _, each in reversed(found) for key in each.ids))[:MAX_TOLD]
    at = found[-1][0].ended
    share = rows / read if read else 1.0
    what = f"{rows:,} rows repeat" if rows != 1 else "1 row repeats"
    batches = f"{len(latest)} batches" if len(latest) > 1 else "batch"
    named = f" (hashed: {', '.join(ids)})" if ids else ""
    source = max((each for batch, _ in found for each in batch.sources), key=lambda each: each.rows, default=None)
    yield Finding(
        f"{what} an earlier transaction id with different contents, {share:.2%} of the rows of the latest "
        f"{batches}{named}",
        Component("source", source.name if source else view.query, f"ids {', '.join(ids)}" if ids else None),
        (
            Evidence("conflicting_rows", float(rows), "rows", "0", at),
            Evidence("conflicting_share", share, "ratio", "0", at),
            Evidence("conflicting_batches", float(len(found)), "count", "0", at),
        ),
        (
            first_step("conflicting-duplicates", GENERAL, "the rows do not show it"),
            Remedy(
                "exclude these ids from reports and payments until then",
                "keeping the first, the last or both is wrong for some of them",
                safe=False,
            ),
        ),
        confidence=0.99,  # two contents of one id are a fact; only the hashes of two contents may be equal by chance
        began=found[0][0].ended,
    )


def ruled_out(view: QueryView) -> str | None:
    none = view.last is not None and (found := conflicts_of(view.last)) is not None and not found.rows
    return "no row of the newest batch repeats a transaction id with different contents" if none else None


# of several batches a second fewer are remembered than two minutes have
RULE = Rule("conflicting-duplicates", "critical", check, __doc__, (), ruled_out, linger=60.0, at_rest=True)
