"""What a job must have written: watermarks by hand, answers by DuckDB, no Spark."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from tests.ledger.jobs.feed import ARROW, Rows, instant, transaction

NEVER = instant("1970-01-01")  # Spark's watermark before there is one


@dataclass(frozen=True)
class Batch:
    rows: Rows
    late: Any  # instant; rows up to it are dropped: the watermark of the batch before
    evict: Any  # instant; state up to it is closed: the batch's own watermark


def batches_of(runs: Iterable[Iterable[Rows]], lateness: timedelta, kinds: Sequence[str] = ()) -> list[Batch]:
    """The batches that Spark makes of `runs`, each a start of the query that works off its files one by one.

    A batch's watermark is the newest event time of the batches before it, less the lateness; with `kinds` (of `type`)
    the lowest of the kinds' own. A run ends with a batch without rows if the watermark has moved since the last.
    """
    newest = dict.fromkeys(kinds or ("",), NEVER)
    before = now = NEVER
    batches = []
    for run in runs:
        for rows in [*run, []]:
            if not rows and now == before:
                continue
            batches.append(Batch(rows, late=before, evict=now))
            for row in rows:
                kind = row["type"] if kinds else ""
                newest[kind] = max(newest[kind], row["event_time"])
            before, now = now, max(now, NEVER, min(newest.values()) - lateness)
    return batches


def ask(question: str, rows: Rows, **parameters: Any) -> list[tuple[Any, ...]]:
    """DuckDB's answer over the transactions in the table `rows`."""
    return ask_tables(question, {"rows": pa.Table.from_pylist(rows, schema=ARROW["transactions"])}, **parameters)


def ask_tables(question: str, tables: Mapping[str, pa.Table], **parameters: Any) -> list[tuple[Any, ...]]:
    """DuckDB's answer over tables, in UTC."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            db.register(name, table)
        return db.execute(question, parameters or None).fetchall()


def in_time(batches: Iterable[Batch], reach: timedelta = timedelta(0)) -> Rows:
    """The rows not dropped as late; a row counts until `reach` after its event time."""
    return [row for batch in batches for row in batch.rows if row["event_time"] + reach > batch.late]


def with_late(batches: Iterable[Batch]) -> Rows:
    """All rows, with the watermark by which their batch calls them late as text in the column `operation`."""
    return [{**row, "operation": batch.late.isoformat()} for batch in batches for row in batch.rows]


SESSIONS = """
WITH marked AS (
    SELECT *, event_time > lag(event_time) OVER each + INTERVAL 5 MINUTES AS opens
    FROM rows WINDOW each AS (PARTITION BY customer_id ORDER BY event_time)
), numbered AS (
    SELECT *, sum(coalesce(opens, false)::INT) OVER (PARTITION BY customer_id ORDER BY event_time) AS session
    FROM marked
)
SELECT customer_id, min(event_time), max(event_time) + INTERVAL 5 MINUTES AS ends, count(*), sum(amount)
FROM numbered GROUP BY customer_id, session HAVING ends <= $evict
"""


def sessions_of(batches: Iterable[Batch], gap: timedelta) -> list[tuple[Any, ...]]:
    """Sessions batch by batch, since what is closed takes no more rows even if a later one is near."""
    closed: list[tuple[Any, ...]] = []
    open_rows: Rows = []
    for batch in batches:
        open_rows += in_time([batch], gap)
        found = ask(SESSIONS, open_rows, evict=batch.evict) if open_rows else []
        closed += found
        open_rows = [
            row
            for row in open_rows
            if not any(row["customer_id"] == one[0] and one[1] <= row["event_time"] < one[2] for one in found)
        ]
    return sorted(closed)


def disordered(seed: int = 7) -> tuple[list[Rows], list[Rows]]:
    """Two runs of transactions of one evening and the night after it, then one far later that closes all.

    Each batch covers an hour; one row in six comes up to five hours late, and a few are sent again, at once or later.
    """
    random_ = random.Random(seed)
    sent: Rows = []
    batches = []
    for hour in range(7):
        rows = []
        for _ in range(30):
            minute = random_.uniform(-300, 0) if random_.random() < 1 / 6 else random_.uniform(0, 60)
            at = instant("21:00") + timedelta(hours=hour, seconds=round(minute * 60))
            rows.append(
                transaction(
                    f"T{len(sent) + len(rows):03}",
                    at.replace(tzinfo=None).isoformat(),
                    random_.choice(["C1", "C2", "C3", "C4"]),
                    type=random_.choice(["Credit", "Debit"]),
                    amount=Decimal(random_.randrange(1, 10_000_000)) / 100,
                )
            )
        again = random_.sample(sent, min(len(sent), 4))
        sent += rows
        batches.append(rows + again + rows[:1])
    closing = [
        transaction(f"end {kind}", "2024-03-09T00:00", "C9", type=kind, amount=Decimal(20_000))
        for kind in ("Credit", "Debit")
    ]
    return batches[:4], [*batches[4:], closing]


def rows_of(runs: Iterable[Iterable[Rows]]) -> Rows:
    """All rows, in the order in which they are sent."""
    return [row for run in runs for batch in run for row in batch]
