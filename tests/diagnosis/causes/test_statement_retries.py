from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.statement_retries import CAUSE
from ledgerops.model.records import FailedStatement
from tests.diagnosis.conftest import late, stage, told_by
from tests.tables import cases

CONFLICT = (
    "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected. a concurrent DELETE added data to table t"
)
TIMEOUT = "java.net.SocketTimeoutException: Read timed out"


def failing(history, *spans, error=CONFLICT, **more):
    """Batches of five seconds whose last stage takes 0.5 s; `spans` are failed statements, seconds into add_batch."""
    view = late(history, [stage(wall=0.5, began=4.2)], **more)
    added = {batch.batch_id: batch.adding_since for batch in view.history.batches}
    for place, tasks in enumerate(view.history.tasks):
        began = added[tasks.batch_id]
        failed = tuple(FailedStatement(began + since, began + until, error) for since, until in spans)
        view.history.tasks[place] = replace(tasks, failed=failed)
    return view


def test_statements_that_fail_are_told_with_the_exception_and_who_else_writes(history):
    [finding] = check(CAUSE, failing(history, (0.5, 1.5), (2.0, 4.0)))

    assert finding.summary == (
        "3.5 s of a batch of 5.0 s go to 10 statements in 5 batches that fail and are done again: "
        f"{CONFLICT}; another writer added rows to the table while the batch was being committed"
    )
    assert finding.remedies[0].action.startswith("see who else commits to the table")
    told = {"failed_executions": 10.0, "failed_statements_seconds": 3.5, "profile_seconds": 5.0}
    assert (told_by(finding), finding.saving_seconds) == (pytest.approx(told), pytest.approx(3.5))


def test_what_is_no_conflict_of_commits_is_looked_for_in_the_exception(history):
    [finding] = check(CAUSE, failing(history, (0.5, 3.5), error=TIMEOUT))

    assert finding.summary.endswith("that fail and are done again: SocketTimeoutException: Read timed out")
    assert finding.remedies[0].action.startswith("see what the exception blames")


def test_tries_that_fail_at_once_take_the_pauses_between_them_and_a_known_reason_has_its_step(history):
    error = "org.postgresql.util.PSQLException: FATAL: sorry, too many clients already"
    tries = [(second, second + 0.05) for second in (0.5, 1.5, 2.5, 3.5)]
    [finding] = check(CAUSE, failing(history, *tries, error=error))

    assert finding.summary.startswith("3.0 s of a batch of 5.0 s go to 20 statements in 5 batches that fail")
    assert finding.summary.endswith("; the database accepts no more connections")
    assert [step.action.partition(" ")[0] for step in finding.remedies] == ["see", "count"]


def test_where_all_fail_none_has_a_stage(history):
    view = failing(history, (0.5, 3.5), error=TIMEOUT)
    for place, tasks in enumerate(view.history.tasks):
        view.history.tasks[place] = replace(tasks, stages=())
    [finding] = check(CAUSE, view)

    assert finding.summary.startswith("3.0 s of a batch of 5.0 s go to 5 statements in 5 batches that fail")


@cases(
    "spans, more",
    ("none fails", [], {}),
    ("it fails at once", [(0.5, 0.6)], {}),
    ("while a stage of another statement runs", [(4.2, 4.5)], {}),
    ("the query has the time", [(0.5, 3.5)], {"interval": 10.0}),
)
def test_others_are_not(history, spans, more):
    assert list(check(CAUSE, failing(history, *spans, **more))) == []
