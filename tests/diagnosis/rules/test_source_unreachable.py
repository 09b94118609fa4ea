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
SILENT, WAITED = "the broker has not answered for", "the query has waited"
WAITING = {"seconds": [1.0] * 6, "running": 14, "source": KAFKA}
SLOW_AS_EVER = {"seconds": [4] * 3, "phases": {"latest_offset": 3.5}, "running": 13, "message": OFFSETS}


def silent(history, seconds, **case):
    return asked(history(quiet_for=seconds, **case), error=REFUSED, silent_for=seconds - 1)


def waits(history, seconds):
    return history(running=seconds, message=OFFSETS)


@cases(
    "make, said, sure",
    ("nobody answers", lambda history: silent(history, 14), f"{SILENT} 13 s (Connection refused)", False),
    ("without a collector", lambda history: waits(history, 12), f"{WAITED} 12 s for offsets", False),
    (
        "the broker answers",
        lambda history: asked(waits(history, 20), [6000], [0]),
        f"{WAITED} 20 s for offsets, although the broker answers ledgerops",
        False,
    ),
    (
        "both are one finding, and surer",
        lambda history: asked(waits(history, 20), error=REFUSED, silent_for=18),
        f"{SILENT} 18 s (Connection refused); {WAITED} 20 s for offsets",
        True,
    ),
)
def test_a_broker_that_does_not_answer_is_found(history, make, said, sure):
    [finding] = RULE.check(make(history))
    assert finding.summary == said
    assert (finding.component.name, finding.share) == ("transactions", 1)
    assert (finding.confidence > 0.9) is sure


TIMEOUT_OF = "org.apache.kafka.common.errors.TimeoutException: {}"
NO_TOPIC = TIMEOUT_OF.format("Topic orders_out not present in metadata after 60000 ms.")
EXPIRED = TIMEOUT_OF.format("Expiring 3 record(s) for orders_out-0:120000 ms has passed since batch creation")


def gave_up(history):
    return history(exception=TIMEOUT, source=KAFKA, error_class="STREAM_FAILED")


def stuck(history):
    return asked(waits(history, 40), error=REFUSED, silent_for=38)


@cases(
    "make, status, explains",
    ("a query that gave up", gave_up, "failed", ("query-failed",)),
    ("a stuck query", stuck, "stuck", ("trigger-overrun", "query-stuck")),
)
def test_it_is_the_root_of(history, make, status, explains):
    verdict = Diagnoser()(make(history))

    [root] = verdict.root_causes
    assert (verdict.status, root.rule, root.explains) == (status, "source-unreachable", explains)


def test_a_query_that_gave_up_before_its_first_batch_may_have_waited_for_its_source(history):
    [finding] = RULE.check(history(warm=0, exception=TIMEOUT))
    assert finding.summary.startswith("the query gave up waiting for the broker: TimeoutException: Timed out")


def of_another_broker(history):
    view = history(quiet_for=40, interval=60.0)
    view.history.heads.append(Heads(view.now, {}, {}, error=REFUSED, unreachable_since=view.now - 30))
    return QueryView(view.history, view.now)


def stopped(history):
    view = silent(history, 14)
    view.history.end(view.now, "run-1", None, None)
    return QueryView(view.history, view.now)


@cases(
    "make",
    ("a single look in vain", lambda history: silent(history, 9)),
    ("the query goes on reading", lambda history: asked(history(seconds=[1] * 10), error=REFUSED, silent_for=15)),
    ("it is idle", lambda history: asked(history(idle=True, quiet_for=30), error=REFUSED, silent_for=15)),
    ("it never answered ledgerops, and may be another one", of_another_broker),
    ("nobody asked it for a minute", lambda history: silent(history, 14).at(history(quiet_for=14).now + 61)),
    ("the query was stopped on purpose", stopped),
)
def test_a_broker_that_does_not_answer_ledgerops_is_no_finding_where(history, make):
    assert list(RULE.check(make(history))) == []


