"""What is remembered of a query, over restarts, repetitions and silence."""

import pytest

from ledgerops.model.history import MAX_BATCHES, TREND_POINTS, ClockStep, History, backlog
from ledgerops.model.records import Heads, Running, TableCommit, Tables
from tests.build import T0, batch, history, operator, source, stream
from tests.tables import cases

STOPPED = "org.apache.spark.SparkException: Job 1 cancelled because SparkContext was shut down"


@pytest.fixture
def remembered():
    """A query with batch 0."""
    return history([batch(0)])


def test_a_batch_counts_once_for_each_run_and_batch_id():
    remembered = History("q")
    assert [remembered.add(batch(1)) for _ in range(2)] == [True, False]
    assert len(remembered.batches) == 1


def test_a_progress_of_no_rows_with_the_old_batch_id_is_a_sign_of_life_only(remembered):
    assert remembered.add(batch(0, started=T0 + 100, rows=0)) is False
    assert (remembered.last_seen, remembered.last.rows) == (T0 + 100.5, 100)


def test_a_start_event_that_comes_after_the_first_batch_is_no_restart():
    remembered = History("q")
    remembered.add(batch(0))
    remembered.start(T0, "id-1", "run-1")
    assert remembered.restarts == 0


def test_a_batch_id_that_is_repeated_by_the_next_run_counts_again():
    remembered = history([batch(0), batch(1)])
    assert remembered.add(batch(1, run_id="run-2", started=T0 + 60)) is True
    assert remembered.restarts == 1
    assert [each.run_id for each in remembered.run] == ["run-2"]


@cases(
    "exception, error_class, kept, failures",
    ("once, by its class", "boom", "USER_RAISED_EXCEPTION", "boom", {"USER_RAISED_EXCEPTION": 1}),
    ("a clean stop is none", None, None, None, {}),
    ("the end of its application is none", STOPPED, "SPARK_JOB_CANCELLED", None, {}),
)
def test_failures_are_counted(remembered, exception, error_class, kept, failures):
    for _ in range(2):
        remembered.end(T0 + 9, "run-1", exception, error_class)
    assert remembered.failures == failures
    assert (remembered.ended.exception, remembered.ended.with_application) == (kept, exception == STOPPED)


def test_an_old_runs_end_does_not_end_the_new_run(remembered):
    remembered.start(T0 + 20, "id-1", "run-2")
    for _ in range(2):
        remembered.end(T0 + 21, "run-1", "boom", None)
    remembered.end(T0 + 22, "run-0", "boom", None)
    assert remembered.ended is None
    assert [(each.run_id, each.at) for each in remembered.ends] == [("run-1", T0 + 20)], "but it is known how it ended"
    assert remembered.failures == {"unclassified": 1}


@cases(
    "step, instant, moved",
    ("ten seconds before it was set back", -3600.0, T0 + 3590, T0 - 10),
    ("three quarters of an hour before", -3600.0, T0 + 900, T0 - 2700),
    ("more than an hour before", -3600.0, T0 - 600, T0 - 4200),
    ("read after it was set back", -3600.0, T0 - 2, T0 - 2),
    ("before it was set forward", 3600.0, T0 - 3610, T0 - 10),
    ("read after it was set forward", 3600.0, T0 - 2, T0 - 2),
)
def test_a_step_of_the_clock_moves_what_was_read_before_it(step, instant, moved):
    assert ClockStep(T0, step).moved(instant) == moved


@pytest.mark.parametrize(("query_id", "stood"), [("id-1", 40.0), ("id-2", 0.0)], ids=["same", "new checkpoint"])
def test_how_long_the_watermark_stood_is_remembered_over_restarts_with_the_same_checkpoint(query_id, stood):
    past = History("q")
    past.start(T0, "id-1", "run-1")
    for number, at in enumerate([0, 40, 50]):
        past.add(batch(number, started=T0 + at, watermark=T0 + at))
    for run in (2, 3):
        past.start(T0 + 60 * run, query_id, f"run-{run}")
    assert (past.watermark, past.watermark_stood) == (None, stood)


def test_a_late_failure_counts_also_of_a_run_that_was_lost_for_a_while(remembered):
    remembered.end(T0 + 9, "run-1", None, None, lost=True)
    remembered.start(T0 + 10, "id-1", "run-1")
    remembered.start(T0 + 20, "id-1", "run-2")
    remembered.end(T0 + 21, "run-1", "boom", None)
    assert (remembered.failures, remembered.ended) == ({"unclassified": 1}, None)


