"""Harm: what suffers, found without a healthy past and without a known trigger; and what is only busy."""

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.harm import examined, harm, late_batches, owed
from tests.diagnosis.rules.crowd import suspended
from tests.tables import cases

TURNS = {"interval": 4.0, "seconds": [8.2, 12.2, 4.1, 13.6, 6.6], "warm_seconds": 2.0}
FAR_TURNS = {"interval": 4.0, "seconds": [44.0, 11.0, 9.0, 24.0], "warm_seconds": 2.0}
GROWS = [4.0 * 1.2**n for n in range(9)]
OUTGROWN = {"warm": 0, "interval": 0.0, "seconds": GROWS, "rows": [int(1000 * each) for each in GROWS]}
LONGER = {"warm": 0, "interval": 10.0, "seconds": [14.0, 20.0, 26.0, 32.0], "rows": [1, 2142, 3060, 3825]}


def kind(view):
    """What suffers; None where nothing does."""
    found = harm(view)
    return found and found.kind


UNEVEN = [3.3, 2.6, 3.1, 3.4, 2.9, 2.7, 3.3, 3.0, 3.6, 2.9, 4.0, 3.3, 2.7]
SHORTEST = [*UNEVEN[:-2], 4.0, 3.3, 2.5]
REAL_TIME = {"interval": 5.0, "seconds": [6.4] * 12, "plan": {"trigger": "real_time"}}


@cases(
    "case, expected",
    ("1.1 times the interval from birth", {"warm": 0, "seconds": [2.2] * 16}, "overrun"),
    ("long and short batches take turns", {"seconds": [7.9, 0.3] * 4}, "overrun"),
    ("the same, and the newest is a long one", {"seconds": [7.9, 0.3] * 4 + [7.9]}, "overrun"),
    ("nine times the interval from birth", {"warm": 0, "seconds": [18.0] * 5}, "overrun"),
    ("longer, the last without end", {"warm": 0, "seconds": [6.0, 21.0], "running": 60.0}, "behind"),
    ("each batch takes longer than its rows took to come", OUTGROWN, "behind"),
    ("rows are left", {"warm": 0, "seconds": [1.9] * 12, "backlog": [2000 * n for n in range(12)]}, "behind"),
    ("the next has only begun", {"warm": 0, "seconds": [2.0, 26.0], "running": 3.0}, "overrun"),
    ("one of four is far over", {"seconds": [7.9, 0.3, 0.3, 0.3] * 5}, "overrun"),
    ("each third one is made up for by half", {"seconds": [3.0, 1.0, 3.0] * 6}, "overrun"),
    ("in turns, by a third", TURNS, "overrun"),
    ("in turns, up to ten times the interval", FAR_TURNS, "overrun"),
    ("two long ones at the start", {"warm": 0, "seconds": [3.0, 13.0, 12.0]}, "overrun"),
    ("three at twice the interval", {"seconds": [4.0] * 3}, "overrun"),
    ("uneven, and by chance each of the newest is shorter", {"warm": 0, "seconds": UNEVEN}, "overrun"),
    ("the same, and by chance it is the shortest of all", {"warm": 0, "seconds": SHORTEST}, "overrun"),
    ("three batches after the first, each longer", LONGER, "behind"),
)
def test_harm_needs_no_past(history, case, expected):
    assert kind(history(**case)) == expected


SHORTER = [10.7, 10.5, 9.6, 7.6]
SETTLING = [0.5, 1.0, 1.5, 1.75, 1.87, 1.94, 1.97, 1.99, 2.0, 2.0]
SETTLES = {"warm": 0, "interval": 0.0, "seconds": SETTLING[1:], "rows": [int(1000 * each) for each in SETTLING[:-1]]}


