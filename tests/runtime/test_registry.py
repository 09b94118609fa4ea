"""Observations in, state out: the traps of names, runs and repetition, and the totals."""

import copy
import re
from dataclasses import replace

import orjson
import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.identity import ACTIVE, EXPECTED
from ledgerops.model.finding import Verdict
from ledgerops.model.history import ClockStep
from ledgerops.model.recording import read
from ledgerops.model.records import BatchFiles, FilesRead, Observation, TaskSummary
from ledgerops.model.spark_progress import BadRecord, format_instant, parse_instant
from ledgerops.runtime.registry import MAX_ENDED_QUERIES, MAX_RUNS, QueryRegistry
from tests.build import T0, spark_json
from tests.diagnosis.conftest import stage
from tests.paths import RECORDED
from tests.tables import cases


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
    ended = event("terminated", exception=None, errorClassOnException=None)
    made = registry(event("started", name="windowed"), event("idle"), ended)
    assert list(made.queries) == ["windowed"]
    assert made.queries["windowed"].history.ended is not None


def test_a_query_that_goes_on_unwatched_is_expected_no_more_until_it_is_seen_again():
    made = registry(event("started", name="windowed"), event("terminated", exception=None, unwatched=True))
    [state] = made.queries.values()
    assert [metric.read(made.view(state, T0)) for metric in (ACTIVE, EXPECTED)] == [{(): 0.0}, {}]
    made.ingest(event("started", name="windowed"))
    assert [metric.read(made.view(state, T0)) for metric in (ACTIVE, EXPECTED)] == [{(): 1.0}, {(): 1.0}]
    assert state.history.restarts == 0


@pytest.mark.parametrize("lost", [False, True], ids=["it was stopped", "it vanished"])
def test_a_run_that_has_ended_stays_expected_and_is_remembered_as_lost_if_it_vanished(lost):
    made = registry(
        event("started", name="windowed", timestamp=at(-60)), event("terminated", exception=None, lost=lost)
    )
    [state] = made.queries.values()
    assert EXPECTED.read(made.view(state, T0)) == {(): 1.0}
    assert state.history.ended.lost is lost


def test_a_lost_run_that_reports_a_batch_was_out_of_sight_only():
    made, run = registry(), spark_json()["runId"]
    for each in (progress(batchId=1), event("terminated", run, exception=None, lost=True)):
        made.ingest(each, origin="session")
    assert made.runs.runs() == []

    made.ingest(progress(batchId=2), origin="session")
    history = made.queries["daily_counts"].history
    assert (history.ended, history.restarts) == (None, 0)
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


FIRST, SECOND, THIRD = "daily_counts", "daily_counts-bbbbbbbb", "daily_counts-cccccccc"


def test_queries_of_one_name_in_two_sessions_are_told_apart():
    made = registry(begun(A, 0), read_batch(A, 0, 1), begun(B, 5), read_batch(B, 0, 6))
    assert list(made.queries) == [FIRST]
    made.ingest(read_batch(A, 1, 7))
    restarts = made.queries[FIRST].history.restarts
    for number in range(2, 10):
        made.ingest(read_batch(B, number, 6 + number))
        made.ingest(read_batch(A, number, 6.5 + number))

    first, second = (made.queries[name].history for name in (FIRST, SECOND))
    assert batches_of(made) == {
        FIRST: [(A, number) for number in range(10)],
        SECOND: [(B, number) for number in range(10) if number != 1],
    }
    assert (first.started_at, first.restarts, second.restarts) == (T0, restarts, 0)


def test_everything_about_a_run_that_was_told_apart_goes_to_its_own_name():
    made = registry(begun(A, 0), begun(B, 5), event("idle", A, timestamp=at(7)))
    made.ingest(Observation(T0 + 8, "plan", "daily_counts", {"run_id": B, "trigger": "once"}))
    made.ingest(event("idle", B, timestamp=at(9)))
    made.ingest(over(B, "boom"))

    first, second = (made.queries[name].history for name in (FIRST, SECOND))
    assert (first.plan, first.ended, first.failures, first.idle_since) == (None, None, {}, T0 + 7)
    assert second.plan is not None and second.ended is not None and second.idle_since == T0 + 9


def test_a_run_that_had_failed_already_when_it_was_told_apart_stays_counted_for_both():
    made = registry(begun(A, 0), begun(B, 5), over(B, "boom"), read_batch(A, 0, 7))
    first, second = (made.queries[name].history for name in (FIRST, SECOND))
    assert (first.ended, first.run_id, first.failures) == (None, A, {"unclassified": 1})
    assert second.ended is not None and second.failures == {"unclassified": 1}


