"""The collector of offsets against a real broker, and against none."""

import os
import signal
import sys
import threading
import time

import orjson
import pytest
from confluent_kafka.admin import NewPartitions, NewTopic

from ledgerops.agent.kafka_heads import KafkaCollector
from ledgerops.agent.kafka_proxy import MAX_FAILED_REQUESTS, BrokerError, BrokerProxy
from ledgerops.agent.queue import EventQueue
from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.model.observations import build
from ledgerops.model.records import Heads
from ledgerops.model.spark_progress import BadRecord
from ledgerops.servers.kafka import Kafka
from tests.agent.brokers import Queries, asks, closed, produce, reading  # noqa: F401
from tests.agent.fakes import queue
from tests.build import T0
from tests.programs import until
from tests.tables import cases
from tests.topics import make

NOBODY = KafkaClient("127.0.0.1:1")


def told(box: EventQueue):
    """What was put since the last time, by query."""
    return {event.query: orjson.loads(event.data) for event in box.take(0.0) if event.kind == "offsets"}


def collector(queries: Queries, client: KafkaClient = NOBODY):
    box = queue()
    return box, KafkaCollector(box, queries.runs, asks(lambda: client))


@pytest.fixture
def asking(kafka: Kafka):
    """A collector of the real broker and the queries that it knows."""
    queries = Queries()
    box, made = collector(queries, kafka.client)
    yield queries, box, made
    made.close()


def test_newest_and_oldest_offsets_and_the_retention_are_reported_for_what_each_query_reads(kafka, make_topic, asking):
    queries, box, made = asking
    topic, other = make_topic(3, **{"retention.ms": "60000", "retention.bytes": "1000000"}), make_topic(1)
    produce(kafka, topic, {0: 5, 2: 7})
    queries.read("a", {topic: {"0": 1, "2": 0}})
    queries.read("b", {other: {"0": 0}}, {topic: {"1": 0}})
    began = time.monotonic()
    made.collect()
    passed = time.monotonic() - began

    found = told(box)
    assert 0 < found["a"].pop("seconds") < passed
    assert found["b"]["topic_ids"].keys() == {topic, other}
    assert found["a"].pop("topic_ids") == {topic: found["b"]["topic_ids"][topic]}
    assert found["a"] == {
        "run_id": "a-run-1",
        "latest": {topic: {"0": 5, "2": 7}},
        "earliest": {topic: {"0": 0, "2": 0}},
        "retention_seconds": {topic: 60.0},
    }
    assert found["b"]["latest"] == {other: {"0": 0}, topic: {"1": 0}}
    assert found["b"]["retention_seconds"] == {other: 7 * 86400.0, topic: 60.0}


def test_a_topic_that_was_created_again_has_another_id(kafka, topic, asking):
    queries, box, made = asking
    queries.read("a", {topic: {"0": 0}})
    admin = reach(kafka.client)

    def ids():
        for _ in range(2):
            made.collect()
            yield told(box)["a"]["topic_ids"][topic]

    before = set(ids())
    admin.delete_topics([topic])[topic].result(30)
    until(lambda: topic not in admin.list_topics().topics, 30, "the topic is gone")
    make(admin, NewTopic(topic, 1, 1))
    assert (len(before), len(before | set(ids()))) == (1, 2)


def test_deleted_records_show_in_the_oldest_offset(kafka, topic, asking):
    from confluent_kafka import TopicPartition

    queries, box, made = asking
    produce(kafka, topic, {0: 10})
    admin = reach(kafka.client)  # its answers end with it
    [deleted] = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    deleted.result(30)
    queries.read("a", {topic: {"0": 1}})
    made.collect()

    assert told(box)["a"]["earliest"] == {topic: {"0": 4}}


def test_partitions_that_a_topic_gets_are_found_by_the_next_question(kafka, make_topic, asking):
    queries, box, made = asking
    topic = make_topic(1)
    queries.read("a", {topic: {"0": 0}})
    made.collect()
    admin = reach(kafka.client)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    while len(admin.list_topics(topic).topics[topic].partitions) < 3:
        pass
    queries.read("a", {topic: {"0": 0, "1": 0, "2": 0}})
    made.collect()
    while "error" in (answer := told(box)["a"]):  # a new partition has no leader for a moment
        made.collect()
    assert answer["latest"] == {topic: {"0": 0, "1": 0, "2": 0}}