@cases(
    "case",
    ("a short wait", {"running": 9, "message": OFFSETS}),
    ("a long batch", {"running": 300, "message": "Processing new data"}),
    ("a slow file listing", {"running": 300, "message": "Getting offsets from FileStreamSource[in]"}),
    ("a source that is slow as ever", SLOW_AS_EVER),
    ("failed of something else", {"exception": "java.lang.ArithmeticException: / by zero"}),
    ("the topic of its sink is missing", {"exception": NO_TOPIC, "source": KAFKA}),
    ("the broker of its sink takes no rows", {"exception": EXPIRED, "source": KAFKA}),
    ("it reads files, so the broker is its sink's", {"exception": TIMEOUT, "source": "FileStreamSource[in]"}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_clears_with_the_first_answer(history):
    judge = Diagnoser()
    view = silent(history, 14)
    assert judge(view).findings
    assert judge(asked(view, [6000], [0], later=5)).findings == ()


@pytest.mark.parametrize(("seconds", "known"), [(5, True), (120, False)])
def test_it_is_ruled_out_by_an_answer_of_the_last_minute(history, seconds, known):
    view = asked(history(), [6000], [0])
    assert (RULE.ruled_out(view.at(view.now + seconds)) is not None) is known


def test_an_answer_while_the_first_look_in_vain_was_under_way_does_not_count(history):
    view = asked(history(seconds=[1] * 10, quiet_for=18), error=REFUSED, silent_for=21)
    assert [finding.component.name for finding in RULE.check(view)] == ["transactions"]


def test_an_idle_query_whose_broker_dies_is_told(history):
    view = history(idle=True)
    now = view.now + 40
    view.history.set_running(Running(now, "run-1", now - 30, OFFSETS))
    assert [root.rule for root in Diagnoser()(QueryView(view.history, now)).root_causes] == ["source-unreachable"]


@cases(
    "case, frames, found",
    ("two looks show the broker's client", {}, (POLL, POLL), True),
    ("for less than ten seconds", {"running": 9}, (POLL, POLL), False),
    ("one look", {}, (POLL,), False),
    ("the look before shows that tasks compute", {}, (COMPUTES, POLL), False),
    ("one of the tasks computes", {}, (POLL, f"{POLL} {COMPUTES}"), False),
    ("they wait for a database", {}, (QUERY, QUERY), False),
    ("they wait for the broker of a sink", {}, (SENDS, SENDS), False),
    ("a first batch may read a long backlog", {"warm": 0, "seconds": []}, (POLL, POLL), False),
    ("in real-time mode tasks poll all the time", {"plan": {"trigger": "real_time"}}, (POLL, POLL), False),
    ("the source has no broker", {"source": "RateStreamV2[rowsPerSecond=5]"}, (POLL, POLL), False),
)
def test_tasks_that_wait_in_the_brokers_client_tell_it_without_a_collector(history, case, frames, found):
    told = [finding.summary for finding in RULE.check(stacked(history(**WAITING | case), *frames))]
    assert told == ["a batch has run for 14 s: its 2 tasks wait for the broker (KafkaConsumer.position)"] * found


def test_tasks_that_end_one_after_another_read_from_a_broker_that_answers(history):
    view = stacked(history(**WAITING), POLL, POLL)
    view.history.running = replace(view.history.running, moved=view.now - 2)
    assert list(RULE.check(view)) == []


def test_tasks_that_wait_for_a_broker_that_answers_ledgerops_are_not_told(history):
    assert list(RULE.check(asked(stacked(history(**WAITING), POLL, POLL), [6000], [0]))) == []


@cases(
    "frames",
    ("the thread computes", ("org.acme.Score.of", POLL)),
    ("Spark is further in", ("sun.nio.ch.EPoll.wait", "org.apache.spark.sql.Wait.on", POLL)),
)
def test_a_client_is_waited_for_only_where_the_thread_is_still_and_in_it(history, frames):
    view = stacked(history(**WAITING), POLL, POLL)
    view.history.stacks = tuple(replace(look, stacks=(Stack(True, 2, frames),)) for look in view.history.stacks)
    assert list(RULE.check(view)) == []
