"""Offsets committed to a real broker's groups, and what happens without one."""

import re
import time
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from ledgerops.agent.group_offsets import OffsetCommitter
from ledgerops.agent.kafka_proxy import MAX_FAILED_REQUESTS, BrokerError, BrokerProxy
from ledgerops.agent.kafka_subprocess import OffsetClient
from ledgerops.common.kafka import KafkaClient
from ledgerops.servers.kafka import Kafka
from tests.agent.brokers import Queries, asks, closed, committed, produce, reading  # noqa: F401
from tests.tables import cases

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def committing(kafka: Kafka):
    queries = Queries()
    made = committer(queries, asks(lambda: kafka.client))
    yield queries, made
    made.close()


def committer(queries: Queries, broker: BrokerProxy) -> OffsetCommitter:
    return OffsetCommitter(queries.runs, broker, "ledgerops.{query}")


def commit(made: OffsetCommitter) -> None:
    """As its thread does, again and again: a broker that has just begun has no coordinator of groups yet."""
    end = time.monotonic() + 60
    while made._due():
        try:
            made.collect()
        except BrokerError:
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end


def lag(kafka: Kafka, group: str) -> dict[tuple[str, str], int]:
    """What Kafka's own tool says: GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG ..."""
    listed = kafka.tool(
        GROUPS, "--bootstrap-server", kafka.servers, "--describe", "--group", group, "--timeout", "50000"
    )
    rows = [line.split() for line in listed.splitlines() if re.match(rf"{re.escape(group)}\s", line)]
    return {(row[1], row[2]): int(row[5]) for row in rows}


def test_kafkas_own_tool_lists_the_query_with_the_lag_that_the_exporter_shows(kafka, make_topic, committing):
    queries, made = committing
    topic, query = make_topic(3), make_topic(1)  # a name that no other test has
    produce(kafka, topic, {0: 50, 1: 30, 2: 20})
    queries.read(query, {topic: {"0": 40, "1": 30, "2": 5}})
    commit(made)
    assert lag(kafka, f"ledgerops.{query}") == {(topic, "0"): 10, (topic, "1"): 0, (topic, "2"): 15}


def test_each_query_has_a_group_and_of_two_sources_the_slower_counts(kafka, topic, make_topic, committing):
    queries, made = committing
    first, second = make_topic(1), make_topic(1)
    queries.read(first, {topic: {"0": 7}}, {topic: {"0": 4}})
    queries.read(second, {topic: {"0": 9}})
    commit(made)

    assert committed(kafka, f"ledgerops.{first}") == {(topic, "0"): 4}
    assert committed(kafka, f"ledgerops.{second}") == {(topic, "0"): 9}


def test_offsets_go_back_only_with_a_new_run(kafka, topic, make_topic, committing):
    queries, made = committing
    query = make_topic(1)
    for run, end, expected in [("run-1", 20, 20), ("run-1", 12, 20), ("run-1", 25, 25), ("run-2", 12, 12)]:
        queries.read(query, {topic: {"0": end}}, run=run)
        commit(made)
        assert committed(kafka, f"ledgerops.{query}") == {(topic, "0"): expected}, (run, end)


def test_the_last_batch_is_committed_at_the_end(kafka, topic, make_topic, committing, monkeypatch):
    monkeypatch.setattr("ledgerops.agent.group_offsets.LAST_SECONDS", 60.0)
    queries, made = committing
    query = make_topic(1)
    queries.read(query, {topic: {"0": 5}})
    commit(made)  # from here on the broker knows the group
    queries.read(query, {topic: {"0": 8}})
    queries.end(query)
    made.close()

    assert committed(kafka, f"ledgerops.{query}") == {(topic, "0"): 8}


