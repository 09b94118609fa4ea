"""Ad events: columns, shares, the same from any source."""

from collections import Counter

import pyarrow as pa
import pytest

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.sources.ads import AD_TYPES, EVENT_TYPES, SCHEMA, ad_events, campaigns

ROWS = 60_000


@pytest.fixture(scope="module")
def transactions():
    plan = parse_plan("phases: [{shape: constant, rate: 100}]\npartitions: {count: 1}\n")
    return pa.Table.from_batches(Generator(plan, 1.7e9).batches(0, 0, ROWS)).combine_chunks().to_batches()[0]


def of(*transaction_ids):
    row = {**dict.fromkeys(arrow.TRANSACTIONS.names), "customer_id": "C1", "account_id": "A1"}
    rows = [{**row, "transaction_id": each} for each in transaction_ids]
    return ad_events(pa.RecordBatch.from_pylist(rows, schema=arrow.TRANSACTIONS)).to_pylist()


def test_an_event_is_its_customers_on_its_accounts_page_at_its_time(transactions):
    events = ad_events(transactions)

    events.validate(full=True)
    assert events.schema == SCHEMA
    assert events.column("user_id") == transactions.column("customer_id")
    assert events.column("event_time") == transactions.column("event_time")
    assert events.column("page_id")[0].as_py() == f"page-{transactions.column('account_id')[0].as_py()}"


def test_what_becomes_of_a_transaction_does_not_change_from_release_to_release():
    [event] = of("T0000000001")
    assert [event[name] for name in ("ad_id", "ad_type", "event_type")] == ["AD0266", "mail", "purchase"]


def test_ads_types_and_events_are_equally_frequent_and_independent(transactions):
    events = ad_events(transactions).to_pylist()

    ads = Counter(event["ad_id"] for event in events)
    assert sorted(ads) == [f"AD{number:04}" for number in range(1, 1001)]
    assert max(ads.values()) < 2 * ROWS / 1000
    kinds = Counter((event["ad_type"], event["event_type"]) for event in events)
    assert set(kinds) == {(ad_type, event_type) for ad_type in AD_TYPES for event_type in EVENT_TYPES}
    assert all(abs(count - ROWS / 15) < 0.1 * ROWS / 15 for count in kinds.values())
    first_ten = Counter(event["event_type"] for event in events if event["ad_id"] <= "AD0010")
    assert all(150 < first_ten[kind] < 250 for kind in EVENT_TYPES)


def test_an_event_depends_on_the_id_alone_and_not_on_its_neighbours(transactions):
    whole = ad_events(transactions).to_pylist()
    assert ad_events(transactions.slice(1000, 500)).to_pylist() == whole[1000:1500]
    assert ad_events(transactions.slice(ROWS, 0)).num_rows == 0


@pytest.mark.spark
def test_ten_ads_of_following_numbers_make_a_campaign(spark):
    assert [tuple(row) for row in campaigns(spark).orderBy("ad_id").collect()] == [
        (f"AD{ad:04}", f"CM{(ad + 9) // 10:03}") for ad in range(1, 1001)
    ]
