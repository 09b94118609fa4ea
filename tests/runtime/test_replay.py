"""Replay: the moments at which a verdict is asked for."""

import json
from dataclasses import replace

import pytest

from ledgerops.model.finding import Forecast
from ledgerops.model.recording import read
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.replay import MAX_SILENCE_SECONDS, Replay, replay, verdicts
from tests.build import T0, spark_json
from tests.paths import RECORDED


def seen(number, **changes):
    """Batch `number` of a query with a batch of 0.9 s every 5 s, seen as it ends."""
    began = T0 + 5.0 * number
    data = spark_json(batchId=number, timestamp=format_instant(began), **changes)
    return Observation(began + 0.9, "progress", data["name"], json.loads(json.dumps(data)))


def test_without_a_grid_there_is_a_verdict_for_each_batch():
    assert [verdict.at for verdict in verdicts(seen(number) for number in range(3))] == [T0 + 0.9, T0 + 5.9, T0 + 10.9]


def test_a_query_without_news_is_judged_again_and_one_with_news_is_not():
    second = {"name": "other", "id": "o", "runId": "o-1"}
    asked = [(each.query, each.at - T0) for each in verdicts([seen(0), seen(0, **second), seen(1), seen(2)], every=2.0)]

    assert asked == [
        ("daily_counts", pytest.approx(0.9)),
        ("other", pytest.approx(0.9)),
        *((query, 4.0) for query in ("daily_counts", "other")),
        ("daily_counts", pytest.approx(5.9)),
        ("other", 6.0),
        *((query, at) for at in (8.0, 10.0) for query in ("daily_counts", "other")),
        ("daily_counts", pytest.approx(10.9)),
    ]


def test_a_verdict_of_the_grid_knows_nothing_of_later_batches():
    asked = list(verdicts([seen(0, numInputRows=1), seen(1, numInputRows=999)], every=1.0))
    assert {each.figures["batch_seconds"] for each in asked} == {0.9}
    assert [each.at for each in asked] == sorted(each.at for each in asked)


def test_a_brief_replay_finds_the_same_and_keeps_no_totals():
    recorded = list(read(RECORDED / "drills" / "whale-key" / "recording"))
    whole, brief = Replay(counts=True), Replay()
    every = list(whole.verdicts(recorded, brief=False))
    short = list(brief.verdicts(recorded))

    def left(verdict):
        return replace(verdict, forecast=Forecast(), figures={}, attribution=())

    assert short == [left(verdict) for verdict in every] != every
    assert any(verdict.findings for verdict in short)
    for name, state in brief.registry.queries.items():
        assert state.totals.counters == {}
        assert brief.registry.judge(state, brief.at) == whole.registry.judge(whole.registry.queries[name], whole.at)


def test_a_long_silence_is_not_asked_about_for_ever():
    day_later = Observation(T0 + 86_400, "progress", None, spark_json(batchId=1, timestamp=format_instant(T0 + 86_399)))
    assert len(list(verdicts([seen(0), day_later], every=1.0))) == MAX_SILENCE_SECONDS + 1


def test_what_is_no_record_is_counted_and_passed_over():
    result = replay([Observation(T0, "progress", None, {"batchId": "x"}), seen(0)])
    assert (result.bad, list(result.registry.queries)) == (1, ["daily_counts"])


def found_with_clock_set(by):
    """What is found of a healthy query whose machine's clock is set back by so many seconds, and when it ended."""
    made = Replay()
    told = made.verdicts(stepping(by), every=2.0)
    return {each.rule for verdict in told for each in verdict.findings}, made.at - T0


def stepping(by, count=60):
    for number in range(count):
        batch = seen(number - by / 5.0 if number >= count / 2 else number)
        batch.data["batchId"] = number
        begins = {"run_id": batch.data["runId"], "since": batch.at - 0.9, "message": "", "at": batch.at - 0.4}
        yield Observation(batch.at - 0.4, "batch_running", batch.query, begins)
        yield batch


@pytest.mark.parametrize("by", [0.0, 60.0, 3600.0])
def test_a_clock_that_was_set_back_lets_no_batch_hang_in_a_replay(by):
    found, ended = found_with_clock_set(by)
    assert "query-stuck" not in found
    assert ended == pytest.approx(5.0 * 59 + 0.9 - by)


def test_what_was_written_a_moment_late_sets_no_clock_back():
    result = replay([seen(0), seen(1), replace(seen(0), at=T0 + 1.9), seen(2)])
    assert len(result.registry.queries["daily_counts"].history.batches) == 3
