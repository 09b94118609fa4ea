"""Harm: what suffers, found without a healthy past and without a known trigger; and what is only busy."""

from __future__ import annotations

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.harm import examined, harm, owed

TURNS = {"interval": 4.0, "seconds": [8.2, 12.2, 4.1, 13.6, 6.6], "warm_seconds": 2.0}
FAR_TURNS = {"interval": 4.0, "seconds": [44.0, 11.0, 9.0, 24.0], "warm_seconds": 2.0}


def growing(count, factor, first=4.0):
    return [first * factor**n for n in range(count)]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param({"warm": 0, "seconds": [2.68] * 16}, "overrun", id="1.34 times the interval from birth"),
        pytest.param({"warm": 0, "seconds": [2.2] * 16}, "overrun", id="1.1 times the interval from birth"),
        pytest.param({"seconds": [7.9, 0.3] * 4}, "overrun", id="long and short batches take turns"),
        pytest.param({"seconds": [7.9, 0.3] * 4 + [7.9]}, "overrun", id="the same, and the newest is a long one"),
        pytest.param({"warm": 0, "seconds": [18.0] * 5}, "overrun", id="nine times the interval from birth"),
        pytest.param(
            {"warm": 0, "seconds": [6.0, 21.0], "running": 60.0}, "behind", id="longer and longer, the last without end"
        ),
        pytest.param(
            {
                "warm": 0,
                "interval": 0.0,
                "seconds": growing(9, 1.2),
                "rows": [int(1000 * each) for each in growing(9, 1.2)],
            },
            "behind",
            id="each batch takes longer than its rows took to come",
        ),
        pytest.param(
            {"warm": 0, "seconds": [1.9] * 12, "backlog": [2000 * n for n in range(12)]}, "behind", id="rows are left"
        ),
        pytest.param({"warm": 0, "seconds": [2.0, 26.0], "running": 3.0}, "overrun", id="the next has only begun"),
        pytest.param({"seconds": [7.9, 0.3, 0.3, 0.3] * 5}, "overrun", id="one of four is far over"),
        pytest.param({"seconds": [3.0, 1.0, 3.0] * 6}, "overrun", id="each third one is made up for by half"),
        pytest.param(TURNS, "overrun", id="in turns, by a third"),
        pytest.param(FAR_TURNS, "overrun", id="in turns, up to ten times the interval"),
        pytest.param({"warm": 0, "seconds": [3.0, 13.0, 12.0]}, "overrun", id="two long ones at the start"),
        pytest.param({"seconds": [4.0] * 3}, "overrun", id="three at twice the interval"),
        pytest.param(
            {"warm": 0, "interval": 10.0, "seconds": [14.0, 20.0, 26.0, 32.0], "rows": [1, 2142, 3060, 3825]},
            "behind",
            id="three batches after the first, each longer",
        ),
    ],
)
def test_harm_needs_no_past(history, case, kind):
    found = harm(history(**case))

    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1.9] * 16}, id="busy, and in time"),
        pytest.param({"seconds": [1.0] * 12 + [9.0]}, id="one slow batch"),
        pytest.param({"seconds": [2.05] * 16}, id="longer by the start of a batch"),
        pytest.param({"seconds": [2.3, 0.3] * 10}, id="they take turns, and hardly a trigger is missed"),
        pytest.param({"seconds": [3.0, 0.5, 0.5] * 6}, id="each third one is long, and the others make it up"),
        pytest.param({"seconds": [9.0] + [0.3] * 12}, id="a long one that is made up for"),
        pytest.param({"interval": None, "plan": {"trigger_interval": None}, "seconds": [0.5] * 30}, id="no interval"),
        pytest.param({"warm": 0, "seconds": [5.0, 10.0, 10.0]}, id="two cold writes at the start"),
        pytest.param({"seconds": [7.9, 0.3] * 4 + [0.3] * 3}, id="they took turns, and that is over"),
        pytest.param({"seconds": [1.0] * 8 + [5.0, 4.0, 3.0, 1.0, 1.0]}, id="a burst that is over"),
        pytest.param({"warm": 0, "seconds": [60.0, 30.0, 9.0], "interval": 2.0}, id="catching up after a restart"),
        pytest.param({"warm": 0, "interval": 0.0, "seconds": [3.0] * 16}, id="back to back, heavy but stable"),
        pytest.param(
            {
                "warm": 0,
                "interval": 0.0,
                "seconds": [1.0, 1.5, 1.75, 1.87, 1.94, 1.97, 1.99, 2.0, 2.0],
                "rows": [500, 1000, 1500, 1750, 1870, 1940, 1970, 1990, 2000],
            },
            id="batches that settle at half the capacity",
        ),
        pytest.param({"seconds": [3.0] * 6, "idle": True}, id="idle"),
    ],
)
def test_what_is_only_busy_is_not_harmed(history, case):
    assert harm(history(**case)) is None


def test_what_is_owed_is_the_share_of_the_time_beyond_the_triggers_that_fell_into_it(history):
    found = owed(history(**TURNS))

    assert found is not None
    assert found.span == pytest.approx(8.2 + 12.2 + 4.1 + 13.6 + 6.6)
    assert found.share == pytest.approx(1 - 5 * 4.0 / found.span)
    assert [turn.seconds for turn in found.late] == [8.2, 12.2, 13.6, 6.6]  # 4.1 s are no more than a moment