@pytest.mark.parametrize("marks", [{}, {"lost": True}, {"unwatched": True}], ids=["for good", "lost", "unwatched"])
def test_a_start_that_is_heard_of_after_the_end_revives_only_a_run_that_may_go_on(remembered, marks):
    remembered.end(T0 + 9, "run-1", None, None, **marks)
    remembered.start(T0 + 10, "id-1", "run-1")
    assert (remembered.ended is None) == bool(marks)


def test_a_batch_after_the_end_means_that_the_run_is_on(remembered):
    remembered.end(T0 + 9, "run-1", None, None)
    remembered.add(batch(1, run_id="run-2", started=T0 + 30))
    assert remembered.ended is None


@pytest.mark.parametrize(("exception", "failures"), [(None, {}), ("boom", {"unclassified": 1})])
def test_a_batch_that_is_heard_of_after_its_runs_end_is_remembered_but_does_not_revive_the_run(
    remembered, exception, failures
):
    remembered.end(T0 + 9, "run-1", exception, None)
    assert remembered.add(batch(1)) is True
    remembered.end(T0 + 9, "run-1", exception, None)
    assert (remembered.last.batch_id, remembered.ended.at) == (1, T0 + 9)
    assert (remembered.failures, remembered.restarts) == (failures, 0)


def test_the_last_runs_last_batch_may_be_heard_of_after_the_next_runs_start(remembered):
    remembered.start(T0 + 20, "id-1", "run-2")
    assert [remembered.add(batch(1, started=T0 + 19.5)) for _ in range(2)] == [True, False]
    remembered.add(batch(5, run_id="run-2", started=T0 + 21))
    assert remembered.add(batch(2, started=T0 + 19.8)) is False
    assert (remembered.run_id, remembered.restarts, remembered.started_at) == ("run-2", 1, T0 + 20)
    assert ([each.batch_id for each in remembered.run], remembered.first_batch) == ([5], 5)


def test_idle_keeps_the_instant_at_which_it_began(remembered):
    remembered.idle(T0 + 10)
    remembered.idle(T0 + 20)
    assert (remembered.idle_since, remembered.last_seen) == (T0 + 10, T0 + 20)


def test_a_running_trigger_is_forgotten_when_its_batch_arrives_and_ignored_of_another_run(remembered):
    remembered.set_running(Running(T0 + 9, "run-0", T0 + 2, "Processing new data"))
    assert remembered.running is None
    remembered.set_running(Running(T0 + 9, "run-1", T0 + 2, "Processing new data"))
    assert remembered.running.moved is None, "its tasks are not known"
    remembered.add(batch(1))
    assert remembered.running is None


def test_a_running_batch_has_moved_when_a_task_has_ended_or_a_job_begun_and_not_when_spark_forgets_one():
    remembered = history([])
    remembered.start(T0, "id-1", "run-1")
    moved = []
    for at, (jobs, done) in enumerate([(1, 0), (1, 0), (1, 3), (1, 3), (2, 3), (1, 3)]):
        remembered.set_running(Running(T0 + at, "run-1", T0, "Processing new data", jobs, 10, done))
        moved.append((remembered.running.moved - T0, remembered.running.pace))

    assert moved == [(0, 0), (0, 0), (2, 2), (2, 2), (4, 2), (4, 2)]


def test_memory_is_bounded_and_older_batches_keep_their_figures_but_not_custom_metrics():
    full = [(operator(custom={"rocksdbGetCount": 5}, rows=7),) for _ in range(100)]
    remembered = history([batch(number, operators=each) for number, each in enumerate(full)])
    assert [bool(each.operators[0].custom) for each in remembered.batches] == [False] * 70 + [True] * 30
    assert all(each.operators[0].rows == 7 for each in remembered.batches)
    remembered = history([batch(number) for number in range(5000)])
    assert (len(remembered.batches), len(remembered.trend)) == (MAX_BATCHES, TREND_POINTS)


