"""`ledgerops topics` against a real broker and a real Postgres."""

import json
import shlex
import socket
import time
from functools import partial

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic

from ledgerops.cli import main
from ledgerops.common.kafka import reach
from ledgerops.ledger.sources.topics import TOPICS
from tests.ledger.sources.reference import write_reference
from tests.postgres import asked
from tests.topics import make as make_topics

broker = pytest.mark.spark  # a JVM, though not Spark's


@pytest.fixture(autouse=True)
def _no_data(monkeypatch):
    monkeypatch.delenv("LEDGEROPS_DATA", raising=False)


@pytest.fixture
def prefix(topic):
    """A prefix of this test's own."""
    return f"{topic}."


@pytest.fixture
def topics(kafka, prefix, ledgerops):
    return partial(ledgerops, "topics", "--bootstrap-servers", kafka.servers, "--prefix", prefix)


@pytest.fixture
def make(kafka, prefix):
    """Makes one topic by hand."""
    admin = reach(kafka.client)

    def make(name, partitions, policy="delete"):
        make_topics(admin, NewTopic(prefix + name, partitions, config={"cleanup.policy": policy}))

    return make


@pytest.fixture
def database(postgres):
    """The URL of a new database."""
    name = f"d{time.time_ns()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://ledger:secret@127.0.0.1:{postgres.port}/{name}"


@pytest.fixture
def reference(tmp_path):
    """A folder with four customers and three accounts."""
    write_reference(tmp_path / "data", ["C1", "C2", "C3", "C4"], ["A1", "A2", "A3"], seed=5)
    return tmp_path / "data"


def compacted(kafka, topic):
    """What is left of a topic when each key keeps its last record."""
    consumer = Consumer(kafka.client.librdkafka(**{"group.id": "test", "enable.partition.eof": True}))
    kept = {}
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            kept[message.key().decode()] = json.loads(message.value())
        assert message is not None
    finally:
        consumer.close()
    return kept


@broker
def test_all_topics_are_made_as_they_must_be_and_a_second_time_left_alone(topics, kafka, prefix):
    assert topics() == (0, f"topics at {kafka.servers}: 7 created, 0 already present\n", "")
    assert topics() == (0, f"topics at {kafka.servers}: 0 created, 7 already present\n", "")

    admin = reach(kafka.client)
    listed = admin.list_topics(timeout=10).topics
    asked = [ConfigResource(ConfigResource.Type.TOPIC, prefix + topic.name) for topic in TOPICS]
    policies = {
        each.name: done.result(10)["cleanup.policy"].value for each, done in admin.describe_configs(asked).items()
    }
    assert {name: (len(listed[name].partitions), policies[name]) for name in policies} == {
        f"{prefix}transactions": (5, "delete"),
        f"{prefix}customers": (1, "compact"),
        f"{prefix}accounts": (1, "compact"),
        f"{prefix}transactions.debits": (5, "delete"),
        f"{prefix}transactions.credits": (5, "delete"),
        f"{prefix}ad_events": (5, "delete"),
        f"{prefix}dead_letters": (1, "delete"),
    }


@broker
def test_a_check_says_what_is_missing_and_makes_nothing(topics, make, prefix):
    make("customers", 1, "compact")

    for _ in range(2):
        told = topics("--check")
        assert (told.code, told.err) == (1, "")
        assert told.lines[:2] == [
            f"missing  {prefix}transactions  5 partitions, transactions, by customer_id",
            f"present  {prefix}customers  1 partition, customers, by customer_id",
        ]
    topics()
    assert topics("--check").code == 0


@broker
@pytest.mark.parametrize(
    ("name", "partitions", "line"),
    [
        ("transactions", 3, "has 3 partitions, expected 5; delete it and run ledgerops topics"),
        (
            *("accounts", 1),
            "has cleanup.policy delete, expected compact; set it (kafka-configs --alter --topic {}accounts "
            "--add-config cleanup.policy=compact)",
        ),
    ],
    ids=["a wrong number of partitions", "a wrong cleanup policy"],
)
def test_a_topic_that_is_not_as_it_must_be_is_one_line(topics, make, prefix, name, partitions, line):
    make(name, partitions)
    refused = (2, "", f"ledgerops: topic {prefix}{name} {line.format(prefix)}, or use another --prefix\n")
    assert (topics(), topics("--check")) == (refused, refused)


@broker
def test_a_topic_that_is_compacted_and_shortened_is_left_alone(topics, make):
    make("customers", 1, "compact,delete")
    assert topics().code == 0


