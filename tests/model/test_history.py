"""What is remembered of a query, over restarts, repetitions and silence."""

from __future__ import annotations

import pytest

from ledgerops.model.history import MAX_BATCHES, TREND_POINTS, History, backlog
from ledgerops.model.records import Heads, Running
from tests.build import T0, batch, history, operator, source, stream


def test_a_batch_counts_once_for_each_run_and_batch_id():
    remembered = History("q")
    assert remembered.add(batch(1)) is True
    assert remembered.add(batch(1)) is False
    assert len(remembered.batches) == 1


def test_a_batch_id_that_is_repeated_by_the_next_run_counts_again():
    remembered = history([batch(0), batch(1)])
    assert remembered.add(batch(1, run_id="run-2", started=T0 + 60)) is True
    assert remembered.restarts == 1
    assert [each.run_id for each in remembered.run] == ["run-2"]


def test_a_zero_row_progress_with_the_old_batch_id_is_a_sign_of_life_only():
    remembered = history([batch(3)])
    assert remembered.add(batch(3, started=T0 + 100, rows=0)) is False
    assert remembered.last_seen == T0 + 100.5
    assert remembered.last is not None
    assert remembered.last.rows == 100


def test_a_start_event_that_comes_after_the_first_batch_is_no_restart():
    remembered = History("q")
    remembered.add(batch(0))
    remembered.start(T0, "id-1", "run-1")
    assert remembered.restarts == 0


def test_a_clean_stop_is_no_failure():
    remembered = history([batch(0)])
    remembered.end(T0 + 9, "run-1", None, None)
    assert remembered.failures == {}
    assert remembered.ended is not None


def test_a_failure_is_counted_by_its_class_once():
    remembered = history([batch(0)])
    remembered.end(T0 + 9, "run-1", "boom", "USER_RAISED_EXCEPTION")
    remembered.end(T0 + 9, "run-1", "boom", "USER_RAISED_EXCEPTION")
    assert remembered.failures == {"USER_RAISED_EXCEPTION": 1}


def test_an_old_runs_end_does_not_end_the_new_run():
    remembered = history([batch(0)])
    remembered.start(T0 + 20, "id-1", "run-2")
    remembered.end(T0 + 21, "run-1", "boom", None)
    assert remembered.ended is None


def test_a_batch_after_the_end_means_that_the_run_is_on():
    remembered = history([batch(0)])
    remembered.end(T0 + 9, "run-1", None, None)
    remembered.add(batch(1, run_id="run-2", started=T0 + 30))
    assert remembered.ended is None


@pytest.mark.parametrize("exception", [None, "boom"])
def test_a_batch_that_is_heard_of_after_its_runs_end_is_remembered_but_does_not_revive_the_run(exception):
    remembered = history([batch(0)])
    remembered.end(T0 + 9, "run-1", exception, None)
    assert remembered.add(batch(1)) is True
    remembered.end(T0 + 9, "run-1", exception, None)

    assert remembered.last is not None and remembered.last.batch_id == 1
    assert remembered.ended is not None and remembered.ended.at == T0 + 9
    assert remembered.failures == ({"unclassified": 1} if exception else {})
    assert remembered.restarts == 0


def test_the_last_runs_last_batch_may_be_heard_of_after_the_next_runs_start():
    remembered = history([batch(0)])
    remembered.start(T0 + 20, "id-1", "run-2")
    assert [remembered.add(batch(1, started=T0 + 19.5)) for _ in range(2)] == [True, False]
    remembered.add(batch(5, run_id="run-2", started=T0 + 21))
    assert remembered.add(batch(2, started=T0 + 19.8)) is False

    assert (remembered.run_id, remembered.restarts, remembered.started_at) == ("run-2", 1, T0 + 20)
    assert [each.batch_id for each in remembered.run] == [5]
    assert remembered.first_batch == 5


def test_idle_keeps_the_instant_at_which_it_began():
    remembered = history([batch(0)])
    remembered.idle(T0 + 10)
    remembered.idle(T0 + 20)
    assert (remembered.idle_since, remembered.last_seen) == (T0 + 10, T0 + 20)


