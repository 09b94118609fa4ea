from datetime import timedelta

import pyarrow as pa
import pytest

from ledgerops.ledger.jobs.versioned_customers import JOB
from tests.ledger.jobs.feed import ARROW, customer, dropped, transaction
from tests.ledger.jobs.oracle import ask_tables, batches_of, disordered

pytestmark = pytest.mark.spark

WANTED = "transaction_id, last, matched"
# by the batch in which a transaction was written: the newest version up to its time of those that had arrived by then
AS_OF = """
SELECT r.transaction_id, r.event_time, r.amount, v.last, v.updated_at, v.last IS NOT NULL
FROM rows r LEFT JOIN versions v
    ON v.customer_id = r.customer_id AND v.updated_at <= r.event_time AND v.arrived <= r.written
QUALIFY row_number() OVER (PARTITION BY r.row ORDER BY v.updated_at DESC NULLS LAST, v.arrived DESC) = 1
ORDER BY ALL
"""
# by batch; of the second run, which has five batches, the last three bring none
VERSIONS = [
    [customer("C1", "born", "1950-01-01T00:00"), customer("C1", "later", "2024-03-02T03:00"), customer("C3", "third")],
    [customer("C2", "second", "23:00"), customer("C1", "between", "22:30")],
    [customer("C3", "same time")],
    [customer("C1", "unused", "22:20"), customer("C1", "late, and still newest", "22:40")],
    [customer("C2", "for what waits", "23:30")],
    [customer("C3", "second of March", "2024-03-02T02:30")],
]


def written(runs, reach):
    """Rows that are in time, with the number of the batch in which the watermark passes the end of their window."""
    batches = batches_of(runs, timedelta(minutes=10))
    for number, batch in enumerate(batches):
        for row in batch.rows:
            ends = row["event_time"].replace(microsecond=0, second=row["event_time"].second // reach * reach)
            ends += timedelta(seconds=reach)
            if ends > batch.late:
                by = [later for later in range(number, len(batches)) if batches[later].evict >= ends]
                if by:
                    yield {**row, "written": by[0]}


def test_each_transaction_in_time_is_written_with_the_version_of_its_time(feed):
    case = feed(JOB)
    runs = disordered()
    late = 0
    for run, customers in zip(runs, (VERSIONS[:4], VERSIONS[4:]), strict=True):
        case.add(*run)
        case.add(*customers, name="customers")
        late += dropped(case.run(lateness="10 minutes"))

    rows = list(written(runs, 10))
    # the first run ends with a batch without rows, the fifth of all
    arrived = [
        (number if number < 4 else number + 1, version) for number, batch in enumerate(VERSIONS) for version in batch
    ]
    numbered = pa.Table.from_pylist(rows, schema=ARROW["transactions"])
    numbered = numbered.append_column("written", pa.array([row["written"] for row in rows]))
    versions = pa.Table.from_pylist([version for _, version in arrived], schema=ARROW["customers"])
    tables = {
        "rows": numbered.append_column("row", pa.array(range(len(rows)))),
        "versions": versions.append_column("arrived", pa.array([number for number, _ in arrived])),
    }
    expected = ask_tables(AS_OF, tables)
    assert case.rows("transaction_id, event_time, amount, last, customer_updated_at, matched") == expected
    assert {row[3] for row in expected} == {None, *(version["last"] for _, version in arrived)} - {"unused"}
    assert late > 5


def test_transactions_come_out_while_no_customer_does(feed):
    case = feed(JOB)
    case.add([transaction("t1", "10:00:00.123456", operation='a "b" \\ ü'), transaction("t2", "10:00", "C2")])
    case.work([transaction("clock", "12:00")], lateness="0 seconds")

    assert case.rows(WANTED) == [("t1", None, False), ("t2", None, False)]
    assert case.rows("epoch_us(event_time), operation, amount::VARCHAR") == [
        (1_709_287_200_000_000, None, "10.00"),
        (1_709_287_200_123_456, 'a "b" \\ ü', "10.00"),
    ]


def test_a_customer_far_behind_the_watermark_is_not_late_and_one_ahead_does_not_move_it(feed):
    case = feed(JOB)
    case.add([transaction("t1", "10:00")], [transaction("t2", "12:00")])
    case.work([customer("C9", "of next year", "2025-01-01T00:00")], name="customers", lateness="0 seconds")
    assert case.rows(WANTED) == [("t1", None, False)]

    case.add([customer("C1", "old", "1920-01-01T00:00")], name="customers")
    case.work([transaction("t3", "12:00:10")], lateness="0 seconds")
    assert case.rows(WANTED) == [("t1", None, False), ("t2", "old", True)]


def test_versions_that_no_later_transaction_can_need_are_forgotten(feed):
    case = feed(JOB)
    case.add([customer("C1", f"v{hour:02}", f"{hour:02}:00") for hour in range(24)], name="customers")
    case.work([transaction("t1", "10:30")], [transaction("t2", "12:00")], lateness="0 seconds")
    case.work([transaction("t3", "2024-03-02T12:00")], [transaction("t4", "2024-03-03T12:00")], lateness="0 seconds")

    assert case.rows(WANTED) == [("t1", "v10", True), ("t2", "v12", True), ("t3", "v23", True)]
    reader = case.spark.read.format("statestore").options(operatorId=0, stateVarName="versions")
    state = reader.load(str(case.checkpoint)).selectExpr("value.since").collect()
    assert [len(row.since) for row in state] == [1]
