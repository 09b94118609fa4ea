"""The figures of a query over time: how long rows wait, and that peaks survive thinning."""

from dataclasses import replace

import pytest

from ledgerops.analysis.plot_series import MAX_POINTS, Track
from ledgerops.model.history import History
from ledgerops.model.records import Plan, Running
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, stream
from tests.tables import cases


def followed(batches, interval=2.0, restarts=()):
    """A track of batches, each seen as it ends."""
    history, track = History("daily_counts"), Track()
    history.start(T0, "id-1", "run-1")
    history.plan = Plan("run-1", trigger="processing_time", trigger_interval=interval)
    for each in batches:
        history.add(each)
        if history.run_id != history.plan.run_id:
            history.plan = replace(history.plan, run_id=history.run_id)
        track.take(QueryView(history, each.ended))
    return history, track


def ages(track):
    return [pytest.approx(sample.value, abs=0.01) for sample in track.age]


@cases(
    "batches, waited",
    # 2 s until it begins, 0.5 s until it ends
    ("for its trigger and its batch", [batch(number) for number in range(4)], [2.5, 2.5, 2.5, 2.5]),
    ("for two batches while they overrun",
     [batch(number, started=T0 + 4.0 * number, duration=4.0) for number in range(4)], [6.0, 8.0, 8.0, 8.0]),
    ("not while nothing was read for a while", [batch(0), batch(1, started=T0 + 100.0)], [2.5, 2.5]),
    ("while the query was down", [batch(0), batch(1, started=T0 + 100.0, run_id="run-2")], [2.5, 100.5]),
)  # fmt: skip
def test_how_long_a_row_waits(batches, waited):
    assert ages(followed(batches)[1]) == waited


def test_arrival_is_told_from_look_to_look_at_the_heads():
    batches = stream([100, 200, 800], [100, 200, 800])
    batches[-1] = replace(batches[-1], duration=10.5, phases={"latest_offset": 10.0, "add_batch": 0.5})
    assert [each.arrival for each in followed(batches)[1].batches] == [None, 50.0, 50.0]


def test_the_wait_grows_while_a_batch_hangs():
    history, track = followed([batch(0)])
    for now in (T0 + 4.0, T0 + 9.0, T0 + 30.0):
        history.set_running(Running(now, "run-1", T0 + 2.0, "m"))
        track.take(QueryView(history, now))
    assert ages(track) == [2.5, 4.0, 9.0, 30.0]


def test_a_query_that_has_ended_waits_for_nothing():
    history, track = followed([batch(0)])
    history.end(T0 + 5.0, "run-1", None, None)
    track.take(QueryView(history, T0 + 500.0))
    assert len(track.age) == len(track.batches) == 1


def test_of_a_long_recording_the_peaks_are_kept():
    batches = [batch(number, duration=0.5 if number != 1234 else 1.9) for number in range(MAX_POINTS + 50)]
    _, track = followed(batches)

    assert len(track.batches) <= MAX_POINTS
    assert max(each.seconds for each in track.batches) == 1.9