def test_the_second_of_one_name_keeps_its_own_through_its_restarts():
    def of_second(seen):
        return replace(seen, data={**seen.data, "id": "22222222-0000"})

    made = registry(begun(A, 0), of_second(begun(B, 5)), read_batch(A, 0, 6))
    for seen in (of_second(over(B)), of_second(begun(C, 8)), of_second(read_batch(C, 0, 9)), read_batch(A, 1, 9.5)):
        made.ingest(seen)

    assert batches_of(made) == {FIRST: [(A, 0), (A, 1)], "daily_counts-22222222": [(C, 0)]}
    first, second = (state.history for state in made.queries.values())
    assert (second.restarts, second.ended, first.ended) == (1, None, None)


@pytest.mark.parametrize("strange", [[], {}, 5, None])
def test_an_id_that_is_none_is_no_name(strange):
    made = registry(event("started", A, name="daily_counts", id=strange))
    assert list(made.queries) == ["daily_counts"]


def observed(seconds, events, worked=0.0):
    data = {"at": T0 + seconds, "queue_size": 0, "queue_limit": 10, "dropped": 0, "events": events,
            "callback_seconds": 0.0, "worker_seconds": worked, "collector_errors": {}}  # fmt: skip
    return Observation(T0 + seconds, "observer", None, data)


@pytest.mark.parametrize(
    ("events", "worked", "ends"),
    [(3, 0.2, True), (80, 0.2, True), (90, 0.9, False)],
    ids=["another driver", "another with as many events", "the same one"],
)
def test_runs_of_a_driver_after_which_another_writes_the_recording_are_over(events, worked, ends):
    made = registry(begun(A, 0), read_batch(A, 0, 1), observed(5, 80, 0.5), observed(600, events, worked))
    history = made.queries[FIRST].history
    assert (history.ended is not None and history.ended.unrecorded) is ends
    if ends:
        assert (history.ended.at, history.ended.exception) == (T0 + 5, None)
        made.ingest(begun(B, 601))
        assert (history.ended, history.run_id, history.restarts, history.failures) == (None, B, 1, {})


def test_a_run_of_which_more_is_told_was_not_over_and_its_failure_counts():
    made = registry(begun(A, 0), observed(5, 80), begun(B, 8), read_batch(B, 0, 9), observed(600, 3))
    history = made.queries[FIRST].history
    assert (history.ended.unrecorded, history.ended.at) == (True, history.last_seen)
    made.ingest(read_batch(B, 1, 601))
    assert (history.ended, [end.run_id for end in history.ends]) == (None, [])
    made.ingest(observed(605, 1))
    made.ingest(over(B, "boom"))
    assert (history.ended.exception, history.failures) == ("boom", {"unclassified": 1})


def test_a_driver_that_was_killed_was_seen_until_it_told_of_itself_last():
    made = registry(begun(A, 0), read_batch(A, 0, 1), observed(2000, 80), observed(2100, 3))
    assert made.queries[FIRST].history.ended.at == T0 + 2000


def test_three_sessions_make_three_queries():
    made = registry(begun(A, 0), begun(B, 1), begun(C, 2))
    for number in range(3):
        for run in (B, A, C):
            made.ingest(read_batch(run, number, 3 + number))

    numbers = range(3)
    assert batches_of(made) == {
        name: [(run, number) for number in numbers] for name, run in ((FIRST, A), (SECOND, B), (THIRD, C))
    }


@cases(
    "seen",
    ("the old run ended", [over(A), begun(B, 5), read_batch(B, 0, 6)]),
    ("the old run is never heard of again", [begun(B, 5), read_batch(B, 0, 6)]),
    (
        "the old run's last batch and end are told after the start",
        [begun(B, 5), read_batch(A, 1, 4), over(A), read_batch(B, 0, 6)],
    ),
    ("and so is its rest", [begun(B, 5), event("idle", A, timestamp=at(4)), read_batch(B, 0, 6)]),
    ("the start was not heard of", [read_batch(B, 0, 6), read_batch(A, 1, 4), over(A)]),
    ("a batch after the end", [over(A), begun(B, 5), read_batch(A, 1, 4), read_batch(B, 0, 6)]),
)
def test_a_restart_keeps_the_name(seen):
    made = registry(begun(A, 0), read_batch(A, 0, 1), *seen)
    [state] = made.queries.values()
    assert (state.history.query, state.history.run_id, state.history.restarts) == ("daily_counts", B, 1)
    assert state.history.ended is None
    assert batches_of(made) == {"daily_counts": [(B, 0)]}


