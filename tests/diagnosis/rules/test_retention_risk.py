import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.retention_risk import RULE
from ledgerops.model.records import TableRead, Tables
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.broker import asked
from tests.tables import cases

HEADROOM, LAG = "ledgerops_retention_headroom_seconds", "ledgerops_source_lag_seconds"
GROWS = [200 * n for n in range(100)]
WEEK = 7 * 86400.0
FALLS = [200_000 - 2000 * n for n in range(60)]
WORKED_OFF = {"warm": 0, "seconds": [2.0] * 60, "rows": 3000, "backlog": FALLS}
SAW_TOOTH = {"interval": 60.0, "seconds": [5.0] * 6, "rows": 30_000, "backlog": [0] * 6}
STANDS = [10.0 * place for place in range(1, 10)]


def behind(**changes):
    """800 of 1,000 rows are read in each 2 s, for 200 s: at its end the oldest unread row is some 40 s old."""
    return {"seconds": [2.0] * 100, "rows": 800, "backlog": GROWS} | changes


def test_a_query_that_comes_near_the_end_of_the_retention_is_found(history):
    [finding] = RULE.check(asked(history(**behind()), [105_800], [0], keeps=48.0, later=2.0))

    assert finding.summary.startswith("the oldest unread row of partition 0 of transactions will be deleted in ")
    assert told_by(finding)[HEADROOM] == pytest.approx(4, abs=1)
    assert told_by(finding)["headroom_share"] < 0.2
    assert finding.remedies[0].action == "raise retention.ms of transactions now, and retention.bytes if it is set"


@pytest.mark.parametrize("lefts", [[100, 102], [102, 100]])
def test_of_partitions_that_are_as_near_the_end_the_first_is_named_so_that_they_do_not_take_turns(history, lefts):
    backlog = [[left * n for left in lefts] for n in range(100)]
    view = history(**behind(read=[[400, 400]] * 100, backlog=backlog, warm_seconds=1.0))
    heads = [42_000 + 3_000 + left * 100 for left in lefts]
    [finding] = RULE.check(asked(view, heads, [0, 0], keeps=48.0, later=2.0))

    assert finding.summary.startswith("the oldest unread row of partition 0 of transactions (and 1 more)")


def test_retention_by_size_shows_in_what_is_deleted(history):
    view = history(**behind())
    for n in range(16):  # 100 offsets a second are deleted, 5,000 are left before the first unread one
        view = asked(view, [105_800 + 2500 * n], [73_000 + 500 * n], later=5.0)
    [finding] = RULE.check(view)

    assert view.lag.consumed[("transactions", "0")] == 86_000
    assert told_by(finding)[HEADROOM] == pytest.approx(5500 / 100, rel=0.1)


@cases(
    "running, keeps, left",
    ("in the last minutes", 600, 1000.0, 400),
    ("in the last fifth of a long retention, long before its end", 85_000, 100_000.0, 15_000),
)
def test_what_stands_still_loses_a_second_each_second_and_is_told_beside_a_stuck_query(history, running, keeps, left):
    """For something else is to be done."""
    view = asked(history(running=running), [9000], [0], keeps=keeps)
    told = told_by(next(RULE.check(view)))
    assert (told[HEADROOM], told["headroom_lost_each_second"]) == (pytest.approx(left, rel=0.01), 1.0)
    assert {root.rule for root in Diagnoser()(view).root_causes} == {"query-stuck", "retention-risk"}


@cases(
    "case, said",
    ("nobody asks the broker", behind(), None),
    ("behind, but the topic keeps a week", behind(), {"keeps": WEEK}),
    ("the topic keeps all", behind(), {}),
    ("its first minute", behind(warm=0, seconds=[2.0] * 9, backlog=GROWS[:9]), {"keeps": 4.0, "latest": [8_800]}),
    ("idle, all is read", {"quiet_for": 500, "idle": True}, {"keeps": 60.0, "latest": [6000]}),
    ("a restart: no past", {"warm": 0, "seconds": [9.0], "backlog": [5000]}, {"keeps": 10.0}),
    ("a first backlog that is worked off", WORKED_OFF, {"keeps": 130.0, "latest": [262_000]}),
    ("the saw-tooth of a long trigger", SAW_TOOTH, {"keeps": 90.0, "latest": [200_000], "later": 50.0}),
    ("lost already: that is another rule", behind(), {"keeps": 20.0, "earliest": [100_000]}),
)
def test_others_are_not(history, case, said):
    view = history(**case)
    if said is not None:
        view = asked(view, **({"latest": [105_800], "earliest": [0], "later": 2.0} | said))
    assert list(RULE.check(view)) == []


def table(history, waits, keeps):
    """The view of a query that reads a table, sampled every ten seconds: the oldest unread commit had waited so many
    seconds (0: nothing was left, None: not known), and the table keeps its commits for `keeps` seconds; None where it
    has all."""
    view = history(seconds=[1.0] * 60, source="DeltaSource[/lake/orders]")
    for place, waited in enumerate(waits):
        at = view.now - 10.0 * (len(waits) - 1 - place)
        oldest = {} if keeps is None else {"oldest": 3, "oldest_at": at - keeps}
        read = TableRead(9, 0 if waited == 0 else 1, since=at - waited if waited else None, **oldest)
        view.history.add_tables(Tables(at, "run-1", {"orders": read}))
    return view.at(view.now)


def test_a_reader_that_comes_near_the_oldest_version_of_its_table_is_found(history):
    [finding] = RULE.check(table(history, STANDS, keeps=100.0))

    assert finding.summary == (
        "the oldest unread commit of orders will be deleted in 10 s, 10% of the time that the table keeps rows, and "
        "the query is not catching up"
    )
    assert finding.remedies[0].action.startswith("raise delta.logRetentionDuration of orders now")
    told = {HEADROOM: 10.0, "headroom_share": 0.1, "headroom_lost_each_second": 1.0, LAG: 90.0}
    assert told_by(finding) == pytest.approx(told)


@cases(
    "waits, keeps",
    ("the table has all its versions", STANDS, None),
    ("behind, but the table keeps a day", STANDS, 90_000.0),
    ("a backlog that is worked off", STANDS[::-1], 100.0),
    ("near the end, and steady: a table that keeps little", [90.0] * 9, 100.0),
    ("all is read", [*STANDS[:-1], 0.0], 100.0),
    ("the samples of a few seconds", STANDS[-3:], 100.0),
    ("it is not known how long a commit had waited before", [None] * 8 + STANDS[-1:], 100.0),
)
def test_other_readers_of_tables_are_not(history, waits, keeps):
    assert list(RULE.check(table(history, waits, keeps))) == []
