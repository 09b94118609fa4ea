from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.task_retries import CAUSE
from tests.diagnosis.conftest import late, stage
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
