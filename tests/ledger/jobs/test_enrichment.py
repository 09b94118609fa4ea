"""The processor of enriched_transactions in memory, without a JVM: what it keeps and hands on, batch by batch."""

import random

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ledgerops.ledger.jobs.enriched_transactions import MAX_PAIRS_PER_CUSTOMER, Enrichment

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


def test_a_transaction_waits_for_its_own_customer_only():
    batches = Batches()

    assert batches.take(transaction("t1"), transaction("t2", "C2")) == []
    assert batches.take(version("Jones", customer_id="C2"), transaction("t3", "C2")) == [
        ("t2", "Jones"), ("t3", "Jones"),
    ]  # fmt: skip
    assert batches.take(version("Smith")) == [("t1", "Smith")]
    assert batches.take(transaction("t4")) == [("t4", "Smith")]
    assert batches.at(1_000) == []


def test_of_two_equally_old_versions_the_later_to_arrive_counts_and_an_older_one_does_not():
    batches = Batches()

    assert batches.take(version("old", 1), version("new", 3), version("middle", 2), transaction("t1")) == [
        ("t1", "new")
    ]  # fmt: skip
    assert batches.take(version("older", 2), transaction("t2")) == [("t2", "new")]
    assert batches.take(version("equal", 3), transaction("t3")) == [("t3", "equal")]


def test_each_transaction_waits_as_long_as_any_other_and_is_handed_on_once():
    batches = Batches()
    batches.at(10)
    batches.take(transaction("t1"), transaction("t2", "C2"))
    batches.at(40)
    batches.take(transaction("t3"))

    assert batches.at(69) == []
    assert batches.at(71) == [("t1", None), ("t2", None)]
    assert batches.take(version("Jones", customer_id="C2")) == []
    assert batches.at(99) == []
    assert batches.at(101) == [("t3", None)]
    assert batches.at(1_000) == []


def test_what_began_to_wait_with_a_shorter_wait_is_handed_on_after_the_longer_one():
    batches = Batches(wait=10)
    batches.take(transaction("t1"))
    batches.processor.wait = 60_000

    assert batches.at(11) == []
    assert batches.at(61) == [("t1", None)]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param(3, id="few customers, read together"),
        pytest.param(40 * MAX_PAIRS_PER_CUSTOMER, id="many customers, asked for one by one"),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_every_transaction_comes_out_once_with_the_newest_version_that_has_arrived(others, seed):
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