SLOWED = {"interval": 0.0, "warm": 80, "warm_seconds": 0.25, "warm_rows": 10, "seconds": [1.5, 3.6, 8.6]}
AS_MANY_A_SECOND, MORE_A_SECOND = [25, 60, 144], [60, 144, 344]


def test_rows_that_take_longer_than_they_used_to_are_harm_sooner_than_a_burst(history):
    found = harm(history(**SLOWED, rows=AS_MANY_A_SECOND, running=9.0))

    assert found is not None
    assert found.kind == "behind"
    assert harm(history(**SLOWED, rows=MORE_A_SECOND, running=9.0)) is None


def test_rows_that_take_longer_for_some_seconds_are_no_harm(history):
    assert harm(history(**SLOWED, rows=AS_MANY_A_SECOND, running=2.0)) is None


def test_batches_that_never_pause_and_take_long_are_examined(history):
    assert examined(history(warm=0, interval=0.0, seconds=[3.0] * 16))
    assert not examined(history(warm=0, interval=0.0, seconds=[0.4] * 60))
    assert not examined(history(seconds=[1.0] * 16))


def test_without_harm_nothing_is_a_warning(history):
    verdict = Diagnoser()(history(warm=0, interval=0.0, seconds=[3.0] * 16))

    assert {finding.severity for finding in verdict.findings} <= {"info"}
    assert verdict.status == "healthy"


FEW_AND_LONG = {"warm": 0, "interval": 0.0, "plan": {"trigger": None}}


@pytest.mark.parametrize("stopped", [False, True], ids=["while it runs", "when it was stopped in mid-batch"])
def test_two_batches_of_a_run_without_a_past_are_enough_when_they_last_so_long(history, stopped):
    found = harm(history(**FEW_AND_LONG, seconds=[5.0, 20.0], rows=[1, 1500], running=30.0, stopped=stopped))

    assert found is not None
    assert found.kind == "behind"


def test_a_first_batch_of_a_minute_and_a_second_that_is_as_long_make_results_late(history):
    found = harm(history(**FEW_AND_LONG, seconds=[80.0], rows=[900], running=70.0))

    assert found is not None
    assert found.kind == "late"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"seconds": [80.0], "rows": [900], "running": 62.0}, id="the second may be shorter"),
        pytest.param({"seconds": [80.0], "rows": [0], "running": 70.0}, id="the first had no rows"),
        pytest.param(
            {"seconds": [25.0], "rows": [900], "running": 28.0}, id="together within the objective of a minute"
        ),
        pytest.param(
            {"seconds": [80.0], "rows": [900], "running": 70.0, "plan": {"trigger": "available_now"}},
            id="it ends by itself",
        ),
    ],
)
def test_a_long_first_batch_alone_does_not(history, case):
    assert harm(history(**FEW_AND_LONG | case)) is None


@pytest.mark.parametrize(("seconds", "late"), [(29.0, False), (33.0, True)])
def test_the_oldest_row_of_a_batch_came_when_the_one_before_it_began(history, seconds, late):
    """Results of batches that run back to back are as old as two of them."""
    found = harm(history(warm=0, interval=0.0, seconds=[seconds] * 6, rows=900))

    assert (found is not None and found.kind == "late") is late


def test_two_long_batches_stay_proof_while_the_third_has_just_begun(history):
    found = harm(history(**FEW_AND_LONG, seconds=[31.0, 38.0], rows=[900, 1800], running=3.0))

    assert found is not None
    assert found.kind == "late"


def test_a_first_batch_of_half_a_minute_is_examined_until_a_quick_one_follows(history):
    case = FEW_AND_LONG | {"rows": 900}

    assert examined(history(**case, seconds=[25.0]))
    assert not examined(history(**case, seconds=[15.0]))
    assert not examined(history(**case, seconds=[25.0, 3.0]))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"seconds": [5.0, 4.0], "rows": [1, 1500], "running": 4.0}, id="quick after a slow start"),
        pytest.param({"seconds": [5.0, 8.0], "rows": [1, 1500], "running": 8.0}, id="still warming up"),
        pytest.param({"seconds": [60.0, 9.0], "rows": [90_000, 1500], "running": 3.0}, id="a backlog that is gone"),
        pytest.param({"seconds": [5.0], "rows": [1], "running": 60.0}, id="only one batch so far"),
    ],
)
def test_few_batches_are_no_harm_otherwise(history, case):
    assert harm(history(**FEW_AND_LONG, **case)) is None


UNKNOWN = {"plan": {"trigger": None, "trigger_interval": None}}  # as of an event log


@pytest.mark.parametrize(
    ("case", "worth"),
    [
        pytest.param({"interval": 0.0}, True, id="back to back"),
        pytest.param({"interval": 15.0}, False, id="within the interval"),
        pytest.param({"interval": 0.0} | UNKNOWN, True, id="back to back, the interval is not known"),
        pytest.param({"interval": 15.0} | UNKNOWN, False, id="with pauses, the interval is not known"),
        pytest.param({"interval": 60.0, "seconds": [25.0]}, False, id="one long batch within a longer interval"),
    ],
)
def test_of_a_run_that_has_begun_batches_with_pauses_are_not_examined(history, case, worth):
    assert examined(history(**{"warm": 0, "seconds": [12.0, 7.0, 7.0]} | case)) is worth