@cases(
    "case",
    ("no batch yet", {"warm": 0}),
    ("busy, and in time", {"seconds": [1.9] * 16}),
    ("one slow batch", {"seconds": [1.0] * 12 + [9.0]}),
    ("longer by the start of a batch", {"seconds": [2.05] * 16}),
    ("they take turns, and hardly a trigger is missed", {"seconds": [2.3, 0.3] * 10}),
    ("each third one is long, and the others make it up", {"seconds": [3.0, 0.5, 0.5] * 6}),
    ("a long one that is made up for", {"seconds": [9.0] + [0.3] * 12}),
    ("no interval", {"interval": None, "plan": {"trigger_interval": None}, "seconds": [0.5] * 30}),
    ("two cold writes at the start", {"warm": 0, "seconds": [5.0, 10.0, 10.0]}),
    ("they took turns, and that is over", {"seconds": [7.9, 0.3] * 4 + [0.3] * 3}),
    ("a burst that is over", {"seconds": [1.0] * 8 + [5.0, 4.0, 3.0, 1.0, 1.0]}),
    ("catching up after a restart", {"warm": 0, "seconds": [60.0, 30.0, 9.0], "interval": 2.0}),
    ("each of the newest is shorter, and the next one runs", {"warm": 0, "seconds": SHORTER, "running": 6.0}),
    ("back to back, heavy but stable", {"warm": 0, "interval": 0.0, "seconds": [3.0] * 16}),
    ("batches that settle at half the capacity", SETTLES),
    ("idle", {"seconds": [3.0] * 6, "idle": True}),
    ("real-time mode, with what it takes to plan and commit", REAL_TIME),
)
def test_what_is_only_busy_is_not_harmed(history, case):
    assert harm(history(**case)) is None


def test_what_is_owed_is_the_share_of_the_time_beyond_the_triggers_that_fell_into_it(history):
    found = owed(history(**TURNS))

    assert found.span == pytest.approx(8.2 + 12.2 + 4.1 + 13.6 + 6.6)
    assert found.share == pytest.approx(1 - 5 * 4.0 / found.span)
    assert [turn.seconds for turn in found.late] == [8.2, 12.2, 13.6, 6.6]  # 4.1 s are no more than a moment


SLOWED = {"interval": 0.0, "warm": 80, "warm_seconds": 0.25, "warm_rows": 10, "seconds": [1.5, 3.6, 8.6]}
AS_MANY_A_SECOND, MORE_A_SECOND = [25, 60, 144], [60, 144, 344]


@cases(
    "rows, running, expected",
    ("for long", AS_MANY_A_SECOND, 9.0, "behind"),
    ("for some seconds", AS_MANY_A_SECOND, 2.0, None),
    ("a burst", MORE_A_SECOND, 9.0, None),
)
def test_rows_that_take_longer_than_they_used_to_are_harm_sooner_than_a_burst(history, rows, running, expected):
    assert kind(history(**SLOWED, rows=rows, running=running)) == expected


def test_without_harm_nothing_is_a_warning(history):
    verdict = Diagnoser()(history(warm=0, interval=0.0, seconds=[3.0] * 16))
    assert {finding.severity for finding in verdict.findings} <= {"info"}
    assert verdict.status == "healthy"


ENDS = {"trigger": "available_now"}
LESS_LEFT = [90_000 - 800 * n for n in range(6)]
FEW_AND_LONG = {"warm": 0, "interval": 0.0, "plan": {"trigger": None}}