def test_a_compacted_topic_has_no_retention_and_one_that_is_gone_hides_nothing_else(make_topic, asking):
    queries, box, made = asking
    topic = make_topic(1, **{"cleanup.policy": "compact"})
    queries.read("a", {topic: {"0": 0}}, {"gone": {"0": 0}})
    with pytest.raises(BrokerError, match="Unknown topic or partition"):
        made.collect()

    found = told(box)["a"]
    assert (found["latest"], found["retention_seconds"]) == ({topic: {"0": 0}}, {})
    assert "error" not in found, "the broker is not dead"


def test_without_a_broker_the_reason_is_told():
    box, made = collector(reading())
    began = time.time()
    made.collect()
    found = told(box)["a"]
    assert (found["error"], found["run_id"]) == ("connection refused", "a-run-1")
    assert began - 1 <= found["unreachable_since"] <= time.time()


class Answering(BrokerProxy):
    """Says of each topic what is asked; its settings are the next of these, if any are left."""

    def __init__(self, *settings):
        super().__init__(lambda: KafkaClient("127.0.0.1:1"))
        self.settings = list(settings)

    def ask(self, question, *args, **limits):
        ends = {topic: {str(partition): 9} for topic, partition in question["partitions"]}
        settings = {topic: {"cleanup.policy": "delete"} for topic in question["settings"]}
        if self.settings and settings:
            settings = dict.fromkeys(settings, self.settings.pop(0))
        return {"latest": ends, "earliest": ends, "refused": [], "reason": "", "settings": settings}


def test_topics_that_come_and_go_leave_nothing_behind():
    queries = Queries()
    made = KafkaCollector(queue(), queries.runs, Answering())
    for number in range(5):
        queries.read(f"query_{number}", {f"topic_{number}": {"0": 4}})
        made.collect()
        queries.end(f"query_{number}")

    assert list(made._settings) == ["topic_4"]


def test_a_question_is_given_up_at_once_when_the_collector_ends():
    box, made = collector(reading())
    look = threading.Thread(target=made.collect)
    look.start()
    made.close()
    look.join(60)
    assert not look.is_alive() and told(box) == {}  # a question that went on would tell why it was in vain


def ended() -> Queries:
    queries = reading()
    queries.end("a")
    return queries


def no_number() -> Queries:
    queries = Queries()
    queries.read("a", {"t": {"x": 0}})
    return queries


@cases(
    "queries",
    ("no query", Queries()),
    ("a query that ended", ended()),
    ("other sources", reading(description="transactions embedded")),
    ("no number of a partition", no_number()),
)
def test_nobody_is_asked_when_no_query_reads_kafka(queries):
    KafkaCollector(queue(), queries.runs, asks(lambda: pytest.fail("asked"))).collect()


@cases(
    "connect, message",
    ("addresses that are none", lambda: KafkaClient("nonsense"), "not a list of Kafka servers"),
    ("no library", None, r"kafka_servers needs confluent-kafka: install ledgerops\[kafka\]"),
)
def test_settings_that_cannot_work_are_told(connect, message, monkeypatch, tmp_path):
    if connect is None:
        (tmp_path / "confluent_kafka").mkdir()  # one without the module that is needed
        (tmp_path / "confluent_kafka" / "__init__.py").write_text("")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = KafkaCollector(queue(), reading().runs, asks(connect or (lambda: NOBODY)))
    with pytest.raises(UserError, match=message):
        made.collect()


def test_settings_that_cannot_work_cost_one_process_for_several_questions_and_are_read_again_for_the_next():
    settings = [KafkaClient("127.0.0.1:1", {"no.such.option": "x"}), NOBODY]
    broker = asks(lambda: settings.pop(0))
    question = {"ask": "offsets", "partitions": [], "settings": []}
    for _ in range(MAX_FAILED_REQUESTS):
        with pytest.raises(UserError, match=r"no\.such\.option"):
            broker.ask(question)
    assert settings == [NOBODY]
    assert broker.ask(question)["latest"] == {}


def test_a_retention_that_cannot_be_read_for_once_stays_as_it_was():
    broker, box = Answering({"cleanup.policy": "delete", "retention.ms": "60000"}, {}), queue()
    made = KafkaCollector(box, reading().runs, broker)
    for _ in range(2):
        made.collect()
        made._settings = {topic: (0.0, known) for topic, (_, known) in made._settings.items()}  # due again
        assert told(box)["a"]["retention_seconds"] == {"t": 60.0}
    assert broker.settings == []


