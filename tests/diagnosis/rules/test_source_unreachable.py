from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.source_unreachable import RULE
from ledgerops.model.records import Heads, Running, Stack
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.broker import asked
from tests.diagnosis.rules.stacks import COMPUTES, POLL, QUERY, SENDS, stacked
from tests.tables import cases

OFFSETS = "Getting offsets from KafkaV2[Subscribe[transactions]]"
KAFKA = "KafkaV2[Subscribe[transactions]]"
REFUSED = "Connection refused"
TIMEOUT = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: listOffsets"
SLOW_AS_EVER = {"seconds": [4] * 3, "phases": {"latest_offset": 3.5}, "running": 13, "message": OFFSETS}


def silent(history, seconds, **case):
    return asked(history(quiet_for=seconds, **case), error=REFUSED, silent_for=seconds - 1)


def waits(history, seconds):
    return history(running=seconds, message=OFFSETS)


def test_a_broker_that_does_not_answer_is_named(history):
    [finding] = RULE.check(silent(history, 14))
    assert finding.summary == "the broker has not answered for 13 s (Connection refused)"
    assert (finding.component.name, finding.share) == ("transactions", 1)


@cases(
    "seconds, answer, more",
    ("without a collector", 12, None, ""),
    ("it answers", 20, ([6000], [0]), ", although the broker answers ledgerops"),
)
def test_a_query_that_waits_for_offsets_is_found(history, seconds, answer, more):
    view = waits(history, seconds)
    [finding] = RULE.check(asked(view, *answer) if answer else view)
    assert finding.summary == f"the query has waited {seconds} s for offsets{more}"


def gave_up(history):
    return history(exception=TIMEOUT, error_class="STREAM_FAILED")


def stuck(history):
    return asked(waits(history, 40), error=REFUSED, silent_for=38)


@cases(
    "make, status, explains",
    ("a query that gave up", gave_up, "failed", "query-failed"),
    ("a stuck query", stuck, "stuck", "query-stuck"),
)
def test_it_is_the_root_of(history, make, status, explains):
    verdict = Diagnoser()(make(history))

    [root] = verdict.root_causes
    assert (verdict.status, root.rule, root.explains) == (status, "source-unreachable", (explains,))


@cases(
    "make",
    ("a single look in vain", lambda history: silent(history, 9)),
    ("the query goes on reading", lambda history: asked(history(seconds=[1] * 10), error=REFUSED, silent_for=15)),
    ("it is idle", lambda history: asked(history(idle=True, quiet_for=30), error=REFUSED, silent_for=15)),
)
def test_a_collector_whose_own_settings_are_wrong_is_no_finding(history, make):
    assert list(RULE.check(make(history))) == []


def test_both_together_are_one_finding_and_surer(history):
    view = asked(history(running=20, message=OFFSETS), error=REFUSED, silent_for=18)
    [finding] = RULE.check(view)

    assert finding.summary == "the broker has not answered for 18 s (Connection refused); " + (
        "the query has waited 20 s for offsets"
    )
    assert finding.confidence > 0.9


def test_it_clears_with_the_first_answer(history):
    judge = Diagnoser()
    view = silent(history, 14)
    assert judge(view).findings
    assert judge(asked(view, [6000], [0], later=5)).findings == ()


@pytest.mark.parametrize(("seconds", "known"), [(5, True), (120, False)])
def test_it_is_ruled_out_by_an_answer_of_the_last_minute(history, seconds, known):
    view = asked(history(), [6000], [0])
    later = QueryView(view.history, view.now + seconds, view.hosts)
    assert (RULE.ruled_out(later) is not None) is known


