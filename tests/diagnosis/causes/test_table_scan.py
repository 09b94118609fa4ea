import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.table_scan import CAUSE
from ledgerops.diagnosis.harm import harm
from ledgerops.diagnosis.rules import BY_SLUG
from tests.diagnosis.conftest import stage
from tests.tables import cases

INPUT = stage(records=[50, 50], seconds=[0.2, 0.2])
TABLE = stage(records=[500_000, 500_000], seconds=[3.5, 3.5], began=0.3, shuffle=False)
SMALL_TABLE = stage(records=[900, 900], shuffle=False, seconds=[0.3, 0.3])
SLOW = {"seconds": [4.0] * 8, "rows": 100, "phases": {"add_batch": 3.9}}
GROWN = {"interval": 3.0, "rows": 600, "warm": 0, "seconds": [2.0] * 14 + [7.0] * 8}
PHASES = [{"add_batch": seconds - 0.1} for seconds in GROWN["seconds"]]
WRITES = {"records": [300, 300], "seconds": [0.2, 0.2], "shuffle": False}


def test_a_table_that_each_batch_reads_is_told_with_its_rows(history):
    [finding] = check(CAUSE, history(**SLOW, stages=[INPUT, TABLE], warm=0))

    assert finding.summary == (
        "3.5 s of a batch of 4.0 s are work on 1,000,000 rows that it reads beside the 100 of its sources"
    )
    assert {each.name: each.value for each in finding.evidence}["scanned_rows"] == 1_000_000
    assert finding.remedies[1].action == "set the trigger interval to 6 s or more, if results may be that old"


@pytest.mark.parametrize(("rows", "named"), [(100, "table-scan"), (1_000_000, "input-overload")])
def test_it_is_the_table_or_more_input_than_the_query_can_process(history, rows, named):
    view = history(**SLOW | {"seconds": [4.0] * 20, "rows": rows}, stages=[TABLE])
    assert [slug for slug in ("table-scan", "input-overload") if list(BY_SLUG[slug].check(view))] == [named]


@cases(
    "plan, first",
    ("any sink", {}, "see in the Spark UI, page SQL, which scan"),
    ("a function", {"sink": "foreachBatch"}, "look for reads of a table in the function"),
)
def test_where_to_look_depends_on_the_sink(history, plan, first):
    [finding] = check(CAUSE, history(**SLOW, stages=[INPUT, TABLE], warm=0, plan=plan))
    assert finding.remedies[0].action.startswith(first)


@cases(
    "case",
    ("the rows are the input's", {"stages": [TABLE], "rows": 1_000_000}),
    ("in time", {"stages": [INPUT, TABLE], "warm_seconds": 4.0, "interval": 10.0}),
    ("it takes little", {"stages": [stage(records=[50, 50], seconds=[3.5, 3.5]), SMALL_TABLE]}),
    ("tasks unknown", {}),
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, history(**SLOW | {"warm": 0} | case))) == []


def read_and_broadcast(rows, seconds, driver):
    """A stage that reads a table, the driver that builds what it broadcasts, and the stage that writes the batch."""
    scan = stage(records=[rows / 2] * 2, seconds=[seconds] * 2, began=0.3, shuffle=False)
    return [scan, stage(**WRITES, began=0.3 + seconds + driver)]


def test_a_table_that_grew_and_is_broadcast_is_told_with_the_time_of_the_driver(history):
    now, usual = read_and_broadcast(1_200_000, 2.0, 3.5), read_and_broadcast(2000, 0.1, 0.3)
    [finding] = check(CAUSE, history(**GROWN, phases=PHASES, stages=[usual] * 14 + [now] * 8))

    assert finding.summary == (
        "4.0 s of a batch of 7.0 s are work on 1,200,000 rows (usually 2,000) that it reads beside the 600 of its "
        "sources; usually 0.20 s"
    )


def test_a_driver_that_got_slow_after_a_scan_of_the_usual_table_is_no_scan(history):
    now, usual = read_and_broadcast(2000, 0.1, 5.0), read_and_broadcast(2000, 0.1, 0.3)
    assert list(check(CAUSE, history(**GROWN, phases=PHASES, stages=[usual] * 14 + [now] * 8))) == []


def growing(count, start=20_000, step=60_000):
    """Batches of which each reads more of a table and takes as much longer, at an interval of 3 s."""
    tables = [start + step * max(0, n - 10) for n in range(count)]
    stages = [read_and_broadcast(rows, rows / 1_000_000, rows / 1_000_000) for rows in tables]
    seconds = [0.6 + 2 * rows / 1_000_000 for rows in tables]
    return {"seconds": seconds, "stages": stages, "phases": [{"add_batch": each - 0.1} for each in seconds]}


def test_a_table_that_grows_from_batch_to_batch_is_told_before_the_query_owes_time(history):
    view = history(interval=3.0, rows=600, warm=0, **growing(34))
    [finding] = check(CAUSE, view)
    assert harm(view) is None
    assert finding.summary == (
        "2.6 s of a batch of 3.2 s are work on 1,280,000 rows (usually 260,000) that it reads beside the 600 of its "
        "sources; usually 0.52 s"
    )


@cases(
    "case",
    ("a table that grows in batches with time to spare", growing(28)),
    ("a table that stays as large, in batches without time to spare", growing(34, start=1_150_000, step=0)),
)
def test_a_table_with_room_to_grow_is_left_alone(history, case):
    assert list(check(CAUSE, history(interval=3.0, rows=600, warm=0, **case))) == []
