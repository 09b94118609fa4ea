"""Signals of a query at one moment: what consumption hides, what grows while nothing happens, what is unknown."""

from __future__ import annotations

import pytest

from ledgerops.history import History
from ledgerops.records import Plan, Running
from ledgerops.view import View
from tests.build import T0, batch, history, source, stream


def view(batches, after=1.0, plan=None):
    remembered = history(batches)
    if plan is not None:
        remembered.plan = Plan("run-1", **plan)
    now = batches[-1].ended + after if batches else T0
    return View(remembered, now)


def test_arrival_is_the_growth_of_the_head_and_not_what_was_read():
    steady = view(stream(heads=[1000 * n for n in range(1, 11)], ends=[100 * n for n in range(1, 11)]))
    assert steady.arrival == pytest.approx(500)
    assert steady.input_rate_by_source["transactions"] == pytest.approx(50)


def test_backlog_explodes_while_input_and_processing_rates_are_equal():
    behind = view(stream(heads=[1000 * n for n in range(1, 21)], ends=[500 * n for n in range(1, 21)], duration=2.0))
    assert behind.input_rate_by_source["transactions"] == pytest.approx(behind.processed_rate, rel=0.05)
    assert behind.backlog == 10_000
    assert behind.backlog_slope == pytest.approx(250)


def test_lag_in_seconds_grows_while_nothing_happens():
    batches = stream(heads=[100, 200, 300], ends=[0, 0, 50])
    assert view(batches, after=60).lag_seconds == pytest.approx(view(batches, after=1).lag_seconds + 59)


def test_what_came_in_while_the_batch_was_planned_was_not_left_behind():
    batches = stream(heads=[100, 200, 309], ends=[100, 200, 300], phases={"latest_offset": 0.2})
    assert view(batches, after=30).lag_seconds == 0.0


def test_an_idle_query_has_no_arrival():
    remembered = history(stream(heads=[100, 200, 300], ends=[100, 200, 300]))
    remembered.idle(T0 + 30)
    assert View(remembered, T0 + 31).arrival == 0.0


def test_lag_is_zero_when_nothing_was_left_however_long_ago():
    assert view(stream(heads=[100, 200, 300], ends=[100, 200, 300]), after=500).lag_seconds == 0.0


def test_watermark_lag_grows_while_nothing_happens():
    batches = [batch(n, watermark=T0) for n in range(3)]
    assert view(batches, after=100).watermark_lag == pytest.approx(104.5)


def test_without_a_watermark_there_is_no_lag_and_not_56_years():
    assert view([batch(0)]).watermark_lag is None


def test_a_running_trigger_grows():
    remembered = history([batch(0)])
    remembered.set_running(Running(T0 + 10, "run-1", T0 + 2, "Processing new data"))
    assert View(remembered, T0 + 32).running_seconds == 30.0


def test_busy_is_the_share_of_the_interval_that_batches_take():
    half = [batch(n, duration=1.0) for n in range(12)]
    assert view(half, plan={"trigger_interval": 2.0}).busy_ratio == pytest.approx(0.5)


def test_busy_is_one_when_batches_run_back_to_back():
    assert view([batch(n, duration=2.0) for n in range(12)]).busy_ratio == pytest.approx(1.0)


def test_the_trigger_interval_is_seen_when_the_plan_was_not_read():
    assert view([batch(n) for n in range(10)]).trigger_interval == 2.0


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([batch(n, duration=2.0) for n in range(10)], id="back to back: no wait to see it by"),
        pytest.param([batch(0), batch(1)], id="too few batches"),
        pytest.param([batch(n, started=T0 + n * n) for n in range(10)], id="no rhythm"),
        pytest.param([], id="no batch"),
    ],
)
def test_an_interval_that_cannot_be_seen_is_unknown(batches):
    assert view(batches).trigger_interval is None


def test_capacity_leaves_out_the_first_batch_that_pays_for_warm_up():
    rows = [1000, 2000, 4000, 8000, 3000, 5000, 6000, 7000, 2500]
    batches = [batch(0, rows=10, duration=30.0)]
    batches += [batch(n, rows=count, duration=0.5 + count / 10_000) for n, count in enumerate(rows, 20)]
    capacity = view(batches, plan={"trigger_interval": 2.0}).capacity
    assert capacity.overhead == pytest.approx(0.5)
    assert capacity.rate == pytest.approx(10_000)
    assert capacity.sustainable == pytest.approx(7_500)  # 10,000 x (1 - 0.5 / 2)