def test_offsets_where_a_batch_begins_and_the_one_before_has_ended_are_kept_once():
    starts, ends = ({("orders", "0"): 5}, {("orders", "0"): 9}, {("orders", "0"): 7}), ({("orders", "0"): 9},) * 3
    remembered = history([batch(n, sources=(source(start=starts[n], end=dict(ends[n])),)) for n in range(3)])
    first, second, third = (each.sources[0] for each in remembered.batches)
    assert second.start is first.end
    assert third.start == {("orders", "0"): 7}, "a batch that begins elsewhere keeps its own"


def test_the_trend_adds_up_what_fell_into_its_stretch():
    trend = history([batch(number, operators=(operator(rows=number),)) for number in range(5)]).trend
    assert (sum(point.rows for point in trend), sum(point.batches for point in trend)) == (500, 5)
    assert trend[-1].state_rows == 4


def test_backlog_sums_over_partitions_and_is_unknown_without_heads():
    assert backlog(stream(heads=[100], ends=[40])[0]) == 60
    assert backlog(batch(sources=(source(),))) is None


def test_what_was_written_with_another_checkpoint_is_forgotten_whenever_it_is_heard_of(remembered):
    old, late, own = (TableCommit(number, T0 + number, number, None, 1, 100) for number in (0, 1, 2))
    remembered.add_tables(Tables(T0 + 1, remembered.run_id, {}, (old,)))
    remembered.start(T0 + 20, remembered.query_id, "same-checkpoint")
    assert list(remembered.commits) == [old]
    remembered.start(T0 + 30, "another id", "run-9")
    assert remembered.add_tables(Tables(T0 + 31, "same-checkpoint", {}, (late,))) == [late]
    remembered.add_tables(Tables(T0 + 32, "run-9", {}, (own,)))
    assert list(remembered.commits) == [own]


def test_what_a_former_run_with_the_same_checkpoint_wrote_last_is_kept(remembered):
    former, late = remembered.run_id, TableCommit(1, T0 + 1, 1, None, 1, 100)
    remembered.start(T0 + 20, remembered.query_id, "same-checkpoint")
    remembered.add_tables(Tables(T0 + 21, former, {}, (late,)))
    assert list(remembered.commits) == [late]


def test_an_answer_of_the_source_that_comes_late_is_passed_over(remembered):
    partition = ("t", "0")
    for at, head in [(10, 100), (20, 300), (15, 200)]:
        remembered.add_heads(Heads(T0 + at, {partition: head}, {partition: head - 100}))
    newest, oldest = (list(table[partition][0]) for table in (remembered.head_times, remembered.earliest_times))
    assert [heads.at - T0 for heads in remembered.heads] == [10, 20]
    assert (newest, oldest) == ([100, 300], [0, 200])


@cases(
    "first, second, expected",
    ("a failure that stops the application", "boom", STOPPED, True),
    ("a clean stop before", None, STOPPED, False),
    ("two failures", "boom", "boom", False),
    ("an application that is stopped", STOPPED, STOPPED, False),
)
def test_a_query_is_stopped_by_the_failure_of_another_only(first, second, expected):
    one, other = history([batch(0)]), history([batch(0)])
    one.end(T0 + 9, "run-1", first, None)
    other.end(T0 + 11, "run-1", second, None)
    both = (one, other)
    assert (other.ended.stopped_by(one.ended, both), one.ended.stopped_by(other.ended, both)) == (expected, False)


@pytest.mark.parametrize(("started", "expected"), [(-1.0, True), (8.0, True), (20.0, False), (33.0, True)])
def test_an_application_that_starts_a_query_after_a_failure_is_not_stopped_by_it(started, expected):
    failed, stopped, third = history([batch(0)]), history([batch(0)]), history([batch(0)])
    failed.end(T0 + 9, "run-1", "boom", None)
    stopped.end(T0 + 31, "run-1", STOPPED, None)
    third.started_at = T0 + started
    assert stopped.ended.stopped_by(failed.ended, (failed, stopped, third)) is expected


def test_an_application_that_starts_its_queries_one_after_the_other_is_stopped_by_the_first_that_fails():
    first, second, third = history([batch(0)]), history([batch(0)]), history([batch(0)])
    first.end(T0 + 3, "run-1", "boom", None)
    third.started_at = T0 + 4
    for each in (second, third):
        each.end(T0 + 7, "run-1", STOPPED, None)
        assert each.ended.stopped_by(first.ended, (first, second, third))
