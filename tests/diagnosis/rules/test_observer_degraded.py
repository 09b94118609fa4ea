from ledgerops.diagnosis.rules.observer_degraded import RULE
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.crowd import suspended, watched
from tests.tables import cases

ERRORS = [{}, {"collector_errors": {"host": 2, "tasks": 1}}, {"collector_errors": {"host": 5, "tasks": 3}}]
BUSY = [{"worker_seconds": 4.5 * number} for number in range(6)]
LOSSES = [{}, {"dropped": 7, "queue_size": 9_000}, {"dropped": 70, "queue_size": 10_000}]


def errors(*counts, name="tasks"):
    return [{"collector_errors": {name: count, "plan": 1}} for count in counts]


def test_a_collector_that_fails_again_and_again_is_named(history):
    [finding] = RULE.check(watched(history(), errors(0, 0, 1, 2, 3)))
    assert finding.summary == "the data about this query has gaps: collector tasks failed 3 times in 20 s"
    assert (finding.component.kind, finding.component.detail) == ("observer", "tasks")
    assert finding.began == history().now - 10


def test_all_that_is_wrong_is_one_finding(history):
    looks = [errors | losses for errors, losses in zip(ERRORS, LOSSES, strict=True)]
    [finding] = RULE.check(watched(history(), looks))

    assert finding.summary == (
        "the data about this query has gaps: collectors host and tasks failed 8 times in 10 s; 70 events were "
        "dropped in 10 s; 10,000 of at most 10,000 events are waiting"
    )
    assert told_by(finding) == {"collector_errors": 8, "dropped_events": 70, "queue_share": 1.0}


@cases(
    "looks, quiet_for, said",
    ("busy", BUSY, 0, "the data about this query has gaps: the worker is busy 90% of the time"),
    ("stopped", [{}] * 12, 50, "this driver has reported nothing for 50 s, so the state of its queries is unknown"),
)
def test_a_worker_that_hardly_keeps_up_or_an_observer_that_has_stopped_is_found(history, looks, quiet_for, said):
    [finding] = RULE.check(watched(history(quiet_for=quiet_for), looks, quiet_for=quiet_for))
    assert finding.summary == said


@cases(
    "late, said",
    ("40 s", 40.0, []),
    ("48 s", 48.0, ["the data about this query has gaps: Spark told of its newest batch 48 s late"]),
)
def test_events_that_come_late_are_told_and_the_slow_listener_is_looked_for(history, late, said):
    view = history()
    view.history.note_told(view.now, view.now - late)
    found = list(RULE.check(watched(view, [{}] * 12)))
    assert [finding.summary for finding in found] == said
    assert all("spark-listener-group-streams" in finding.remedies[0].action for finding in found)


@cases(
    "looks, quiet_for",
    ("the first look", [{}], 0),
    ("healthy", [{}] * 12, 0),
    ("a collector that failed twice while the driver started", errors(0, 1, 2, 2), 0),
    ("errors of long ago", errors(5, 5, 5, 5, 5), 0),
    ("it works again", errors(0, 1, 2, 3, 3, 3, 3, 3, 3), 0),
    ("looks are missing for a minute, and batches are seen", errors(0, 1, 2, 3), 60),
    ("another driver began", [{"events": 900, "dropped": 9}, {"events": 5, "dropped": 0}, {}], 0),
    ("one busy moment of the worker", [{"worker_seconds": 0.0}, {"worker_seconds": 4.9}], 0),
    ("a burst of events", [{"queue_size": 0}, {"queue_size": 400}], 0),
)
def test_others_are_not(history, looks, quiet_for):
    assert list(RULE.check(watched(history(), looks, quiet_for))) == []


def test_a_query_that_has_ended_is_told_nothing(history):
    assert list(RULE.check(watched(history(stopped=True), errors(0, 1, 2, 3)))) == []


def test_a_driver_that_stood_still_is_told_once_it_goes_on(history):
    [finding] = RULE.check(suspended(history(quiet_for=61), 60.0))
    assert finding.summary == (
        "this driver stood still for 60 s, and its queries with it: its machine, its container or its process was "
        "suspended, or its clock was set"
    )
    assert told_by(finding) == {"standstill_seconds": 60.0}
    assert "suspended" in finding.remedies[0].action


@cases(
    "seconds, how",
    ("a gap of seconds", 30.0, {}),
    ("a function that never yields", 60.0, {"python": 1.0}),
    ("long ago", 60.0, {"ago": 70.0}),
)
def test_a_short_pause_a_function_that_computes_and_what_is_long_over_are_no_standstill(history, seconds, how):
    assert list(RULE.check(suspended(history(quiet_for=131), seconds, **how))) == []


def test_a_pause_between_two_drivers_is_no_standstill(history):
    view = history(quiet_for=61)
    view.history.start(view.now - 5, "id-1", "run-2")
    assert list(RULE.check(suspended(view, 60.0))) == []
