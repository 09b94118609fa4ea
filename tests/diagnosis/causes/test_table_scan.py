import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.table_scan import CAUSE
from ledgerops.diagnosis.harm import harm
from ledgerops.diagnosis.rules import BY_SLUG
from tests.diagnosis.conftest import stage, told_by
from tests.tables import cases

INPUT = stage(records=[50, 50], seconds=[0.2, 0.2])
TABLE = stage(records=[500_000, 500_000], seconds=[3.5, 3.5], began=0.3, shuffle=False)
SMALL_TABLE = stage(records=[900, 900], shuffle=False, seconds=[0.3, 0.3])
SLOW = {"seconds": [4.0] * 8, "rows": 100, "phases": {"add_batch": 3.9}}
GROWN = {"interval": 3.0, "rows": 600, "warm": 0, "seconds": [2.0] * 14 + [7.0] * 8}
PHASES = [{"add_batch": seconds - 0.1} for seconds in GROWN["seconds"]]
BROADCAST = (
    "4.0 s of a batch of 7.0 s are work on 1,200,000 rows (usually 2,000) that it reads beside the 600 of its "
    "sources; usually 0.20 s"
)
BEFORE = (
    "2.6 s of a batch of 3.2 s are work on 1,280,000 rows (usually 260,000) that it reads beside the 600 of its "
    "sources; usually 0.52 s"
)
WRITES = {"records": [300, 300], "seconds": [0.2, 0.2], "shuffle": False}


@cases(
    "plan, first",
    ("any sink", {}, "see in the Spark UI, page SQL, which scan"),
    ("a function", {"sink": "foreachBatch"}, "look for reads of a table in the function"),
)
def test_a_table_that_each_batch_reads_is_told_with_its_rows(history, plan, first):
    [finding] = check(CAUSE, history(**SLOW, stages=[INPUT, TABLE], warm=0, plan=plan))

    assert finding.summary == (
        "3.5 s of a batch of 4.0 s are work on 1,000,000 rows that it reads beside the 100 of its sources"
    )
    assert told_by(finding)["scanned_rows"] == 1_000_000
    assert finding.remedies[0].action.startswith(first)
    assert finding.remedies[1].action == "set the trigger interval to 6 s or more, if results may be that old"


@pytest.mark.parametrize(("rows", "named"), [(100, "table-scan"), (1_000_000, "input-overload")])
def test_it_is_the_table_or_more_input_than_the_query_can_process(history, rows, named):
    view = history(**SLOW | {"seconds": [4.0] * 20, "rows": rows}, stages=[TABLE])
    assert [slug for slug in ("table-scan", "input-overload") if list(BY_SLUG[slug].check(view))] == [named]


@cases(
    "case",
    ("the rows are the input's", {"stages": [TABLE], "rows": 1_000_000}),
    ("it takes little", {"stages": [stage(records=[50, 50], seconds=[3.5, 3.5]), SMALL_TABLE]}),
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, history(**SLOW | {"warm": 0} | case))) == []


def read_and_broadcast(rows, seconds, driver):
    """A stage that reads a table, the driver that builds what it broadcasts, and the stage that writes the batch."""
    scan = stage(records=[rows / 2] * 2, seconds=[seconds] * 2, began=0.3, shuffle=False, writes=True)
    return [scan, stage(**WRITES, began=0.3 + seconds + driver)]


@cases(
    "now, told",
    ("a table that grew", read_and_broadcast(1_200_000, 2.0, 3.5), [BROADCAST]),
    ("the usual table, and a driver that got slow after its scan", read_and_broadcast(2000, 0.1, 5.0), []),
)
def test_a_table_that_grew_and_is_broadcast_is_told_with_the_time_of_the_driver(history, now, told):
    stages = [read_and_broadcast(2000, 0.1, 0.3)] * 14 + [now] * 8
    assert [finding.summary for finding in check(CAUSE, history(**GROWN, phases=PHASES, stages=stages))] == told


def growing(count, start=20_000, step=60_000):
    """Batches of which each reads more of a table and takes as much longer, at an interval of 3 s."""
    tables = [start + step * max(0, n - 10) for n in range(count)]
    stages = [read_and_broadcast(rows, rows / 1_000_000, rows / 1_000_000) for rows in tables]
    seconds = [0.6 + 2 * rows / 1_000_000 for rows in tables]
    return {"seconds": seconds, "stages": stages, "phases": [{"add_batch": each - 0.1} for each in seconds]}


@cases(
    "case, told",
    ("it grows", growing(34), [BEFORE]),
    ("in batches with time to spare", growing(28), []),
    ("it stays as large, in batches without time to spare", growing(34, start=1_150_000, step=0), []),
)
def test_a_table_that_grows_from_batch_to_batch_is_told_before_the_query_owes_time(history, case, told):
    view = history(interval=3.0, rows=600, warm=0, **case)
    assert harm(view) is None
    assert [finding.summary for finding in check(CAUSE, view)] == told