@cases(
    "withheld, reason, useful",
    ("a partition without a leader", [("t", "1", "Leader not available")], "Leader not available", True),
    ("no answer for one", [], "timed out", False),
)
def test_what_the_broker_cannot_say_is_its_answer_and_no_reason_for_another_process(withheld, reason, useful):
    class Partly(Answering):
        def ask(self, question, given_up):
            answer = {**super().ask(question, given_up), "withheld": withheld, "reason": "timed out"}
            return answer | {end: {"t": {"0": 5}} for end in ("latest", "earliest")}

        def note_answer(self, useful):
            noted.append(useful)

    noted, box, queries = [], queue(), Queries()
    queries.read("a", {"t": {"0": 0, "1": 0}})
    KafkaCollector(box, queries.runs, Partly()).collect()
    assert told(box)["a"]["error"] == f"1 of 2 partitions: {reason}"
    assert noted == [useful]


def test_an_answer_is_read_back_as_it_was_written():
    offsets = {"latest": {"t": {"0": 5}}, "earliest": {"t": {"0": 2}}}
    retention = {"retention_seconds": {"t": 60.0}}
    heads = build(Heads, {"run_id": "r", **offsets, **retention, "seconds": 0.5, "topic_ids": {"t": "i"}}, at=T0)
    assert (heads.at, heads.latest, heads.earliest) == (T0, {("t", "0"): 5}, {("t", "0"): 2})
    assert heads.retention_seconds == {"t": 60.0}
    assert (heads.seconds, heads.error, heads.topic_ids) == (0.5, None, {"t": "i"})


def test_a_look_in_vain_is_read_back_too_and_nonsense_is_refused():
    heads = build(Heads, {"run_id": "r", "error": "timed out", "unreachable_since": T0}, at=T0 + 9)
    assert (heads.error, heads.unreachable_since, heads.latest) == ("timed out", T0, {})
    with pytest.raises(BadRecord, match="expected a number"):
        build(Heads, {"run_id": "r", "retention_seconds": {"t": "long"}}, at=T0)


def test_a_process_that_takes_nothing_holds_up_neither_a_question_nor_the_end():
    broker = asks(lambda: NOBODY)
    with pytest.raises(BrokerError):
        broker.ask({"ask": "nonsense"})
    process = broker._begin()
    os.kill(process.pid, signal.SIGSTOP)
    partitions = [["a-topic-with-a-long-name", number] for number in range(10_000)]  # more than a pipe holds
    question = {"ask": "offsets", "partitions": partitions, "settings": []}
    began = time.monotonic()
    raised = []

    def ask():
        with pytest.raises(BrokerError) as caught:
            broker.ask(question, seconds=60.0)
        raised.append(caught.value)

    asking = threading.Thread(target=ask)
    asking.start()
    while broker._process is process and not broker._lock.locked():
        time.sleep(0.01)
    broker.close()
    asking.join(60)

    assert len(raised) == 1 and time.monotonic() - began < 60
    with pytest.raises(BrokerError, match="the observer is closed"):
        broker.ask(question)


def test_a_process_that_dies_is_no_dead_broker_and_is_followed_by_another(monkeypatch):
    box, made = collector(reading())
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        with pytest.raises(BrokerError, match="the Kafka client process failed: "):
            made.collect()
    assert told(box) == {}
    made.collect()
    assert told(box)["a"]["error"] == "connection refused"


def test_a_folder_of_the_job_cannot_get_in_the_way(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    box, made = collector(reading())
    made.collect()
    assert told(box)["a"]["error"] == "connection refused"


def test_an_application_without_an_interpreter_is_told(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(UserError, match="kafka_servers needs a Python interpreter, and this application has none"):
        asks(lambda: NOBODY).ask({"ask": "offsets", "partitions": [], "settings": []})


def test_a_question_that_waited_for_another_has_all_of_its_time(monkeypatch):
    """Its time must not be over when its turn comes: that would end the process that answers both."""
    clock, proxy = [100.0], asks(lambda: pytest.fail("not asked"))

    class Taken:
        def acquire(self, timeout):
            clock[0] += timeout - 0.1
            return True

        def release(self):
            pass

    monkeypatch.setattr(proxy, "_lock", Taken())
    monkeypatch.setattr(proxy, "_asked", lambda question, end, given_up: {"left": end - clock[0]})
    monkeypatch.setattr("ledgerops.agent.kafka_proxy.time.monotonic", lambda: clock[0])

    assert proxy.ask({"what": "heads"}, seconds=3.0)["left"] > 6.0
    monkeypatch.undo()