def test_a_group_with_members_is_not_taken_over(kafka, topic, make_topic, committing):
    from confluent_kafka import Consumer

    queries, made = committing
    query = make_topic(1)
    member = Consumer(kafka.client.librdkafka(**{"group.id": f"ledgerops.{query}", "enable.auto.commit": False}))
    member.subscribe([topic])
    end = time.monotonic() + 60
    while not member.assignment():
        assert time.monotonic() < end
        member.poll(0.2)
    queries.read(query, {topic: {"0": 8}})
    with pytest.raises(BrokerError):
        made.collect()
    member.close()
    commit(made)

    assert committed(kafka, f"ledgerops.{query}") == {(topic, "0"): 8}


def test_nothing_is_committed_of_a_query_that_does_not_read_kafka():
    queries = Queries()
    made = committer(queries, asks(lambda: pytest.fail("asked")))
    made.collect()
    queries.read("embedded", {"t": {"0": 4}}, description="transactions embedded")
    made.collect()


class Answering(BrokerProxy):
    """Answers so, whatever it is asked to commit."""

    def __init__(self, failed, **lists):
        super().__init__(lambda: KafkaClient("127.0.0.1:1"))
        self.answer = {"failed": failed, "later": [], "refused": [], **lists}
        self.ended = 0

    def ask(self, question, *limits):
        return self.answer

    def _end(self):
        self.ended += 1


@cases(
    "refused, ended",
    ("refused", ["ledgerops.a"], 0),
    ("lost its way", [], 1),
)
def test_only_a_process_that_gets_no_answer_is_followed_by_another(refused, ended):
    broker = Answering({"ledgerops.a": "no access"}, refused=refused)
    made = committer(reading(), broker)
    for _ in range(MAX_FAILED_REQUESTS):
        with pytest.raises(BrokerError, match="no access"):
            made.collect()
    assert broker.ended == ended


class Admin:
    """An admin client whose answer to a commit is a failure of this kind."""

    def __init__(self, code):
        self.code = code

    def alter_consumer_group_offsets(self, requests, request_timeout):
        answer = Future()
        answer.set_exception(KafkaException(KafkaError(self.code)))
        return {requests[0].group_id: answer}

    def poll(self, seconds):
        pass


@cases(
    "code, later, refused",
    ("not allowed", KafkaError.GROUP_AUTHORIZATION_FAILED, [], ["g"]),
    ("it has members", KafkaError.UNKNOWN_MEMBER_ID, [], ["g"]),
    ("its coordinator moves", KafkaError.NOT_COORDINATOR, ["g"], []),
    ("the client has lost its way", KafkaError.FENCED_LEADER_EPOCH, [], []),
    ("it does not answer", KafkaError._TIMED_OUT, ["g"], []),
    ("its connection is gone", KafkaError._TRANSPORT, ["g"], []),
)
def test_what_the_broker_will_not_do_is_told_from_what_may_change(code, later, refused):
    asker = OffsetClient(KafkaClient("127.0.0.1:1"))
    asker._admin = Admin(code)
    answer = asker.answer({"ask": "commit", "seconds": 1, "groups": {"g": [["t", 0, 4]]}})
    assert (list(answer["failed"]), answer["later"], answer["refused"]) == (["g"], later, refused)


def test_queries_that_come_and_go_leave_nothing_behind():
    queries = Queries()
    made = committer(queries, Answering({}))
    for number in range(5):
        queries.read(f"query_{number}", {"t": {"0": 4}})
        made.collect()
        if number < 4:
            queries.runs.forget(f"query_{number}")
            made.collect()

    assert list(made._committed) == ["query_4"]


def test_a_broker_that_is_away_is_no_failure_of_the_collector_and_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.group_offsets.ANSWER_SECONDS", 60.0)
    monkeypatch.setattr("ledgerops.agent.group_offsets.LAST_SECONDS", 0.5)
    made = committer(reading(), asks(lambda: KafkaClient("127.0.0.1:1")))
    for _ in range(2):
        made._commit(0.5)
    assert made._due()  # it is owed still
    began = time.monotonic()
    made.close()
    assert time.monotonic() - began < 60.0
