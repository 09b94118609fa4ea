"""The processor of enriched_transactions in memory, without a JVM: what it keeps and hands on, batch by batch."""

import random

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ledgerops.ledger.jobs.enriched_transactions import MAX_PAIRS_PER_CUSTOMER, Enrichment
from tests.tables import cases

GROUP = (7,)
WAIT_SECONDS = 60
Input = Row("group", "customer_id", "text", "updated_at")


class Batches:
    """Batches of one group of customers: each is given as rows and gives (transaction, customer) pairs, sorted."""

    def __init__(self, wait=WAIT_SECONDS):
        self.processor = Enrichment(wait)
        self.tester = TwsTester(self.processor, timeMode="ProcessingTime")

    def at(self, second):
        """Moves the clock and lets timers expire."""
        return _pairs(self.tester.setProcessingTime(second * 1000))

    def take(self, *rows):
        return _pairs(self.tester.test(GROUP, list(rows)))


def _pairs(rows):
    return sorted((row.transaction, row.customer) for row in rows)


def transaction(text, customer_id="C1"):
    return Input(7, customer_id, text, None)


def version(text, updated_at=1, customer_id="C1"):
    return Input(7, customer_id, text, updated_at)


def test_what_began_to_wait_with_a_shorter_wait_is_handed_on_after_the_longer_one():
    batches = Batches(wait=10)
    batches.take(transaction("t1"))
    batches.processor.wait = 60_000
    assert batches.at(11) == []
    assert batches.at(61) == [("t1", None)]


@cases(
    "others",
    ("few customers, read together", 3),
    ("many customers, asked for one by one", 40 * MAX_PAIRS_PER_CUSTOMER),
)
@pytest.mark.parametrize("seed", range(5))
def test_every_transaction_comes_out_once_with_the_newest_version_that_has_arrived_or_after_its_wait(others, seed):
    """Of two equally old versions the later to arrive counts; a version that comes after the wait changes nothing."""
    draw = random.Random(seed)
    batches = Batches()
    batches.take(*(version(f"v{n}", customer_id=f"X{n}") for n in range(others)))
    newest = {}
    waiting = {}
    second = sent = 0
    for _ in range(40):
        second += draw.randrange(1, 30)
        expected = [(text, None) for text, (_, since) in waiting.items() if since + WAIT_SECONDS <= second]
        waiting = {text: held for text, held in waiting.items() if held[1] + WAIT_SECONDS > second}
        assert batches.at(second) == sorted(expected), second
        rows = []
        for _ in range(draw.randrange(1, 8)):
            customer_id = f"C{draw.randrange(12)}"
            sent += 1
            if draw.random() < 0.2:
                rows.append(version(f"v{sent}", draw.randrange(9), customer_id))
                if rows[-1].updated_at >= newest.get(customer_id, ("", -1))[1]:
                    newest[customer_id] = (rows[-1].text, rows[-1].updated_at)
            else:
                rows.append(transaction(f"t{sent:04}", customer_id))
                waiting[rows[-1].text] = (customer_id, second)
        expected = [(text, newest[customer][0]) for text, (customer, _) in waiting.items() if customer in newest]
        waiting = {text: held for text, held in waiting.items() if held[0] not in newest}
        assert batches.take(*rows) == sorted(expected), second