@cases(
    "case",
    ("healthy, nobody asks the broker", {}),
    ("a short wait", {"running": 9, "message": OFFSETS}),
    ("a long batch", {"running": 300, "message": "Processing new data"}),
    ("a slow file listing", {"running": 300, "message": "Getting offsets from FileStreamSource[in]"}),
    ("a source that is slow as ever", SLOW_AS_EVER),
    ("failed of something else", {"exception": "java.lang.ArithmeticException: / by zero"}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_a_broker_that_never_answered_ledgerops_may_be_another_one(history):
    view = history(quiet_for=40, interval=60.0)
    view.history.heads.append(Heads(view.now, {}, {}, error=REFUSED, unreachable_since=view.now - 30))
    assert list(RULE.check(QueryView(view.history, view.now))) == []


def test_an_answer_while_the_first_look_in_vain_was_under_way_does_not_count(history):
    view = asked(history(seconds=[1] * 10, quiet_for=18), error=REFUSED, silent_for=21)
    assert [finding.component.name for finding in RULE.check(view)] == ["transactions"]


def test_a_collector_that_has_ended_says_nothing_of_now(history):
    view = silent(history, 14)
    later = QueryView(view.history, view.now + 61)
    assert list(RULE.check(later)) == []


def test_a_query_that_was_stopped_on_purpose_has_no_source_to_miss(history):
    view = silent(history, 14)
    view.history.end(view.now, "run-1", None, None)
    assert list(RULE.check(QueryView(view.history, view.now))) == []


def test_an_idle_query_whose_broker_dies_is_told(history):
    view = history(idle=True)
    now = view.now + 40
    view.history.set_running(Running(now, "run-1", now - 30, OFFSETS))
    assert [root.rule for root in Diagnoser()(QueryView(view.history, now)).root_causes] == ["source-unreachable"]


@cases(
    "seconds, frames, found",
    ("two looks show the broker's client", 14, (POLL, POLL), True),
    ("for less than ten seconds", 9, (POLL, POLL), False),
    ("one look", 14, (POLL,), False),
    ("the look before shows that tasks compute", 14, (COMPUTES, POLL), False),
    ("one of the tasks computes", 14, (POLL, f"{POLL} {COMPUTES}"), False),
    ("they wait for a database", 14, (QUERY, QUERY), False),
)
def test_tasks_that_wait_in_the_brokers_client_tell_it_without_a_collector(history, seconds, frames, found):
    view = stacked(history(seconds=[1.0] * 6, running=seconds, source=KAFKA), *frames)

    told = [finding.summary for finding in RULE.check(view)]
    words = "its 2 tasks wait for the broker (KafkaConsumer.position)"
    assert told == ([f"a batch has run for {seconds} s: {words}"] if found else [])


def test_tasks_that_wait_for_a_broker_that_answers_ledgerops_are_not_told(history):
    view = asked(stacked(history(seconds=[1.0] * 6, running=14, source=KAFKA), POLL, POLL), [6000], [0])

    assert list(RULE.check(view)) == []


@cases(
    "case, frame",
    ("a first batch may read a long backlog", {"warm": 0, "seconds": []}, POLL),
    ("in real-time mode tasks poll all the time", {"plan": {"trigger": "real_time"}}, POLL),
    ("the source has no broker", {"source": "RateStreamV2[rowsPerSecond=5]"}, POLL),
    ("they wait for the broker of a sink", {}, SENDS),
)
def test_tasks_that_may_wait_for_something_else_are_not_told(history, case, frame):
    view = stacked(history(**{"seconds": [1.0] * 6, "running": 14, "source": KAFKA} | case), frame, frame)

    assert list(RULE.check(view)) == []


@cases(
    "frames",
    ("the thread computes", ("org.acme.Score.of", POLL)),
    ("Spark is further in", ("sun.nio.ch.EPoll.wait", "org.apache.spark.sql.Wait.on", POLL)),
)
def test_a_client_is_waited_for_only_where_the_thread_is_still_and_in_it(history, frames):
    view = stacked(history(seconds=[1.0] * 6, running=14, source=KAFKA), POLL, POLL)
    view.history.stacks = tuple(replace(look, stacks=(Stack(True, 2, frames),)) for look in view.history.stacks)

    assert list(RULE.check(view)) == []
