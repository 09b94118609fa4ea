import pytest

from ledgerops.ledger.jobs.dedup_transactions import JOB
from ledgerops.ledger.run.start import IN_MEMORY, ROCKSDB
from tests.ledger.jobs.feed import transaction

pytestmark = pytest.mark.spark


def stores(progress):
    """The state store of each batch."""
    metrics = [batch["stateOperators"][0]["customMetrics"] for batch in progress]
    return [ROCKSDB if any(name.startswith("rocksdb") for name in each) else IN_MEMORY for each in metrics]


@pytest.mark.parametrize(("first", "then"), [(ROCKSDB, IN_MEMORY), (IN_MEMORY, ROCKSDB)])
def test_a_checkpoint_keeps_the_state_store_that_it_began_with(feed, first, then):
    case = feed(JOB)
    case.add([transaction("t1", "10:00"), transaction("t2", "10:00")])
    before = case.run(provider=first)
    case.add([transaction("t1", "10:00"), transaction("t3", "10:00")])
    after = case.run(provider=then)

    assert {*stores(before), *stores(after)} == {first}
    assert case.rows("transaction_id") == [("t1",), ("t2",), ("t3",)]
