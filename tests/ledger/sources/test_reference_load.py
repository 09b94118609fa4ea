"""Reference data on librdkafka's own broker; a real one and a real Postgres are in tests/cli/test_topics.py."""

import pyarrow as pa
import pytest

from ledgerops.common.kafka import KafkaClient
from ledgerops.errors import UserError
from ledgerops.ledger.sources.reference_load import to_kafka
from tests.tables import cases

ROWS = 3_000
CUSTOMERS = pa.table({"customer_id": [f"C{number:08}" for number in range(ROWS)]})


def client(**options):
    return KafkaClient("mock:9092", {"test.mock.num.brokers": "1", **options})


@cases(
    "options",
    ("all in the queue at once", {}),
    ("more than the queue holds", {"queue.buffering.max.messages": "1000", "test.mock.broker.rtt": "50"}),
)
def test_all_rows_are_taken(options):
    taken = []
    to_kafka(client(**options), "", {"customers": CUSTOMERS}, taken.append)
    assert sum(taken) == ROWS


def test_a_broker_that_takes_nothing_is_told_once_the_first_record_was_given_up():
    full = {"queue.buffering.max.messages": "1000", "test.mock.broker.rtt": "60000"}
    with pytest.raises(UserError, match=r"^mock:9092 rejected \d+ records; the first: topic Bank\.customers: "):
        to_kafka(client(**full), "Bank.", {"customers": CUSTOMERS}, lambda rows: None, seconds=2.0)