def test_per_batch_fields_are_added_once_and_minus_one_output_rows_never():
    late = [{"operatorName": "dedupe", "numRowsDroppedByWatermark": 5, "customMetrics": {"rocksdbGetLatency": 1500}}]
    sink = {"description": "ForeachBatchSink", "numOutputRows": -1}
    made = registry(*(progress(batchId=number, stateOperators=late, sink=sink) for number in (7, 7, 8)))
    found = made.queries["daily_counts"].totals.counters
    assert found["ledgerops_rows_dropped_by_watermark_total"] == {("dedupe",): 10.0}
    assert found["ledgerops_rocksdb_get_seconds_total"] == {("dedupe",): 3.0}
    assert found["ledgerops_batches_total"] == {(): 2.0}
    assert found["ledgerops_output_rows_total"] == {}


def test_totals_go_on_over_a_restart():
    made = registry(progress(), progress(runId="run-2", batchId=0))
    [state] = made.queries.values()
    assert state.totals.counters["ledgerops_input_rows_total"] == {("transactions",): 600.0}
    assert state.history.restarts == 1


def histograms(*seen):
    return registry(*seen).queries["daily_counts"].totals.histograms


def test_batch_durations_become_a_histogram_with_the_batch_as_exemplar():
    total = histograms(progress(), progress(batchId=8))["ledgerops_batch_duration_seconds"]
    assert (sum(total.counts), total.sum) == (2, pytest.approx(1.8))
    assert total.exemplar[1]["batch_id"] == "8"


def test_event_latencies_of_instrument_become_a_histogram_and_nulls_add_nothing():
    row = {f"latency_le_{i}": min(100, 10 * (i + 1)) for i in range(16)} | {"latency_sum": 250.5, "rows": 100}
    nulls = {f"latency_le_{i}": None for i in range(16)} | {"latency_sum": None}
    total = histograms(progress(observedMetrics={"ledgerops": row}))["ledgerops_event_latency_seconds"]
    assert (sum(total.counts), total.sum, total.counts[:3]) == (100, 250.5, [10, 10, 10])
    assert "ledgerops_event_latency_seconds" not in histograms(progress(observedMetrics={"ledgerops": nulls}))


def test_tasks_and_files_come_back_as_they_were_written():
    tasks = TaskSummary("r1", 4, (stage(),), 0.3)
    files = BatchFiles("r1", 4, {"FileStreamSource": FilesRead(2, T0 - 5, T0 - 3, None)})
    made = registry(event("started", name="windowed"))
    for kind, written in (("tasks", tasks), ("files", files)):
        made.ingest(Observation(T0, kind, "windowed", orjson.loads(orjson.dumps(written))))

    history = made.queries["windowed"].history
    assert (history.tasks[-1], list(history.files)) == (tasks, [files])


@pytest.mark.parametrize(
    ("data", "said"),
    [({"run_id": None, "batch_id": 4}, "no run id in tasks"), ({"run_id": "r1", "stages": []}, "no batch_id")],
)
def test_tasks_that_are_cut_are_refused_and_change_nothing(data, said):
    made = registry()
    with pytest.raises(BadRecord, match=said):
        made.ingest(Observation(T0, "tasks", "windowed", data))
    assert made.queries == {}


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


def come_and_go(made, count, at=lambda number: T0, name="query_{}"):
    """So many runs, one after the other."""
    for number in range(count):
        made.ingest(event("started", f"run-{number}", name=name.format(number)))
        made.ingest(replace(event("terminated", f"run-{number}", exception=None), at=at(number)))


@cases(
    "name, count, queries, names",
    ("queries", "query_{}", 3 * MAX_ENDED_QUERIES, MAX_ENDED_QUERIES, MAX_ENDED_QUERIES),
    ("runs of one query", "windowed", MAX_RUNS + 50, 1, MAX_RUNS),
)
def test_what_comes_and_goes_does_not_fill_the_memory(name, count, queries, names):
    made = registry()
    come_and_go(made, count, name=name)
    assert (len(made.queries), len(made._query_names)) == (queries, names)


def test_a_query_that_is_restarted_is_not_forgotten_for_others_that_ended_before_it():
    made = registry(event("started", "old", name="long_known"))
    come_and_go(made, 2 * MAX_ENDED_QUERIES, at=lambda number: T0 + number)
    made.ingest(replace(event("terminated", "old", exception="boom"), at=T0 + 3 * MAX_ENDED_QUERIES))
    made.ingest(event("started", "other", name="one_more"))
    made.ingest(event("started", "new", name="long_known"))
    assert made.queries["long_known"].history.restarts == 1