def test_a_running_trigger_is_forgotten_when_its_batch_arrives():
    remembered = history([batch(0)])
    remembered.set_running(Running(T0 + 9, "run-1", T0 + 2, "Processing new data"))
    assert remembered.running is not None
    remembered.add(batch(1))
    assert remembered.running is None


def test_a_running_trigger_of_another_run_is_ignored():
    remembered = history([batch(0)])
    remembered.set_running(Running(T0 + 9, "run-0", T0 + 2, "Processing new data"))
    assert remembered.running is None


def test_a_running_batch_has_moved_when_a_task_has_ended_or_a_job_begun():
    remembered = history([])
    remembered.start(T0, "id-1", "run-1")
    moved = []
    for at, (jobs, done) in enumerate([(1, 0), (1, 0), (1, 3), (1, 3), (2, 3)]):
        remembered.set_running(Running(T0 + at, "run-1", T0, "Processing new data", jobs, 10, done))
        moved.append(remembered.running.moved - T0)

    assert moved == [0, 0, 2, 2, 4]


def test_a_running_batch_whose_tasks_are_not_known_has_not_moved():
    remembered = history([batch(0)])
    remembered.set_running(Running(T0 + 9, "run-1", T0 + 2, "Processing new data"))
    assert remembered.running.moved is None


def test_memory_is_bounded():
    remembered = history([batch(number) for number in range(5000)])
    assert len(remembered.batches) == MAX_BATCHES
    assert len(remembered.trend) == TREND_POINTS


def test_older_batches_keep_their_figures_but_not_the_state_stores_custom_metrics():
    full = (operator(custom={"rocksdbGetCount": 5}, rows=7),)
    remembered = history([batch(number, operators=full) for number in range(100)])
    assert [bool(each.operators[0].custom) for each in remembered.batches] == [False] * 70 + [True] * 30
    assert all(each.operators[0].rows == 7 for each in remembered.batches)


def test_the_trend_adds_up_what_fell_into_its_stretch():
    remembered = history([batch(number, operators=(operator(rows=number),)) for number in range(5)])
    assert sum(point.rows for point in remembered.trend) == 500
    assert sum(point.batches for point in remembered.trend) == 5
    assert remembered.trend[-1].state_rows == 4


def test_backlog_sums_over_partitions_and_is_unknown_without_heads():
    assert backlog(stream(heads=[100], ends=[40])[0]) == 60
    assert backlog(batch(sources=(source(),))) is None


def test_an_answer_of_the_source_that_comes_late_is_passed_over():
    remembered, partition = history([batch(0)]), ("t", "0")
    for at, head in [(10, 100), (20, 300), (15, 200)]:
        remembered.add_heads(Heads(T0 + at, {partition: head}, {partition: head - 100}))
    assert [heads.at - T0 for heads in remembered.heads] == [10, 20]
    assert [list(table[partition][0]) for table in (remembered.head_times, remembered.earliest_times)] == [
        [100, 300],
        [0, 200],
    ]


STOPPED = "org.apache.spark.SparkException: Job 1 cancelled because SparkContext was shut down"


def test_the_end_of_its_application_is_no_failure_of_a_query():
    remembered = history([batch(0)])
    remembered.end(T0 + 9, "run-1", STOPPED, "SPARK_JOB_CANCELLED")
    assert remembered.failures == {}
    assert remembered.ended is not None
    assert (remembered.ended.exception, remembered.ended.with_application) == (None, True)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("boom", STOPPED, True, id="a failure that stops the application"),
        pytest.param(None, STOPPED, False, id="a clean stop before"),
        pytest.param("boom", "boom", False, id="two failures"),
        pytest.param(STOPPED, STOPPED, False, id="an application that is stopped"),
    ],
)
def test_a_query_is_stopped_by_the_failure_of_another_only(first, second, expected):
    one, other = history([batch(0)]), history([batch(0)])
    one.end(T0 + 9, "run-1", first, None)
    other.end(T0 + 11, "run-1", second, None)

    assert other.ended is not None
    assert other.ended.stopped_by(one.ended) is expected
    assert one.ended is not None and not one.ended.stopped_by(other.ended)
