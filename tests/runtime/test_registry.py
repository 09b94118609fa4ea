"""Observations in, state out: the traps of names, runs and repetition, and the totals."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics import QUERY_METRICS
from ledgerops.metrics.identity import ACTIVE, EXPECTED
from ledgerops.model.finding import Verdict
from ledgerops.model.recording import read
from ledgerops.model.records import BatchFiles, FilesRead, Observation, StageSummary, TaskSummary
from ledgerops.model.spark_progress import BadRecord, format_instant, parse_instant
from ledgerops.runtime.registry import MAX_ENDED_QUERIES, MAX_RUNS, QueryRegistry
from tests.build import T0, spark_json
from tests.paths import RECORDED


def healthy(view):
    return Verdict(view.query, view.now, "healthy", 100)


def registry(*seen):
    made = QueryRegistry(lambda: healthy)
    for each in seen:
        made.ingest(each)
    return made


def progress(**changes):
    return Observation(T0, "progress", None, spark_json(**changes))


def event(kind, run="r1", **data):
    return Observation(T0, kind, None, {"id": "q1", "runId": run, **data})


def test_idle_and_terminated_events_find_their_query_by_run_id():
    made = registry(
        event("started", name="windowed"),
        event("idle"),
        event("terminated", exception=None, errorClassOnException=None),
    )
    assert list(made.queries) == ["windowed"]
    assert made.queries["windowed"].history.ended is not None


def test_a_query_that_goes_on_unwatched_is_expected_no_more_until_it_is_seen_again():
    made = registry(event("started", name="windowed"), event("terminated", exception=None, unwatched=True))
    [state] = made.queries.values()
    assert ACTIVE.read(made.view(state, T0)) == {(): 0.0}
    assert EXPECTED.read(made.view(state, T0)) == {}

    made.ingest(event("started", name="windowed"))
    assert ACTIVE.read(made.view(state, T0)) == {(): 1.0}
    assert EXPECTED.read(made.view(state, T0)) == {(): 1.0}
    assert state.history.restarts == 0


def test_a_query_that_was_stopped_stays_expected():
    made = registry(event("started", name="windowed"), event("terminated", exception=None))
    [state] = made.queries.values()
    assert EXPECTED.read(made.view(state, T0)) == {(): 1.0}


def test_a_run_that_vanished_is_remembered_as_lost():
    made = registry(event("started", name="windowed"), event("terminated", exception=None, lost=True))
    [state] = made.queries.values()
    assert state.history.ended is not None and state.history.ended.lost


def test_a_lost_run_that_reports_a_batch_was_out_of_sight_only():
    made = QueryRegistry(lambda: healthy)
    run, name = spark_json()["runId"], spark_json()["name"]
    for each in (progress(batchId=1), event("terminated", run, exception=None, lost=True)):
        made.ingest(each, origin="session")
    assert made.runs.runs() == []

    made.ingest(progress(batchId=2), origin="session")
    assert made.queries[name].history.ended is None
    assert made.queries[name].history.restarts == 0
    assert [each.run_id for each in made.runs.runs()] == [run]


A, B, C = "aaaaaaaa-0000", "bbbbbbbb-0000", "cccccccc-0000"


def at(seconds):
    return format_instant(T0 + seconds)


def begun(run, seconds):
    return event("started", run, name="daily_counts", timestamp=at(seconds))


def read_batch(run, number, seconds):
    return progress(runId=run, batchId=number, timestamp=at(seconds))


def over(run, exception=None):
    return event("terminated", run, exception=exception, errorClassOnException=None)


def batches_of(made):
    return {name: [(each.run_id, each.batch_id) for each in state.history.run] for name, state in made.queries.items()}


def test_queries_of_one_name_in_two_sessions_are_told_apart():
    made = registry(begun(A, 0), read_batch(A, 0, 1), begun(B, 5), read_batch(B, 0, 6))
    assert list(made.queries) == ["daily_counts"]
    made.ingest(read_batch(A, 1, 7))
    restarts = made.queries["daily_counts"].history.restarts
    for number in range(2, 10):
        made.ingest(read_batch(B, number, 6 + number))
        made.ingest(read_batch(A, number, 6.5 + number))

    numbers = [0, 1, *range(2, 10)]
    assert batches_of(made) == {
        "daily_counts": [(A, number) for number in numbers],
        "daily_counts-bbbbbbbb": [(B, number) for number in numbers if number != 1],
    }
    assert made.queries["daily_counts"].history.started_at == T0
    assert made.queries["daily_counts"].history.restarts == restarts
    assert made.queries["daily_counts-bbbbbbbb"].history.restarts == 0


def test_everything_about_a_run_that_was_told_apart_goes_to_its_own_name():
    made = registry(begun(A, 0), begun(B, 5), event("idle", A, timestamp=at(7)))
    made.ingest(Observation(T0 + 8, "plan", "daily_counts", {"run_id": B, "trigger": "once"}))
    made.ingest(event("idle", B, timestamp=at(9)))
    made.ingest(over(B, "boom"))

    first, second = made.queries["daily_counts"].history, made.queries["daily_counts-bbbbbbbb"].history
    assert (first.plan, first.ended, first.failures, first.idle_since) == (None, None, {}, T0 + 7)
    assert second.plan is not None and second.ended is not None and second.idle_since == T0 + 9


def test_a_run_that_had_failed_already_when_it_was_told_apart_stays_counted_for_both():
    made = registry(begun(A, 0), begun(B, 5), over(B, "boom"), read_batch(A, 0, 7))

    first, second = made.queries["daily_counts"].history, made.queries["daily_counts-bbbbbbbb"].history
    assert (first.ended, first.run_id, first.failures) == (None, A, {"unclassified": 1})
    assert second.ended is not None and second.failures == {"unclassified": 1}


def test_three_sessions_make_three_queries():
    made = registry(begun(A, 0), begun(B, 1), begun(C, 2))
    for number in range(3):
        for run in (B, A, C):
            made.ingest(read_batch(run, number, 3 + number))

    assert {name: state.history.run_id for name, state in made.queries.items()} == {
        "daily_counts": A,
        "daily_counts-bbbbbbbb": B,
        "daily_counts-cccccccc": C,
    }
    assert [len(state.history.run) for state in made.queries.values()] == [3, 3, 3]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([over(A), begun(B, 5), read_batch(B, 0, 6)], id="the old run ended"),
        pytest.param([begun(B, 5), read_batch(B, 0, 6)], id="the old run is never heard of again"),
        pytest.param(
            [begun(B, 5), read_batch(A, 1, 4), over(A), read_batch(B, 0, 6)],
            id="the old run's last batch and end are told after the start",
        ),
        pytest.param([begun(B, 5), event("idle", A, timestamp=at(4)), read_batch(B, 0, 6)], id="and so is its rest"),
        pytest.param([read_batch(B, 0, 6), read_batch(A, 1, 4), over(A)], id="the start was not heard of"),
        pytest.param([over(A), begun(B, 5), read_batch(A, 1, 4), read_batch(B, 0, 6)], id="a batch after the end"),
    ],
)
def test_a_restart_keeps_the_name(seen):
    made = registry(begun(A, 0), read_batch(A, 0, 1), *seen)

    [state] = made.queries.values()
    assert (state.history.query, state.history.run_id, state.history.restarts) == ("daily_counts", B, 1)
    assert state.history.ended is None
    assert batches_of(made) == {"daily_counts": [(B, 0)]}


def test_per_batch_fields_are_added_once():
    late = [{"operatorName": "dedupe", "numRowsDroppedByWatermark": 5, "customMetrics": {"rocksdbGetLatency": 1500}}]
    made = registry(
        progress(stateOperators=late), progress(stateOperators=late), progress(batchId=8, stateOperators=late)
    )
    counters = made.queries["daily_counts"].totals.counters
    assert counters["ledgerops_rows_dropped_by_watermark_total"] == {("dedupe",): 10.0}
    assert counters["ledgerops_rocksdb_get_seconds_total"] == {("dedupe",): 3.0}
    assert counters["ledgerops_batches_total"] == {(): 2.0}


def test_totals_go_on_over_a_restart():
    made = registry(progress(), progress(runId="run-2", batchId=0))
    assert made.queries["daily_counts"].totals.counters["ledgerops_input_rows_total"] == {("transactions",): 600.0}
    assert made.queries["daily_counts"].history.restarts == 1


def test_minus_one_output_rows_are_never_added():
    made = registry(progress(sink={"description": "ForeachBatchSink", "numOutputRows": -1}))
    assert made.queries["daily_counts"].totals.counters["ledgerops_output_rows_total"] == {}


def test_batch_durations_become_a_histogram_with_the_batch_as_exemplar():
    [total] = [
        state.totals.histograms["ledgerops_batch_duration_seconds"]
        for state in registry(progress(), progress(batchId=8)).queries.values()
    ]
    assert (sum(total.counts), total.sum) == (2, pytest.approx(1.8))
    assert total.exemplar is not None
    assert total.exemplar[1]["batch_id"] == "8"


def test_event_latencies_of_instrument_become_a_histogram():
    row = {f"latency_le_{i}": min(100, 10 * (i + 1)) for i in range(16)} | {"latency_sum": 250.5, "rows": 100}
    [state] = registry(progress(observedMetrics={"ledgerops": row})).queries.values()
    total = state.totals.histograms["ledgerops_event_latency_seconds"]
    assert (sum(total.counts), total.sum) == (100, 250.5)
    assert total.counts[:3] == [10, 10, 10]


def test_an_empty_batch_observes_nulls_and_adds_nothing():
    row = {f"latency_le_{i}": None for i in range(16)} | {"latency_sum": None}
    [state] = registry(progress(observedMetrics={"ledgerops": row})).queries.values()
    assert "ledgerops_event_latency_seconds" not in state.totals.histograms


def test_tasks_come_back_as_they_were_written():
    stage = StageSummary(
        3, "save", 2, 0, T0, T0 + 1, 1.5, 1.0, 0.1, 0.7, 0.8, 100, 50.0, 60.0, True, 0, 10, 10, 0, {}, 20.0, None, 1
    )
    written = orjson.loads(orjson.dumps(TaskSummary("r1", 4, (stage,), 0.3)))
    made = registry(event("started", name="windowed"), Observation(T0, "tasks", "windowed", written))
    assert made.queries["windowed"].history.tasks[-1] == TaskSummary("r1", 4, (stage,), 0.3)


def test_files_come_back_as_they_were_written():
    read = FilesRead(2, T0 - 5, T0 - 3, None)
    written = orjson.loads(orjson.dumps(BatchFiles("r1", 4, {"FileStreamSource": read})))
    made = registry(event("started", name="windowed"), Observation(T0, "files", "windowed", written))
    assert list(made.queries["windowed"].history.files) == [BatchFiles("r1", 4, {"FileStreamSource": read})]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"run_id": "r1", "batch_id": 4, "sources": []}, id="sources that are no object"),
        pytest.param({"run_id": "r1", "batch_id": 4, "sources": {"x": 1}}, id="a source that is no object"),
        pytest.param({"run_id": "r1", "batch_id": 4, "sources": {"x": {"files": 1}}}, id="no times"),
        pytest.param({"run_id": "r1", "sources": {}}, id="no batch id"),
    ],
)
def test_files_that_are_cut_are_refused(data):
    with pytest.raises(BadRecord):
        registry(Observation(T0, "files", "windowed", data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"run_id": "r1", "batch_id": "four", "stages": []}, id="text for a number"),
        pytest.param({"run_id": "r1", "stages": []}, id="no batch id"),
        pytest.param({"run_id": "r1", "batch_id": 4, "stages": [{}]}, id="an empty stage"),
        pytest.param({"run_id": "r1", "batch_id": 4, "stages": "none"}, id="stages that are no list"),
        pytest.param({"run_id": None, "batch_id": 4}, id="no run id"),
    ],
)
def test_tasks_that_are_cut_are_refused(data):
    with pytest.raises(BadRecord):
        registry(Observation(T0, "tasks", "windowed", data))


def test_an_idle_event_of_the_run_before_does_not_make_the_new_one_idle():
    made = registry(event("started", "run-1", name="q"), event("terminated", "run-1", exception=None))
    made.ingest(replace(event("started", "run-2", name="q"), at=T0 + 20))
    made.ingest(replace(event("idle", "run-1"), at=T0 + 9))
    assert made.queries["q"].history.idle_since is None

    made.ingest(replace(event("idle", "run-2"), at=T0 + 30))
    assert made.queries["q"].history.idle_since == T0 + 30


def test_queries_that_run_push_none_out_that_has_just_failed():
    made = registry(*(event("started", f"run-{n}", name=f"query_{n}") for n in range(MAX_ENDED_QUERIES + 20)))
    made.ingest(event("started", "bad", name="bad"))
    made.ingest(event("terminated", "bad", exception="boom"))
    made.ingest(event("started", "one-more", name="one_more"))

    assert made.queries["bad"].history.ended is not None


def test_queries_that_come_and_go_do_not_fill_the_memory():
    made = registry()
    for number in range(3 * MAX_ENDED_QUERIES):
        run = f"run-{number}"
        made.ingest(event("started", run, name=f"query_{number}"))
        made.ingest(event("terminated", run, exception=None))
    assert len(made.queries) <= MAX_ENDED_QUERIES
    assert len(made._query_names) <= MAX_ENDED_QUERIES


def test_a_query_that_is_restarted_is_not_forgotten_for_others_that_ended_before_it():
    made = registry(event("started", "old", name="long_known"))
    for number in range(2 * MAX_ENDED_QUERIES):
        run = f"run-{number}"
        made.ingest(event("started", run, name=f"query_{number}"))
        made.ingest(replace(event("terminated", run, exception=None), at=T0 + number))
    made.ingest(replace(event("terminated", "old", exception="boom"), at=T0 + 3 * MAX_ENDED_QUERIES))
    made.ingest(event("started", "other", name="one_more"))
    made.ingest(event("started", "new", name="long_known"))

    assert made.queries["long_known"].history.restarts == 1


def test_a_query_that_is_started_again_and_again_does_not_fill_the_memory():
    made = registry()
    for number in range(MAX_RUNS + 50):
        made.ingest(event("started", f"run-{number}", name="windowed"))
        made.ingest(event("terminated", f"run-{number}", exception=None))
    assert list(made.queries) == ["windowed"]
    assert len(made._query_names) == MAX_RUNS


RECORDS = [orjson.loads(line) for line in (RECORDED / "spark-4.2.0.jsonl").read_bytes().splitlines()]
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(), st.text(max_size=5), st.lists(st.integers()),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


def _paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _paths(each, (*path, index))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_mutated_observation_is_read_or_refused_but_never_breaks(data):
    record = copy.deepcopy(data.draw(st.sampled_from(RECORDS)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([path for path in _paths(record["data"]) if path]))
        target = record["data"]
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = data.draw(JUNK)
        if any(not isinstance(step, str | int) for step in path):
            break
        record["data"] = record["data"]
    made = QueryRegistry(lambda: healthy)
    try:
        state = made.ingest(Observation(T0, record["kind"], record["query"], record["data"]))
    except BadRecord:
        return
    if state is not None:
        view = made.view(state, T0 + 5)
        for metric in QUERY_METRICS:
            if metric.read is not None:
                assert all(isinstance(value, int | float) for value in metric.read(view).values())


def test_every_recorded_run_gives_series_for_every_query():
    for path in sorted(RECORDED.glob("spark-*.jsonl")):
        made = registry(*read(path))
        assert set(made.queries) == {"windowed", "dedup_rocksdb", "joined", "observed", "idle_files", "crashes"}
        assert made.queries["crashes"].history.failures
        assert sum(state.history.restarts for state in made.queries.values()) == 0


def test_looks_of_the_observer_belong_to_the_driver_and_reach_every_view():
    made = registry()
    state = made.ingest(progress())
    data = {"queue_size": 1, "queue_limit": 9, "dropped": 0, "events": 5, "callback_seconds": 0.1}
    data |= {"worker_seconds": 0.2, "collector_errors": {"tasks": 3}}

    assert made.ingest(Observation(T0, "observer", None, data)) is None
    [seen] = made.view(state, T0).observer
    assert (seen.at, seen.collector_errors) == (T0, {"tasks": 3})
    with pytest.raises(BadRecord):
        made.ingest(Observation(T0, "observer", None, {**data, "collector_errors": {"tasks": "many"}}))


SECONDS = {"callback_seconds": 0.1, "worker_seconds": 0.5, "collector_errors": {}}


@pytest.mark.parametrize(
    ("kind", "data", "looks"),
    [
        ("host", {"cpu_count": 2}, "hosts"),
        ("observer", {"queue_size": 1, "queue_limit": 10, "dropped": 0, "events": 5, **SECONDS}, "observer"),
    ],
)
def test_a_look_at_the_driver_that_is_not_newer_is_passed_over(kind, data, looks):
    """A clock that was set back, or two recordings in one: nothing can be told over no time."""
    made = registry(*(Observation(at, kind, None, {**data, "at": at}) for at in (T0, T0 + 5, T0 + 5, T0 + 1, T0 + 10)))

    assert [each.at for each in getattr(made, looks)] == [T0, T0 + 5, T0 + 10]


OVERLOAD = RECORDED / "drills" / "overload"
INSTANT = re.compile(rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z)"')


def moved(seen, seconds):
    """An observation as a machine would have made it whose clock is wrong by so many seconds."""

    def instant(match):
        return f'"{format_instant(parse_instant(match[1].decode()) + seconds)}"'.encode()

    data = INSTANT.sub(instant, orjson.dumps(seen.data))
    return replace(seen, at=seen.at + seconds, data=orjson.loads(data))


def detection_seconds(set_back):
    """Seconds from an overload until it is found, on a machine whose clock was set back a little before it."""
    injected = orjson.loads((OVERLOAD / "times.json").read_bytes())["injected"]
    made, now = QueryRegistry(Diagnoser), 0.0
    for seen in read(OVERLOAD / "recording"):
        took, was = seen.at - injected, now
        seen = moved(seen, -set_back) if set_back and took > -15.0 else seen
        now = seen.at
        if now < was - 5.0:
            made.forget_times(now)
        made.ingest(seen)
        if 0.0 < took < 25.0 and seen.kind == "progress":
            for state in made.queries.values():
                if any(each.rule == "input-overload" for each in made.judge(state, now).findings):
                    return round(took)
    return None


@pytest.mark.parametrize("seconds", [3600.0, 60.0])
def test_a_fault_is_found_as_soon_as_ever_after_the_clock_was_set_back(seconds):
    assert detection_seconds(0.0) is not None
    assert detection_seconds(seconds) == detection_seconds(0.0)


def test_forgetting_times_keeps_runs_ends_and_totals():
    made = registry(
        event("started", name="daily_counts", run="r0"),
        event("terminated", run="r0", exception="boom", errorClassOnException="BOOM"),
        progress(batchId=7),
    )
    before = made.queries["daily_counts"]
    totals, ends = copy.deepcopy(before.totals.counters), list(before.history.ends)
    made.forget_times(T0 - 3600.0)
    history = made.queries["daily_counts"].history

    assert made.queries["daily_counts"].totals.counters == totals
    assert (history.run_id, history.restarts, history.failures) == (spark_json()["runId"], 1, {"BOOM": 1})
    assert [each.run_id for each in history.ends] == [each.run_id for each in ends]
    assert [each.at for each in history.ends] == [T0 - 3600.0]
    assert (history.last, history.last_seen) == (None, T0 - 3600.0)


def test_a_query_that_has_ended_stays_ended_when_times_are_forgotten():
    made = registry(event("started", name="daily_counts"), event("terminated"))
    made.forget_times(T0 - 3600.0)

    assert made.queries["daily_counts"].history.ended.at == T0 - 3600.0