@broker
def test_more_replicas_than_brokers_is_one_line(refusal, kafka, prefix):
    line = refusal("topics", "--bootstrap-servers", kafka.servers, "--prefix", prefix, "--replication", "3")
    assert line.startswith("cannot create topic ")
    assert "replica" in line


@broker
def test_reference_data_are_loaded_into_both_and_loading_again_changes_nothing(
    topics, kafka, prefix, database, reference
):
    loaded = "loaded 4 customers and 3 accounts into"
    where = database.replace(":secret", "")
    for made, there in ((7, 0), (0, 7)):
        assert topics("--data", reference, "--postgres", database) == (
            0,
            f"topics at {kafka.servers}: {made} created, {there} already present\n"
            f"{loaded} {kafka.servers}\n{loaded} {where}\n",
            "",
        )
        customers, accounts = (compacted(kafka, prefix + name) for name in ("customers", "accounts"))
        assert (sorted(customers), sorted(accounts)) == (["C1", "C2", "C3", "C4"], ["A1", "A2", "A3"])
        for kept, table, key in ((customers, "customers", "customer_id"), (accounts, "accounts", "account_id")):
            found = asked(database, f"SELECT {key}, to_jsonb({table}) FROM {table}")
            assert {each: {**row, "updated_at": None} for each, row in found} == {
                each: {**row, "updated_at": None} for each, row in kept.items()
            }
    day = asked(database, "SELECT updated_at::text FROM customers WHERE customer_id = 'C1'")[0][0][:10]
    assert customers["C1"]["updated_at"] == f"{day}T00:00:00.000000Z"


@broker
def test_a_changed_customer_replaces_the_old_one(topics, kafka, prefix, database, reference):
    topics("--data", reference, "--postgres", database)
    write_reference(reference, ["C1"], [], seed=6)
    topics("--data", reference, "--postgres", database)

    last = compacted(kafka, f"{prefix}customers")["C1"]["last"]
    assert asked(database, "SELECT last FROM customers WHERE customer_id = 'C1'") == [(last,)]
    assert asked(database, "SELECT count(*) FROM customers") == [(4,)]


@broker
def test_a_plan_invents_the_customers_that_its_transactions_name(topics, kafka, prefix, tmp_path):
    plan = tmp_path / "small.yaml"
    plan.write_text("seed: 7\nphases:\n  - {shape: constant, rate: 1}\nkeys: {customers: 20, accounts: 30}\n")

    told = topics("--plan", plan)

    assert told.code == 0
    assert told.out.endswith(f"loaded 20 customers and 30 accounts into {kafka.servers}\n")
    assert sorted(compacted(kafka, f"{prefix}accounts"))[0] == "A00000001"


@broker
def test_bad_rows_are_told_and_the_good_ones_loaded(topics, kafka, reference):
    file = reference / "accounts.csv"
    file.write_text(file.read_text().replace("A2,", "A2,x", 1))

    told = topics("--data", reference)

    assert told.code == 0
    assert told.out.endswith(f"loaded 4 customers and 2 accounts into {kafka.servers}\n")
    assert told.err.startswith(f"rejected {file}:3: district_id 'x")


@broker
def test_a_database_that_does_not_answer_is_one_line_without_the_password(topics, reference):
    told = topics("--data", reference, "--postgres", "postgresql://ledger:secret@127.0.0.1:1/ledger")

    assert told.code == 2
    assert told.err.startswith("ledgerops: cannot load the reference data into postgresql://ledger@127.0.0.1:1/ledger:")
    assert "refused" in told.err
    assert "secret" not in told.err
    assert told.err.count("\n") == 1


REFUSED = {
    # what is no URL is not quoted
    "--data data --postgres postgresql://u:sec@ret@h/d": (
        "not the URL of a database; write postgresql://user:password@host:port/database"
    ),
    "--postgres postgresql://h/d": "nothing to load into Postgres; give --data FOLDER or --plan PLAN",
    "--prefix 'a b'": "invalid topic prefix: 'a b'; use letters, digits, dots, hyphens and underscores",
}


@pytest.mark.parametrize(("argv", "line"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_done_is_refused_before_a_broker_is_asked(refusal, reference, argv, line):
    assert refusal("topics", "--bootstrap-servers", "127.0.0.1:1", *shlex.split(argv)) == line


def test_a_refused_connection_is_one_line_within_ten_seconds(capfd):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{free.getsockname()[1]}"
        began = time.monotonic()

        assert main(["topics", "--bootstrap-servers", servers]) == 2

    assert time.monotonic() - began < 10
    assert capfd.readouterr() == ("", f"ledgerops: cannot reach Kafka at {servers}: connection refused\n")
