from dataclasses import replace

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.crash_loop import RULE
from ledgerops.model.history import History
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

STACK = "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row\n\tat org.apache.spark.sql.Some.method"
RAISED = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/srv/app.py", line 13, in to_cents
    return int(text) * 100
ValueError: invalid literal for int() with base 10: '12,5O'
"""


def loop(history, deaths=3, every=10.0, done=0, stopped=False, now=None, running=True, each_run=False) -> QueryView:
    """A query that dies `deaths` times, each time in the batch after `done` more, and is begun again."""
    view = history(warm=6)
    past: History = view.history
    last = past.batches[-1]
    at, number = last.ended, last.batch_id
    for death in range(deaths):
        at += every
        past.end(at, f"run-{death + 1}", None if stopped else STACK, None if stopped else "USER_RAISED_EXCEPTION")
        if death + 1 < deaths or running:
            past.start(at + 1, "id-1", f"run-{death + 2}")
            for _ in range(done if death + 1 == deaths or each_run else 0):
                number += 1
                past.add(replace(last, run_id=past.run_id, batch_id=number, started=at + 2, duration=0.5))
    return QueryView(past, at + 2 if now is None else at + now)


def test_a_batch_that_fails_again_and_again_is_found(history):
    [finding] = RULE.check(loop(history))

    assert finding.summary == (
        "the query failed 3 times in 20 s and was started again, each time in batch 6 (USER_RAISED_EXCEPTION): "
        "SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row"
    )
    assert [(each.name, each.value) for each in finding.evidence] == [
        ("failures_in_window", 3.0),
        ("ledgerops_query_restarts_total", 3.0),
        ("failed_batch_id", 6.0),
        ("failures_in_that_batch", 3.0),
    ]


def test_it_is_found_in_other_batches_too(history):
    [finding] = RULE.check(loop(history, done=4, each_run=True))
    assert "each time" not in finding.summary and finding.summary.startswith("the query failed 3 times")


def test_it_stays_while_the_query_is_down_and_explains_its_failure_until_somebody_stops_it(history):
    down, view = loop(history, running=False), loop(history)
    [root] = Diagnoser()(down).root_causes
    assert (root.rule, root.explains) == ("crash-loop", ("query-failed",))

    view.history.end(view.now + 1, view.history.run_id, None, None)
    assert list(RULE.check(QueryView(view.history, view.now + 1))) == []


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
    ("restarts without a failure: deployments", {"deaths": 5, "stopped": True}),
    ("a failure every ten minutes", {"deaths": 4, "every": 600.0}),
    ("the run has outlived it", {"now": 120.0}),
    ("a run has got over the batch", {"done": 4}),
    ("no failure", {"deaths": 0}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(loop(history, **case))) == []


def test_the_first_failure_is_the_failed_querys(history):
    assert list(RULE.check(history(exception=STACK))) == []


@cases(
    "exception, end",
    ("a line of code", RAISED, "with base 10: '...'; at /srv/app.py:13 in to_cents"),
    ("told already", "IOException: bad file:/in/a.json", "): IOException: bad file:/in/a.json"),
    ("none named", STACK, "): SparkRuntimeException: [USER_RAISED_EXCEPTION] bad row"),
)
def test_it_says_where_the_newest_failure_was_raised_if_that_is_known(history, exception, end):
    view = loop(history)
    view.history.ends[-1] = replace(view.history.ends[-1], exception=exception)

    [finding] = RULE.check(view)
    assert finding.summary.endswith(end)
