"""The closed forms of the load: integral and inverse agree, whatever the shapes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.plan.phases import Burst, Constant, Ramp, Sine
from ledgerops.ledger.plan.schedule import Schedule
from tests.tables import cases

RATES = st.floats(0, 1e5).map(lambda rate: round(rate, 2))
LENGTHS = st.floats(0.1, 1e4).map(lambda seconds: round(seconds, 2))


@st.composite
def phases(draw, duration=LENGTHS):
    kind = draw(st.sampled_from(["constant", "ramp", "sine", "burst"]))
    low, high, length = draw(RATES), draw(RATES), draw(duration)
    if kind == "constant":
        return Constant(low, length)
    if kind == "ramp":
        return Ramp(low, high, length)
    period = draw(LENGTHS)
    if kind == "sine":
        return Sine(min(low, high), max(low, high), period, length)
    return Burst(low, high, period, period * draw(st.floats(0.01, 1)), length)


@st.composite
def schedules(draw):
    repeat = draw(st.booleans())
    first = draw(st.lists(phases(), min_size=1 if repeat else 0, max_size=4))
    last = [] if repeat else [Constant(draw(st.floats(1, 1e4)), math.inf)]
    schedule = Schedule((*first, *last), repeat)
    total = schedule.cumulative(np.array([sum(phase.duration for phase in first)]))[0]
    return schedule if not repeat or total > 1 else Schedule((*first, Constant(100, 10)), True)


@settings(deadline=None)
@given(schedules(), st.lists(st.integers(0, 10**7), min_size=1, max_size=20))
def test_the_integral_at_a_records_due_time_is_its_number(schedule, numbers):
    records = np.array(sorted(numbers), np.int64)
    due = schedule.due_time(records)
    assert schedule.cumulative(due) == pytest.approx(records + 1, rel=1e-9, abs=1e-3)
    assert np.all(np.diff(due) >= 0)


@settings(deadline=None)
@given(schedules(), st.floats(0, 1e5), st.floats(0, 1e3))
def test_the_integral_never_falls(schedule, seconds, more):
    before, after = schedule.cumulative(np.array([seconds, seconds + more]))
    assert after >= before - 1e-9 * max(1.0, before)


@settings(deadline=None)
@given(schedules(), st.integers(0, 10**6))
def test_a_record_is_due_at_its_time_and_not_long_before(schedule, number):
    at = float(schedule.due_time(np.array([number]))[0])
    assert schedule.due(at + 1e-3) >= number + 1
    assert schedule.due(at - 1e-3) <= number + 100 * 2  # 100,000 rows a second for 2 ms


@cases(
    "phase, seconds, amount",
    ("constant", Constant(10, 60), 6, 60),
    ("ramp from zero: the triangle", Ramp(0, 100, 10), 10, 500),
    ("ramp to zero", Ramp(100, 0, 10), 10, 500),
    ("half a ramp", Ramp(10, 30, 10), 5, 75),
    ("a full swing is its mean", Sine(0, 20, 10, 60), 10, 100),
    ("half a swing from the low point", Sine(0, 20, 10, 60), 5, 50),
    ("before the burst", Burst(1, 100, 10, 2, 60), 8, 8),
    ("after the burst", Burst(1, 100, 10, 2, 60), 10, 208),
    ("in the calm after the first burst", Burst(0, 100, 10, 2, 60), 15, 200),
)
def test_amounts_that_can_be_worked_out_by_hand(phase, seconds, amount):
    assert phase.amount(np.array([float(seconds)]))[0] == pytest.approx(amount)


def test_the_last_phase_holds_for_ever_and_nothing_is_due_before_the_start():
    schedule = Schedule((Constant(10, 10), Constant(1, math.inf)), repeat=False)
    assert (schedule.due(1010), schedule.due(-5)) == (1100, 0)


def test_a_repeated_schedule_begins_again():
    schedule = Schedule((Constant(10, 10), Constant(0, 10)), repeat=True)
    due = {10: 100, 19.9: 100, 20: 100, 21: 110, 30: 200, 40: 200, 2000: 10_000}
    assert {seconds: schedule.due(seconds) for seconds in due} == due


def test_a_year_later_the_schedule_is_still_exact():
    schedule = Schedule((Constant(700, math.inf),), repeat=False)
    number = 700 * 365 * 86_400
    assert schedule.due(365 * 86_400) == number
    assert schedule.due_time(np.array([number - 1]))[0] == 365 * 86_400


def test_the_last_record_before_a_calm_does_not_wait_for_its_end():
    schedule = Schedule((Constant(10, 10), Constant(0, 10), Constant(10, math.inf)), repeat=False)
    assert schedule.due_time(np.array([98, 99, 100])).tolist() == pytest.approx([9.9, 10.0, 20.1])


def test_the_inverse_of_a_sine_is_exact_to_a_thousandth_of_a_record():
    sine = Sine(100, 5000, 3600, math.inf)
    amounts = np.linspace(1, 10**8, 10_001)
    assert np.abs(sine.amount(sine.when(amounts)) - amounts).max() < 1e-3


def test_a_schedule_that_ends_has_so_many_records_and_one_that_never_ends_no_total():
    ending = Schedule((Constant(0.1, 30.000001), Constant(0, 5), Ramp(10, 0, 3), Constant(0, math.inf)), repeat=False)
    assert ending.total == 18
    assert ending.due_time(np.array([2, 3, 17, 18])).tolist() == pytest.approx([30, 35.1, 38, math.inf], abs=0.01)
    for last in (Constant(1, math.inf), Sine(0, 9, 60, math.inf), Burst(0, 9, 90, 1, math.inf)):
        assert Schedule((Constant(0, 5), last), repeat=False).total is None


@pytest.mark.parametrize(("rate", "seconds"), [(0.1, 30), (100, 30), (0.7, 90), (2.3, 110)])
def test_the_last_record_before_a_silence_comes_before_it_whatever_the_rounding(rate, seconds):
    schedule = Schedule((Constant(rate, seconds), Constant(0, 60), Constant(1, math.inf)), repeat=False)
    assert schedule.due_time(np.array([round(rate * seconds) - 1]))[0] <= seconds + 1e-5


@settings(deadline=None)
@given(schedules(), st.floats(0, 1e4))
def test_the_first_record_from_an_instant_on_is_due_then(schedule, seconds):
    number = schedule.first_at(seconds)
    assert schedule.due_time(np.array([number]))[0] >= seconds
    assert not number or schedule.due_time(np.array([number - 1]))[0] < seconds
