"""A query that reads a table with a cap, as Delta does: what its batches leave is known from the table's history."""

from ledgerops.diagnosis.facts.unread import unread
from ledgerops.diagnosis.rules.falling_behind import RULE as FALLING_BEHIND
from ledgerops.diagnosis.rules.rate_limited import RULE as RATE_LIMITED
from ledgerops.model.records import TableRead, Tables
from tests.diagnosis.conftest import told_by
from tests.tables import cases

SOURCE = "DeltaSource[/lake/orders]"
CAP = {"rate_limits": {"maxFilesPerTrigger": "3"}}
GROWS = [1.5 * place for place in range(1, 33)]


def reads(history, waits, versions=None, run_id="run-1", **case):
    """The view of a query that ends batches of 0.5 s in an interval of 2 s; after each of the last ones the oldest
    unread commit had waited so many seconds (0: nothing was left, None: not known), and so many versions were left."""
    view = history(**{"seconds": [0.5] * len(waits), "source": SOURCE, "plan": CAP} | case)
    batches = list(view.history.batches)[-len(waits) :]
    lefts = versions or [2 + place for place in range(len(waits))]
    for batch, waited, left in zip(batches, waits, lefts, strict=True):
        at = batch.ended + 0.4
        read = TableRead(head=99, versions=0 if waited == 0 else left, since=at - waited if waited else None)
        view.history.add_tables(Tables(at, run_id, {batch.sources[0].name: read}))
    return view.at(view.now + 0.5)


def test_commits_that_wait_for_longer_and_longer_are_a_query_that_falls_behind_and_a_cap_is_named(history):
    view = reads(history, GROWS)
    [behind], [capped] = FALLING_BEHIND.check(view), RATE_LIMITED.check(view)
    waits = {"commit_wait_seconds": 48.0, "commit_wait_growth_seconds": 10.5}
    assert (told_by(behind), told_by(capped)) == (waits, waits | {"batch_seconds_median": 0.5})

    assert behind.summary == (
        "commits of the table wait for longer and longer: the oldest unread one was 38 s old 8 batches ago and is "
        "48 s old now"
    )
    assert capped.summary == (
        "maxFilesPerTrigger is 3: the last 5 batches took 0.50 s of 2 s at the median; the oldest unread commit now "
        "waits 48 s, 10 s longer than before"
    )
    # 12 files arrive in an interval: a quarter of the commits is read
    assert capped.remedies[0].action == "raise maxFilesPerTrigger to about 18 and start the query again"


def test_the_cap_of_another_source_is_none_of_the_table(history):
    view = reads(history, GROWS, plan={"rate_limits": {"maxOffsetsPerTrigger": "1000"}})
    assert (unread(view).option, len([*FALLING_BEHIND.check(view)])) == ("", 1)


@cases(
    "waits, case",
    ("it keeps up with a busy table", [0.0, 2.0, 4.0, 0.0] * 8, {}),
    ("large but steady", [60.0] * 32, {}),
    ("an old backlog that is worked off", GROWS[::-1], {}),
    ("one old version that is being read", GROWS, {"versions": [1] * 32}),
    ("too few batches to tell", GROWS[:6], {}),
    ("the first snapshot: its age is not known", [None] * 32, {}),
    ("of an earlier run", GROWS, {"run_id": "run-0"}),
    ("the saw-tooth of commits", [float(place % 5) for place in range(32)], {}),
)
def test_others_do_not_fall_behind(history, waits, case):
    view = reads(history, waits, **case)
    assert unread(view) is None
    assert [*FALLING_BEHIND.check(view), *RATE_LIMITED.check(view)] == []


@cases(
    "case",
    ("no cap is set", {"plan": {}}),
    ("batches take all the interval", {"seconds": [1.9] * 32}),
    ("batches run back to back", {"interval": 0.0}),
)
def test_a_table_that_waits_for_another_reason_is_not_the_cap_s(history, case):
    assert list(RATE_LIMITED.check(reads(history, GROWS, **case))) == []
