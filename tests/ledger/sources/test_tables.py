import time

import pytest
from pyspark.sql.types import StructType

from ledgerops.ledger.plan.plan import load_plan
from ledgerops.ledger.plan.schemas import AD_EVENTS
from ledgerops.ledger.run.source import choose_source, read_source_heads
from ledgerops.ledger.sources import tables
from ledgerops.ledger.sources.replay import COLUMNS
from tests.ledger.sources.reference import write_reference
from tests.ledger.sources.streams import to_memory


@pytest.fixture
def bank(tmp_path):
    """A data folder: three customers, thirty transactions and one bad row in each file."""
    folder = tmp_path / "data"
    write_reference(folder, ["C0", "C1", "C2"], ["A0"])
    with (folder / "customers.csv").open("a") as file:
        file.write("C3,Female\n")
    rows = [f"T{n},A{n},Credit,,1.10,0.00,,2013-01-01T00:00:{n:02},C{n % 3}" for n in range(30)]
    text = "\n".join([",".join(COLUMNS), *rows, "T30,A1,Credit,,much,0.00,,2013-01-01T00:00:00,C1"])
    (folder / "transactions.csv").write_text(text + "\n")
    return folder


def test_a_replay_ends_where_its_files_do_also_that_of_ad_events(bank, tmp_path):
    source = choose_source("replay", environ={"LEDGEROPS_DATA": str(bank)})
    heads = read_source_heads(source, {"ad_events", "customers"}, tmp_path / "work")
    assert sum(heads.pop(("transactions", str(partition))) for partition in range(5)) == 30
    assert heads == {("customers", "0"): 3}


@pytest.fixture
def replay(spark, bank, tmp_path):
    """Opens a table of the bank's data as a stream."""
    given = {"data": bank, "work_dir": tmp_path / "work", "origin": 0.0}
    return lambda table, **options: tables.open_source(spark, table, **{**given, **options})


def ids(frame, column, name):
    return [row[column] for row in to_memory(frame, name)]


@pytest.mark.spark
def test_a_replay_streams_every_table(replay):
    transactions, events = replay("transactions", max_rows_per_trigger=20), replay("ad_events")
    assert sorted(ids(transactions, "transaction_id", "replayed")) == sorted(f"T{n}" for n in range(30))
    assert sorted(ids(events, "page_id", "replayed_ads")) == sorted(f"page-A{n}" for n in range(30))
    assert events.schema == StructType.fromDDL(AD_EVENTS)
    assert sorted(ids(replay("customers"), "customer_id", "real_customers")) == ["C0", "C1", "C2"]


@pytest.mark.spark
def test_the_embedded_source_streams_ad_events_of_its_transactions(spark):
    events = tables.open_source(spark, "ad_events", plan=load_plan("default"), origin=time.time() - 600, limit=500)
    assert events.schema == StructType.fromDDL(AD_EVENTS)
    assert set(ids(events, "event_type", "embedded_ads")) == {"view", "click", "purchase"}


@pytest.mark.spark
def test_embedded_transactions_name_only_customers_that_arrive(spark, tmp_path):
    given = {"plan": load_plan("default"), "work_dir": tmp_path, "origin": time.time() - 600}
    seen = ids(tables.open_source(spark, "transactions", **given, limit=2000), "customer_id", "embedded")
    known = ids(tables.open_source(spark, "customers", **given), "customer_id", "invented")
    assert len(seen) == 2000
    assert len(known) == len(set(known))
    assert set(seen) <= set(known)


@pytest.mark.spark
def test_customers_arrive_at_their_rate(replay):
    early = replay("customers", origin=time.time() - 1.5e6, rate=1e-6)
    assert ids(early, "customer_id", "early") == ["C0"]