@cases(
    "case, expected",
    ("two that last so long", {"seconds": [5.0, 20.0], "rows": [1, 1500], "running": 30.0}, "behind"),
    ("and stopped", {"seconds": [5.0, 20.0], "rows": [1, 1500], "running": 30.0, "stopped": True}, "behind"),
    ("a minute, and a second one as long", {"seconds": [80.0], "rows": [900], "running": 70.0}, "late"),
    ("the third has just begun", {"seconds": [31.0, 38.0], "rows": [900, 1800], "running": 3.0}, "late"),
    ("the second may be shorter", {"seconds": [80.0], "rows": [900], "running": 62.0}, None),
    ("the first had no rows", {"seconds": [80.0], "rows": [0], "running": 70.0}, None),
    ("together within the objective of a minute", {"seconds": [25.0], "rows": [900], "running": 28.0}, None),
    ("it ends by itself", {"seconds": [80.0], "rows": [900], "running": 70.0, "plan": ENDS}, None),
    ("quick after a slow start", {"seconds": [5.0, 4.0], "rows": [1, 1500], "running": 4.0}, None),
    ("still warming up", {"seconds": [5.0, 8.0], "rows": [1, 1500], "running": 8.0}, None),
    ("a backlog that is gone", {"seconds": [60.0, 9.0], "rows": [90_000, 1500], "running": 3.0}, None),
    ("only one batch so far", {"seconds": [5.0], "rows": [1], "running": 60.0}, None),
    ("rows from before its start", {"seconds": [80.0], "rows": [900], "backlog": [90_000], "running": 70.0}, None),
    ("and it has more of them", {"seconds": [33.0] * 6, "rows": 900, "backlog": LESS_LEFT, "plan": {}}, None),
    ("they are read", {"seconds": [33.0] * 6, "rows": 900, "backlog": [*LESS_LEFT[:3], 0, 0, 0], "plan": {}}, "late"),
)
def test_few_batches_of_a_run_without_a_past_are_enough_when_they_last_so_long(history, case, expected):
    assert kind(history(**FEW_AND_LONG | case)) == expected


@pytest.mark.parametrize(("seconds", "late"), [(29.0, False), (33.0, True)])
def test_the_oldest_row_of_a_batch_came_when_the_one_before_it_began(history, seconds, late):
    """Results of batches that run back to back are as old as two of them."""
    assert (kind(history(warm=0, interval=0.0, seconds=[seconds] * 6, rows=900)) == "late") is late


UNKNOWN = {"plan": {"trigger": None, "trigger_interval": None}}  # as of an event log


@cases(
    "case, worth",
    ("back to back", {"interval": 0.0}, True),
    ("within the interval", {"interval": 15.0}, False),
    ("back to back, the interval is not known", {"interval": 0.0} | UNKNOWN, True),
    ("with pauses, the interval is not known", {"interval": 15.0} | UNKNOWN, False),
    ("one long batch within a longer interval", {"interval": 60.0, "seconds": [25.0]}, False),
    ("many back to back, and long", {"interval": 0.0, "seconds": [3.0] * 16}, True),
    ("many back to back, and short", {"interval": 0.0, "seconds": [0.4] * 60}, False),
    ("in time, after a past", {"warm": 6, "seconds": [1.0] * 16}, False),
    ("a first batch of half a minute", FEW_AND_LONG | {"seconds": [25.0]}, True),
    ("a first batch that is shorter", FEW_AND_LONG | {"seconds": [15.0]}, False),
    ("a quick one follows", FEW_AND_LONG | {"seconds": [25.0, 3.0]}, False),
    ("real-time mode", REAL_TIME | {"seconds": [6.4] * 3}, False),
)
def test_batches_that_never_pause_and_take_long_are_examined(history, case, worth):
    assert examined(history(**{"warm": 0, "seconds": [12.0, 7.0, 7.0]} | case)) is worth


@cases(
    "seconds, running, late_alone",
    ("most are late", [5.0, 1.0, 5.0] * 4, None, True),
    ("a few, which take nearly all of the time", [1.0, 1.0, 1.0, 30.0, 1.0, 1.0, 1.0, 1.0, 1.0, 30.0], None, True),
    ("a few, and others take time, too", [1.0, 1.0, 1.0, 5.0] * 4, None, False),
    ("a short one, before one that hangs", [1.0, 3.0, *[1.0] * 8], 60.0, False),
    ("none", [1.0] * 12, None, False),
)
def test_the_batches_to_explain_are_the_late_ones_where_these_have_the_time(history, seconds, running, late_alone):
    view = history(warm=0, interval=2.0, seconds=seconds, running=running)
    assert (min(batch.duration for batch in late_batches(view)) > 2.0) is late_alone


@cases("still, expected", ("it ran for as long", 0, "overrun"), ("the driver was suspended meanwhile", 60, None))
def test_a_batch_owes_nothing_for_the_time_in_which_the_driver_was_suspended(history, still, expected):
    view = history(seconds=[1] * 6 + [62])
    assert kind(suspended(view, still, ago=0.5) if still else view) == expected
