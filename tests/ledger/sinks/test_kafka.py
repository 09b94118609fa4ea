"""Jobs that write to a real broker."""

import json
import uuid
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.ledger.jobs import customer_activity, late_transactions, split_transactions
from ledgerops.ledger.sinks import KafkaSink
from ledgerops.ledger.sinks.kafka import TOPIC_PARTITIONS
from tests import topics
from tests.ledger.jobs.feed import transaction

pytestmark = pytest.mark.spark


@pytest.fixture
def prefix():
    return f"test-{uuid.uuid4().hex[:8]}."


def records(kafka, topic):
    """Partition, key and value of all there is in a topic."""
    found = topics.read(kafka.servers, topic, TOPIC_PARTITIONS)
    parsed = partial(json.loads, parse_float=Decimal)
    return [(place, key, parsed(value)) for place, those in found.items() for key, value in those]


def ids(found):
    return Counter(value["transaction_id"] for _, _, value in found)


def test_rows_go_to_the_topics_of_their_route_and_a_repeated_batch_is_sent_again_but_not_lost(feed, kafka, prefix):
    case, sink = feed(split_transactions.JOB), KafkaSink(kafka.client, prefix)
    debit = transaction("d", "10:00:00.000001", "C7", type="Debit", amount=Decimal("12345678901234.50"))
    runs = [[[transaction("a", "10:00"), debit], [transaction("b", "10:01")]], [[transaction("c", "10:02")]]]
    case.run_each(runs, repeat=True, sink=sink)

    [(_, key, value)] = records(kafka, f"{prefix}transactions.debits")
    made = reach(kafka.client).list_topics(timeout=10).topics[f"{prefix}transactions.debits"]
    assert (len(made.partitions), key) == (5, b"C7")
    assert value == debit | {"event_time": "2024-03-01T10:00:00.000001Z"}
    credit = records(kafka, f"{prefix}transactions.credits")
    assert ids(credit) == {"a": 1, "b": 2, "c": 1}


def test_updates_bear_the_key_that_they_replace_and_the_last_record_is_the_newest(feed, kafka, prefix):
    job = replace(customer_activity.JOB, transform=partial(customer_activity.transform, least=1))
    case = feed(job)
    case.add(*([transaction(f"{n}{m}", "10:00", f"C{m}") for m in range(3)] for n in range(3)))

    case.run(sink=KafkaSink(kafka.client, prefix))

    found = records(kafka, f"{prefix}customer_activity")
    newest = {key: value["transactions"] for _, key, value in found}
    assert newest == {b"C0": 3, b"C1": 3, b"C2": 3}
    assert len({(key, partition) for partition, key, _ in found}) == 3 < len(found)


def test_a_job_that_looks_at_its_batches_sends_each_to_the_topic_it_chose(feed, kafka, prefix):
    case = feed(late_transactions.JOB)
    case.add([transaction("a", "10:00")], [transaction("b", "10:30")], [transaction("late", "09:00")])
    case.run(sink=KafkaSink(kafka.client, prefix))
    assert ids(records(kafka, f"{prefix}transactions.on_time")) == {"a": 1, "b": 1}
    assert ids(records(kafka, f"{prefix}transactions.late")) == {"late": 1}


def test_a_broker_that_is_away_is_told_before_the_query_starts(feed):
    case = feed(split_transactions.JOB)
    with pytest.raises(UserError, match=r"^cannot reach Kafka at 127\.0\.0\.1:1: "):
        case.run(sink=KafkaSink(KafkaClient("127.0.0.1:1")))
    assert not (case.checkpoint / "offsets").exists()