def test_the_first_batch_after_a_restart_from_the_checkpoint_is_left_out_too():
    resumed = history([batch(0), batch(1)])
    for n in range(2, 5):
        resumed.add(batch(n, run_id="run-2"))
    assert [each.batch_id for each in View(resumed, T0 + 60).settled] == [3, 4]


def test_capacity_is_what_is_really_worked_off_when_saturated_at_one_size():
    batches = stream([2000 * n for n in range(1, 21)], [1000 * n for n in range(1, 21)], duration=2.0)
    capacity = view(batches, plan={"trigger_interval": 2.0}).capacity
    assert capacity.sustainable == pytest.approx(500)
    assert capacity.reason == "observed while saturated"


def test_capacity_is_unknown_when_batches_are_of_one_size_and_there_is_room():
    capacity = view([batch(n) for n in range(20)], plan={"trigger_interval": 2.0}).capacity
    assert capacity.sustainable is None
    assert capacity.reason == "batches are of nearly one size (spread 0.00, 0.2 is needed)"


def test_drain_time_is_backlog_over_spare_capacity():
    ends = [900 * n for n in range(1, 21)]
    batches = stream([1000 * n for n in range(1, 21)], ends, duration=2.0)
    shrinking = view(batches, plan={"trigger_interval": 2.0})
    assert shrinking.drain_seconds is None  # 450 rows/s of capacity against 500 that arrive: never
    assert shrinking.pressure_ratio == pytest.approx(500 / 450, rel=0.01)


def test_what_was_just_worked_off_can_be_worked_off_whatever_the_fit_says():
    rows = [1000, 2000, 4000, 8000, 3000, 5000, 6000, 7000, 2500]
    batches = [batch(0)] + [batch(n, rows=count, duration=1.95 + count / 10_000) for n, count in enumerate(rows, 10)]
    capacity = view(batches, plan={"trigger_interval": 2.0}).capacity
    assert capacity.overhead == pytest.approx(1.95)
    assert capacity.sustainable == pytest.approx(sum(rows) / sum(1.95 + count / 10_000 for count in rows))


def test_nothing_to_drain_takes_no_time():
    rows = [100] * 6 + [1000, 2000, 4000, 8000, 3000, 5000, 6000, 7000, 2500]
    heads = [sum(rows[: n + 1]) for n in range(len(rows))]
    batches = [
        batch(n, rows=count, duration=0.2 + count / 10_000, sources=each.sources)
        for n, (count, each) in enumerate(zip(rows, stream(heads, heads), strict=True))
    ]
    assert view(batches, plan={"trigger_interval": 2.0}).drain_seconds == 0.0


def test_skew_is_that_of_the_newest_batch_and_not_of_the_lifetime():
    def read(number, first, second):
        offsets = {("t", "0"): first, ("t", "1"): second, ("t", "2"): 10}
        return batch(number, sources=(source(first + second + 10, dict.fromkeys(offsets, 0), offsets),))

    assert view([read(0, 1000, 10), read(1, 10, 10)]).skew["source_partition"] == (1.0, 0.0)


def test_the_hot_key_is_a_share_of_the_rows_that_were_observed():
    observed = {"ledgerops": {"rows": 1000, "hot_keys": [{"item": "a1b2", "count": 800}]}}
    assert view([batch(observed=observed)]).hot_key == ("a1b2", 0.8, 800)


@pytest.mark.parametrize(
    "row",
    [{}, {"rows": 0, "hot_keys": []}, {"rows": None, "hot_keys": None}, {"rows": 5, "hot_keys": [{"item": "x"}]}],
)
def test_an_empty_batch_has_no_hot_key(row):
    assert view([batch(observed={"ledgerops": row})]).hot_key is None


def test_a_plan_of_an_earlier_run_is_not_believed():
    remembered = history([batch(0)])
    remembered.plan = Plan("run-0", trigger_interval=60.0)
    assert View(remembered, T0 + 5).trigger_interval is None


def test_a_query_that_never_ran_a_batch_has_no_signals():
    empty = View(History("q"), T0)
    unknown = (empty.last, empty.backlog, empty.arrival, empty.busy_ratio, empty.lag_seconds, empty.pressure_ratio)
    assert unknown == (None,) * 6
    assert (empty.skew, empty.tasks, empty.capacity.sustainable) == ({}, None, None)
