from dataclasses import replace

import numpy as np
import pytest

from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.load.test import plans
from ledgerops.load.test.latency import Weighted
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.plan_batches import done
from ledgerops.load.test.plans import Due
from tests.build import T0, batch, operator, source
from tests.load.test.simulated import ORIGIN, System
from tests.tables import cases

PLAN = parse_plan("phases: [{shape: constant, rate: 100}]")


def read(number, first, last, started, duration=0.5, **changes):
    """A batch that read the rows from `first` to `last`."""
    partitions = [("transactions", "0"), ("transactions", "1")]
    start = {partitions[0]: first // 2, partitions[1]: first - first // 2} if first else {}
    end = {partitions[0]: last // 2, partitions[1]: last - last // 2}
    sources = (source(last - first, start, end),)
    return batch(number, started=T0 + started, duration=duration, rows=last - first, sources=sources, **changes)


def measured(batches, begin=0.0, end=20.0, plan=PLAN, **changes):
    given = {"error": None, **changes}
    return Measured("daily_counts", 2.0, T0 + begin, T0 + end, Due(plan, T0), done(batches), **given)


def steady(count=10, duration=0.5, **changes):
    """Every 2 s a batch with the 200 rows that came in between."""
    return [read(n, 200 * n, 200 * (n + 1), 2.0 * (n + 1), duration, **changes) for n in range(count)]


def test_latency_counts_from_the_due_time_by_the_offsets():
    run = measured(steady())
    # the rows of a batch are due in the 2 s before it begins, and finished 0.5 s after it has begun
    assert [run.rows.latency.at(share) for share in (0.01, 0.5, 1.0)] == pytest.approx([0.5, 1.5, 2.5], abs=0.05)


def test_batches_without_rows_leave_the_oldest_row_unfinished():
    run = measured([read(n, 0, 0, 2.0 * (n + 1)) for n in range(10)])
    assert run.lag == run.final_age == pytest.approx(20.0, abs=0.02)


def test_the_two_legs_of_a_row_make_up_its_latency():
    run = measured(steady())
    assert run.rows.waiting.at(1.0) == pytest.approx(2.0, abs=0.05)
    assert run.rows.working.at(0.5) == pytest.approx(0.5, abs=0.05)
    rows = run.rows
    both = np.maximum(0, rows.start - rows.due) + rows.end - np.maximum(rows.start, rows.due)
    assert both == pytest.approx(rows.end - rows.due)


def test_a_row_that_came_while_its_batch_was_planned_did_not_wait():
    batches = [read(n, 20 + 200 * n if n else 0, 220 + 200 * n, 2.0 * n + 2) for n in range(10)]
    run = measured(batches, end=20.6)
    assert run.rows.waiting.at(0.0) == 0.0
    assert min(run.rows.working.values) == pytest.approx(0.3, abs=0.01)


def test_rows_that_were_never_finished_count_with_their_age():
    """The query hangs after 10 s of 40: whoever reads only finished batches sees a fast query."""
    run = measured(steady(5), end=40.0)
    assert run.rows.latency.at(0.99) > 25
    assert run.rows.working.at(0.99) == pytest.approx(40.0 - 10.5, abs=0.1)  # that batch began when the last had ended
    assert run.lag == pytest.approx(30.0, abs=0.1)


def test_rows_that_are_younger_than_usual_at_the_end_are_left_out():
    with_left, without = measured(steady(10), end=20.4), measured(steady(10), end=19.0)
    assert with_left.rows.latency.at(0.5) == pytest.approx(without.rows.latency.at(0.5), abs=0.15)


def test_only_what_was_due_in_the_measured_part_counts():
    slow_start = [read(0, 0, 200, 2.0, 9.0), *steady(12)[1:]]
    assert measured(slow_start, begin=12.0, end=24.0).rows.latency.at(1.0) < 3.0


def test_offered_and_processed_are_by_the_plan():
    run, half = measured(steady()), measured([read(n, 100 * n, 100 * (n + 1), 2.0 * (n + 1)) for n in range(9)])
    assert (run.offered, run.processed, half.processed) == pytest.approx((100.0, 1.0, 0.5))


def test_lag_is_the_age_of_the_oldest_unfinished_row_at_its_highest():
    assert measured(steady(), end=20.5).lag == pytest.approx(2.5, abs=0.05)


def test_the_lag_of_a_steady_run_does_not_grow():
    assert measured(steady()).slope == pytest.approx(0.0, abs=1e-9)


def test_the_slope_of_the_lag_is_what_is_left_over_of_each_row():
    """100 rows/s come, 80 are read: the age of the oldest grows by 0.2 s a second."""
    run = measured([read(n, 160 * n, 160 * (n + 1), 2.0 * (n + 1)) for n in range(9)])
    middle, half = run.age_slope
    assert middle == pytest.approx(0.2, abs=0.001)
    assert half < 0.001
    assert run.slope == pytest.approx(0.2, abs=0.002)


def test_batches_that_vary_are_no_growth():
    for seed in range(20):
        run = System(noise=0.1, seed=seed).measured(plans.at_rate(12_000, 2.0))
        assert run.slope is not None
        assert run.slope <= 0.01


def test_the_slope_is_what_chance_leaves_of_the_line():
    run = System(noise=0.1).measured(plans.at_rate(30_000, 2.0))
    middle, half = run.age_slope
    assert half > 0.01
    assert run.slope == pytest.approx(max(0.0, middle - half))


def test_a_growth_of_five_percent_is_seen_in_the_noise():
    for seed in range(20):
        run = System(noise=0.02, seed=seed).measured(plans.at_rate(34_000, 2.0))
        assert run.slope > 0.01


def test_batches_wilder_than_any_line_say_nothing_of_the_growth():
    wild, at, last = [], 2.0, 0
    for number, took in enumerate([12.0, 0.3, 14.0, 0.4, 12.0, 0.2, 13.0]):
        wild.append(read(number, last, int(100 * at), at, took))
        at, last = at + took, int(100 * at)
    run = measured(wild, end=at)
    assert run.age_slope[1] > 0.1
    assert run.slope is None


@cases(
    "operators, rows, size",
    ("a stateless query has none, and that is known", (), 0.0, 0.0),
    ("two", (operator(rows=10, memory_bytes=500), operator(rows=5, memory_bytes=700)), 15.0, 1200.0),
)
def test_state_is_taken_over_all_operators(operators, rows, size):
    run = measured(steady(operators=operators))
    assert (run.state_rows, run.state_bytes, run.state_growth) == (rows, size, 0.0)


@cases(
    "state, least, most",
    ("fills evenly, one row each", lambda rows: rows, -0.01, 0.01),
    ("is full", lambda rows: min(rows, 150_000), -1.0, 0.0),
    ("a watermark empties it now and then", lambda rows: rows % 200_000, -0.01, 0.01),
    ("ever faster", lambda rows: rows * rows // 400_000, 0.3, 2.0),
)
def test_state_growth_is_what_a_batch_adds_late_more_than_early(state, least, most):
    run = System(state_rows=state).measured(plans.at_rate(10_000, 2.0))
    assert least <= run.state_growth <= most


def test_a_silent_plan_offers_nothing_and_lags_in_nothing():
    plan = parse_plan("phases: [{shape: constant, rate: 100, duration: 10s}, {shape: constant, rate: 0}]")
    run = measured(steady(5), end=30.0, plan=plan)
    assert run.lag == pytest.approx(2.5, abs=0.05)
    assert run.slope <= 0


def test_batches_of_other_streams_say_nothing_of_the_plan():
    other = batch(0, sources=(source(5, {("customers", "0"): 0}, {("customers", "0"): 5}, name="customers"),))
    assert done([other]) == []


def test_where_two_sources_read_the_plan_the_slower_counts():
    both = (source(50, {}, {("transactions", "0"): 50}), source(80, {}, {("transactions", "0"): 80}))
    [found] = done([batch(0, sources=both)])
    assert (found.first, found.last) == (0, 50)


def test_a_measure_without_batches_is_none():
    run = measured([])
    measures = {run.rows.latency.at(0.5), run.lag, run.slope, run.batch_seconds(0.5), run.state_bytes, run.processed}
    assert measures == {None}


def test_a_percentile_is_weighted_by_rows():
    told = Weighted.of(np.array([5.0, 1.0]), np.array([1.0, 99.0]))
    assert (told.at(0.5), told.at(0.99), told.at(0.995), told.at(1.0)) == (1.0, 1.0, 5.0, 5.0)


def test_the_plan_of_a_rate_begins_calm_and_goes_to_it():
    due = Due(plans.at_rate(1000, 2.0), ORIGIN)
    assert due.count(ORIGIN + 10) == pytest.approx(3000)
    assert due.count(ORIGIN + 30) - due.count(ORIGIN + 20) == pytest.approx(10_000)


def test_a_failed_run_tells_nothing(calm):
    assert replace(calm, error="gone").unknown_because == "gone"
