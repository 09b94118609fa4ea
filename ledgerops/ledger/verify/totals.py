"""Final totals of customers, and dead letters by reason: counted from what was sent. Memory: an entry a customer."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ledgerops.ledger.jobs.customer_activity import MIN_TRANSACTIONS
from ledgerops.ledger.plan.digest import whole_numbers
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.verify import keys
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import MAX_EXAMPLES, JobCheck, apart
from ledgerops.ledger.verify.rows import SentRecords

Figures = tuple[int, ...]  # counts, and sums in hundredths
COLUMNS = {"activity": ("transactions", "amount"), "ratio": ("debits", "debit_amount", "credits", "credit_amount")}


def check(result: JobCheck, output: Output, kind: str, sent: SentRecords) -> None:
    """Compares the last row of each customer with the transactions that were sent."""
    wanted, found = _wanted(kind, sent), _found(kind, output)
    lost = sorted(customer for customer in wanted if customer not in found)
    changed = sorted(customer for customer in found if found[customer] != wanted.get(customer))
    result.lost, result.changed, result.repeated = len(lost), len(changed), 0
    result.money = apart("amount", _cents(found) - _cents(wanted)) or "equal"
    result.examples["lost"] = lost[:MAX_EXAMPLES]
    texts = [f"{each}: {found[each]} for {wanted.get(each, 'nothing')}" for each in changed[:MAX_EXAMPLES]]
    result.examples["changed"] = texts
    result.notes.append(f"{len(found):,} customers, each by the last row")


def check_dead_letters(result: JobCheck, output: Output, manifest: Manifest) -> None:
    """Compares counts by reason with the poison of the manifest."""
    found: Counter[str] = Counter()
    for batch in output.batches(("reason", "topic")):
        topics = batch.column("topic")
        # in Kafka the topic, of a landing folder the table's folder and the file
        mine = (
            pc.equal(topics, manifest.topic)
            if manifest.topic is not None
            else pc.starts_with(topics, f"{manifest.table}/")
        )
        found.update(batch.filter(mine).column("reason").to_pylist())
    wanted = Counter(manifest.poison)
    result.lost, more = sum((wanted - found).values()), sum((found - wanted).values())
    result.repeated, result.examples["repeated"] = (
        keys.repeated(output, ("topic", "partition", "offset")) if manifest.topic is not None else (0, [])
    )
    result.changed = max(0, more - result.repeated)
    for reason in sorted(wanted | found):
        if wanted[reason] != found[reason]:
            what = "lost" if found[reason] < wanted[reason] else "changed"
            example = f"{reason}: {found[reason]:,} of {wanted[reason]:,}"
            result.examples[what] = [*result.examples.get(what, ()), example][:MAX_EXAMPLES]


def _wanted(kind: str, sent: SentRecords) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for side, customer, figures in _sums(sent):
        more = figures
        if kind == "ratio":
            more = (*figures, 0, 0) if side == "Debit" else (0, 0, *figures)
        old = found.get(customer, (0,) * len(more))
        found[customer] = tuple(a + b for a, b in zip(old, more, strict=True))
    return {each: figures for each, figures in found.items() if kind == "ratio" or figures[0] > MIN_TRANSACTIONS}


def _sums(sent: SentRecords) -> Iterator[tuple[str, str, Figures]]:
    """Side, customer, and how many transactions with which amount: of each chunk of the records."""
    for rows in sent.rows():
        for side in ("Debit", "Credit"):
            part = rows.batch.filter(pc.equal(rows.batch.column("type"), side))
            for customer, count, amount in zip(*_by_customer(part).to_pydict().values(), strict=True):
                if customer is not None:
                    yield side, customer, (count, int(amount.scaleb(2)))


def _by_customer(rows: pa.RecordBatch) -> pa.Table:
    """Customer, number of rows and sum of their amounts."""
    table = pa.table({name: rows.column(name) for name in ("customer_id", "amount")})
    aggregates: list[Any] = [("customer_id", "count", pc.CountOptions(mode="all")), ("amount", "sum")]
    return (
        table.group_by("customer_id").aggregate(aggregates).select(["customer_id", "customer_id_count", "amount_sum"])
    )


def _found(kind: str, output: Output) -> Mapping[str, Figures]:
    """The row with the highest counts of each customer: they only grow, so it is the last."""
    names = COLUMNS[kind]
    found: dict[str, Figures] = {}
    for batch in output.batches(("customer_id", *names)):
        columns = [whole_numbers(batch.column(name)).tolist() for name in names]
        for customer, *figures in zip(batch.column("customer_id").to_pylist(), *columns, strict=True):
            if sum(figures[::2]) >= sum(found.get(customer, (0,))[::2]):
                found[customer] = tuple(figures)
    return found


def _cents(totals: Mapping[str, Figures]) -> int:
    return sum(sum(figures[1::2]) for figures in totals.values())