def test_every_recorded_run_gives_series_for_every_query():
    for path in sorted(RECORDED.glob("spark-*.jsonl")):
        made = registry(*read(path))
        assert set(made.queries) == {"windowed", "dedup_rocksdb", "joined", "observed", "idle_files", "crashes"}
        assert made.queries["crashes"].history.failures
        assert sum(state.history.restarts for state in made.queries.values()) == 0


OBSERVER = {
    "queue_size": 1, "queue_limit": 9, "dropped": 0, "events": 5, "callback_seconds": 0.1, "worker_seconds": 0.2,
    "collector_errors": {"tasks": 3},
}  # fmt: skip


def test_looks_of_the_observer_belong_to_the_driver_and_reach_every_view():
    made = registry()
    state = made.ingest(progress())
    assert made.ingest(Observation(T0, "observer", None, OBSERVER)) is None
    [seen] = made.view(state, T0).observer
    assert (seen.at, seen.collector_errors) == (T0, {"tasks": 3})
    with pytest.raises(BadRecord):
        made.ingest(Observation(T0, "observer", None, {**OBSERVER, "collector_errors": {"tasks": "many"}}))


@pytest.mark.parametrize(
    ("kind", "data", "looks"), [("host", {"cpu_count": 2}, "hosts"), ("observer", OBSERVER, "observer")]
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


def detection_seconds(set_by=0.0, in_flight=False):
    """Seconds from an overload until it is found, on a machine whose clock was set a little before it, while a batch
    was `in_flight` or between two."""
    injected = orjson.loads((OVERLOAD / "times.json").read_bytes())["injected"]
    made, now = QueryRegistry(Diagnoser), 0.0
    for seen in read(OVERLOAD / "recording"):
        took, was = seen.at - injected, now
        if set_by and took > -15.0:
            began_before = in_flight and seen.kind == "progress"
            in_flight = in_flight and not began_before
            seen = replace(seen, at=seen.at + set_by) if began_before else moved(seen, set_by)
        now = seen.at
        if was and abs(now - was) > 30.0:
            made.forget_times(ClockStep(now, set_by))
        made.ingest(seen)
        if 0.0 < took < 25.0 and seen.kind == "progress":
            for state in made.queries.values():
                if any(each.rule == "input-overload" for each in made.judge(state, now).findings):
                    return round(took)
    return None


@pytest.mark.parametrize("in_flight", [False, True], ids=["between two batches", "during a batch"])
@pytest.mark.parametrize("set_by", [-3600.0, -60.0, 3600.0])
def test_a_fault_is_found_as_soon_as_ever_after_the_clock_was_set(set_by, in_flight):
    assert detection_seconds() is not None
    assert detection_seconds(set_by, in_flight) == detection_seconds()


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_query_whose_clock_was_set_was_silent_for_as_long_as_before(seconds):
    made = registry(event("started", name="daily_counts"), progress(batchId=7))
    state, last_seen = made.queries["daily_counts"], made.queries["daily_counts"].history.last_seen
    made.forget_times(ClockStep(last_seen + 4.0 + seconds, seconds))
    assert state.history.last_seen == last_seen + seconds
    assert state.history.last is None


def test_when_an_event_came_is_known_beside_what_it_tells():
    late = replace(progress(batchId=7), at=T0 + 90.0)
    history = registry(event("started", name="daily_counts"), late).queries["daily_counts"].history
    assert (history.told_at, history.last_seen) == (T0 + 90.0, history.last.ended)
    assert history.told_late == T0 + 90.0 - history.last.ended


def test_forgetting_times_keeps_runs_ends_and_totals():
    made = registry(
        event("started", name="daily_counts", run="r0"),
        event("terminated", run="r0", exception="boom", errorClassOnException="BOOM"),
        progress(batchId=7),
    )
    state = made.queries["daily_counts"]
    totals = copy.deepcopy(state.totals.counters)
    made.forget_times(ClockStep(T0 - 3600.0, -3600.0))

    history = made.queries["daily_counts"].history
    assert made.queries["daily_counts"].totals.counters == totals
    assert (history.run_id, history.restarts, history.failures) == (spark_json()["runId"], 1, {"BOOM": 1})
    assert [(each.run_id, each.at) for each in history.ends] == [("r0", T0 - 3600.0)]
    assert (history.last, history.last_seen) == (None, T0 - 3600.0)


def test_a_query_that_has_ended_stays_ended_when_times_are_forgotten():
    made = registry(event("started", name="daily_counts"), event("terminated"))
    made.forget_times(ClockStep(T0 - 3600.0, -3600.0))
    assert made.queries["daily_counts"].history.ended.at == T0 - 3600.0
