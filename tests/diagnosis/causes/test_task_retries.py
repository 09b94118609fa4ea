from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.task_retries import CAUSE
from tests.diagnosis.conftest import late, stage, told_by
from tests.tables import cases

EXCEPTION = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/srv/app.py", line 12, in score
    raise ConnectionResetError("connection reset by peer")
ConnectionResetError: connection reset by peer
"""


def failing(seconds=4.0, tasks=1, failure=EXCEPTION, ran=0.4):
    return [stage("foreach", seconds=[ran, ran], wall=4.5, failed=(tasks, seconds, failure))]


@cases(
    "failure, said",
    ("its place", EXCEPTION, "ConnectionResetError: connection reset by peer, at /srv/app.py:12 in score"),
    ("no text", None, "no exception is known"),
)
def test_what_failed_attempts_take_is_told_with_the_exception(history, failure, said):
    [finding] = check(CAUSE, late(history, failing(failure=failure)))

    assert finding.summary == (
        f"4.0 s of a batch of 5.0 s go to tasks that fail and are run again (5 tasks in 5 batches): {said}"
    )
    assert (finding.component.kind, finding.component.name) == ("stage", "foreach")
    assert finding.remedies[0].action.startswith("see what the exception blames")


@cases(
    "stages",
    ("they fail at once", failing(seconds=0.6, tasks=9)),
    ("while other tasks go on", failing(ran=4.4)),
)
def test_others_are_not(history, stages):
    assert list(check(CAUSE, late(history, stages))) == []


def failing_now(history, *failed, seconds=1.0):
    """Batches in time, of which each had so many failed attempts."""
    ran = [failing(seconds=0.2, tasks=tasks) if tasks else [stage("foreach")] for tasks in failed]
    return history(seconds=[seconds] * len(failed), stages=ran, cores=2)


def test_what_makes_nothing_late_is_told_from_the_second_batch_on(history):
    [finding] = check(CAUSE, failing_now(history, 0, 1, 0, 0, 2, 0))

    assert finding.summary == (
        "tasks fail and are run again, 3 in 2 batches so far: nothing is late for it yet, and a task whose last "
        "attempt fails ends the query: ConnectionResetError: connection reset by peer, at /srv/app.py:12 in score"
    )
    assert finding.batches == (7, 10)
    assert told_by(finding) == {"failed_tasks": 3.0}


@cases("failed", ("in one batch", (0, 0, 3, 0, 0)), ("long ago", (1, 1, 1, 0, 0, 0, 0, 0)))
def test_a_failure_that_was_made_up_for_is_not(history, failed):
    assert list(check(CAUSE, failing_now(history, *failed))) == []
