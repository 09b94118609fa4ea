from dataclasses import replace

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.crash_loop import RULE
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import told_by
from tests.tables import cases

REASON = "SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row"
STACK = f"org.apache.spark.{REASON}\n\tat org.apache.spark.sql.Some.method"
RAISED = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/srv/app.py", line 13, in to_cents
    return int(text) * 100
ValueError: invalid literal for int() with base 10: '12,5O'
"""


def loop(
    history, deaths=3, every=10.0, done=0, stopped=False, now=None, running=True, each_run=False, stack=STACK,
    killed=False, known=True,
) -> QueryView:  # fmt: skip
    """A query that dies `deaths` times, each time in the batch after `done` more, and is begun again. Batches before
    that are `known`, or the log begins after them."""
    view = history(warm=6)
    past = view.history
    last = past.batches[-1]
    at, number = last.ended, last.batch_id
    if not known:
        past.batches.clear()
    for death in range(deaths):
        at += every
        if killed:
            past.end(past.last_seen, past.run_id, None, None, unwatched=True, unrecorded=True)
        else:
            past.end(at, f"run-{death + 1}", None if stopped else stack, None if stopped else "USER_RAISED_EXCEPTION")
        if death + 1 < deaths or running:
            past.start(at + 1, "id-1", f"run-{death + 2}")
            for _ in range(done if death + 1 == deaths or each_run else 0):
                number += 1
                past.add(replace(last, run_id=past.run_id, batch_id=number, started=at + 2, duration=0.5))
    return QueryView(past, at + 2 if now is None else at + now)


@cases(
    "case, each_time, batch, times",
    ("one that fails again and again", {}, ", each time in batch 6", 6.0, 3.0),
    ("others too", {"done": 4, "each_run": True}, "", 14.0, 1.0),
)
def test_a_batch_that_fails_is_found(history, case, each_time, batch, times):
    [finding] = RULE.check(loop(history, **case))

    assert finding.summary == (
        f"the query failed 3 times in 20 s and was started again{each_time} (USER_RAISED_EXCEPTION): {REASON}"
    )
    assert told_by(finding) == {
        "failures_in_window": 3.0,
        "ledgerops_query_restarts_total": 3.0,
        "failed_batch_id": batch,
        "failures_in_that_batch": times,
    }


def test_a_batch_whose_number_only_the_checkpoint_knows_is_not_given_one(history):
    [finding] = RULE.check(loop(history, known=False))
    assert ", each time in its first batch (" in finding.summary
    assert "failed_batch_id" not in told_by(finding)
    assert finding.remedies[0].action == STOP

    [still] = RULE.check(loop(history, known=False, done=1))  # it has got over it, by one batch
    assert ", each time in its first batch (" in still.summary
    assert list(RULE.check(loop(history, known=False, done=4))) == []


def test_each_start_writes_again_what_a_function_wrote(history):
    view = loop(history)
    view.history.plan = replace(view.plan, sink="ForeachBatchSink")
    [finding] = RULE.check(QueryView(view.history, view.now))
    assert finding.remedies[0].why.endswith("and the sink's function writes again what it wrote before that")


def test_drivers_that_are_killed_one_after_another_are_found(history):
    [finding] = RULE.check(loop(history, deaths=4, killed=True))
    assert finding.summary == (
        "the query failed 3 times in 20 s and was started again (4 restarts in all), each time in batch 6 "
        "(no exception): nothing was recorded of the end, as when a driver is killed"
    )
    assert [step.action[:25] for step in finding.remedies] == ["see how the driver ended:"]


def test_a_driver_that_is_killed_after_its_failures_hides_none_of_them(history):
    view = loop(history)
    view.history.end(view.now + 1, view.history.run_id, None, None, unwatched=True, unrecorded=True)
    view.history.start(view.now + 20, "id-1", "run-9")
    [finding] = RULE.check(view.at(view.now + 21))
    assert finding.summary.startswith("the query failed 4 times in 23 s") and "USER_RAISED_EXCEPTION" in finding.summary
    assert finding.remedies[0].action == STOP


STOP = "stop what restarts the query, then repair what the exception names; all of it is in the driver's log"


@cases(
    "stack, actions",
    ("one that nobody knows", STACK, [STOP, "write rows that cannot be read to a dead-letter output"]),
    ("its own repair comes first", "[DELTA_SOURCE_IGNORE_DELETE] deleted", ["find out what changed the rows", STOP]),
    ("one that a start repairs, but has not", "[DELTA_METADATA_CHANGED] x", [STOP]),
    ("one that comes again", "[DELTA_CONCURRENT_APPEND] x", ["let one writer of the table commit at a time", STOP]),
    ("one whose repair ends with a start", "SaslAuthenticationException: x", ["renew the credential", STOP]),
)
def test_the_first_step_is_that_of_the_exception(history, stack, actions):
    [finding] = RULE.check(loop(history, stack=stack))
    assert len(finding.remedies) == len(actions)
    assert all(step.action.startswith(action) for step, action in zip(finding.remedies, actions, strict=True))


def test_it_stays_while_the_query_is_down_and_explains_its_failure_until_somebody_stops_it(history):
    [root] = Diagnoser()(loop(history, running=False)).root_causes
    assert (root.rule, root.explains) == ("crash-loop", ("query-failed",))

    view = loop(history)
    view.history.end(view.now + 1, view.history.run_id, None, None)
    assert list(RULE.check(view.at(view.now + 1))) == []


@cases(
    "case",
    ("three in thirteen minutes", {"every": 400.0}),
    ("a run that has not got far", {"done": 2}),
    ("a run of less than a minute", {"now": 50.0}),
    ("a run that is not much longer than the others", {"every": 60.0, "now": 150.0}),
)
def test_it_is_not_over_yet(history, case):
    assert len(list(RULE.check(loop(history, **case)))) == 1


@cases(
    "case",
    ("a run that is far longer than the others", {"every": 60.0, "now": 300.0}),
    ("two failures", {"deaths": 2}),
    ("the first failure", {"deaths": 1, "running": False}),
    ("restarts without a failure: deployments", {"deaths": 5, "stopped": True}),
    ("a failure every ten minutes", {"deaths": 4, "every": 600.0}),
    ("the run has outlived it", {"now": 120.0}),
    ("a run has got over the batch", {"done": 4}),
    ("no failure", {"deaths": 0}),
    ("two drivers that were killed in their first batch", {"deaths": 3, "killed": True}),
    ("a driver that was killed each ten minutes", {"deaths": 4, "every": 600.0, "killed": True}),
    (
        "drivers that worked until they were killed, as for a new version",
        {"deaths": 5, "done": 2, "each_run": True, "killed": True},
    ),
    ("drivers that were killed, of which the last works", {"deaths": 4, "done": 4, "killed": True}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(loop(history, **case))) == []


@cases(
    "exception, end",
    ("a line of code", RAISED, "with base 10: '...'; at /srv/app.py:13 in to_cents"),
    ("told already", "IOException: bad file:/in/a.json", "): IOException: bad file:/in/a.json"),
)
def test_it_says_where_the_newest_failure_was_raised_if_that_is_known(history, exception, end):
    view = loop(history)
    view.history.ends[-1] = replace(view.history.ends[-1], exception=exception)

    [finding] = RULE.check(view)
    assert finding.summary.endswith(end)
