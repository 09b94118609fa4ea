"""What is told of the state of real queries, against what the rows say that it must hold."""

import json
import re
import shutil
import time
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import count, islice

import pytest

from ledgerops.checkpoint.columns import hashed
from ledgerops.checkpoint.listing import listing
from ledgerops.checkpoint.reader import open_checkpoint
from ledgerops.checkpoint.state_rows import temporary_conf
from ledgerops.checkpoint.summary import Selection, summarize
from ledgerops.cli import main
from ledgerops.errors import UserError
from ledgerops.ledger.jobs import dedup_transactions
from ledgerops.ledger.run.start import start
from ledgerops.ledger.sinks import ParquetSink
from tests.checkpoint.made import ACCOUNTS, BATCHES, MADE, ROCKSDB, ROWS, at, make
from tests.ledger.jobs.feed import Feed, transaction
from tests.ledger.jobs.oracle import ask
from tests.programs import until
from tests.refusals import refusal_of

pytestmark = pytest.mark.spark

VARIANTS = {"counts_snapshots", "counts_hdfs", "pairs_hdfs", "pairs_v3", "numbered_v3"}  # of what another query shows


def named(*names):
    """Parameters of these names; variants are left to the longer run."""
    return [pytest.param(name, marks=[pytest.mark.e2e] if name in VARIANTS else []) for name in names]


STATEFUL = named(*(name for name in MADE if name != "stateless"))
ALL_ROWS = [row for batch in BATCHES for row in batch]


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """Each query's checkpoint and progress, made when first asked for."""
    return cache(lambda name: make(spark, name, tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="module")
def copied(made, tmp_path_factory):
    """A copy of a query's checkpoint, and what it looked like: nobody else, as the maintenance of the query that wrote
    it, is at work there."""

    @cache
    def get(name):
        copy = tmp_path_factory.mktemp(name) / "checkpoint"
        shutil.copytree(made(name)[0], copy)
        return copy, prints(copy)

    return get


@pytest.fixture(scope="module")
def look(spark, copied):
    """What is told of a query's state."""
    return cache(lambda name, **wanted: summarize(copied(name)[0], Selection(**wanted), spark))


@pytest.fixture
def spoilt(made, tmp_path):
    """A copy of a query's checkpoint for a case to spoil."""

    def get(name):
        shutil.copytree(made(name)[0], tmp_path / "checkpoint")
        return tmp_path / "checkpoint"

    return get


def only(document, store=None):
    [operator] = document["operators"]
    return next(one for one in operator["stores"] if store in (None, one["store"]))


def words(text):
    return re.findall(r"\w+", text)


def prints(folder):
    """Each file and folder below, with its time and content."""
    paths = [folder, *folder.rglob("*")]
    return {path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None) for path in paths}


@pytest.mark.parametrize("name", STATEFUL)
def test_the_rows_of_the_newest_batch_are_those_of_its_metric(name, made, look):
    told, newest = look(name), made(name)[1][-1]
    assert told["batch"] == newest["batchId"]
    metric = {one["operatorName"]: one["numRowsTotal"] for one in newest["stateOperators"]}
    assert {one["name"]: one["rows"] for one in told["operators"]} == metric


def test_the_rows_of_an_earlier_batch_are_those_of_its_metric(made, look):
    progress = made("dedup")[1]
    for batch in (0, 2):
        [operator] = look("dedup", batch=batch, top=0)["operators"]
        assert operator["rows"] == progress[batch]["stateOperators"][0]["numRowsTotal"]


@pytest.mark.parametrize("name", named("counts", "counts_snapshots", "pairs_hdfs", "pairs_v3", "notes"))
def test_a_checkpoint_is_not_touched(name, copied, look):
    copy, before = copied(name)
    look(name)
    assert prints(copy) == before


@pytest.mark.parametrize("name", named("pairs", "pairs_v3", "notes", "two"))
def test_operators_and_stores_are_those_that_spark_tells(name, made, spark):
    path = made(name)[0]
    told = spark.read.format("state-metadata").load(str(path)).collect()
    pairs = [(operator, store) for operator in open_checkpoint(path).operators for store in operator.stores]
    found = [(operator.id, operator.name, store, operator.partitions) for operator, store in pairs]
    assert found == sorted((row.operatorId, row.operatorName, row.stateStoreName, row.numPartitions) for row in told)


@pytest.mark.parametrize("name", named("counts", "counts_snapshots", "counts_hdfs"))
def test_a_windowed_count_holds_a_row_for_each_customer_whatever_the_provider(name, look):
    store = only(look(name, top=10, rows=7, show_keys=True))
    wanted = ask("SELECT customer_id, count(*), sum(amount) FROM rows GROUP BY ALL ORDER BY 1", ALL_ROWS)

    assert [one["name"] for one in store["key"]] == ["window", "customer_id"]
    found = sorted((row["key"]["customer_id"], row["value"]["count"], row["value"]["sum"]) for row in store["sample"])
    assert [(key, number, Decimal(str(total))) for key, number, total in found] == wanted
    assert {key["key"]["customer_id"]: key["rows"] for key in store["top"]} == {key: 1 for key, _, _ in wanted}
    assert store["rows"] == sum(one["rows"] for one in store["partitions"]) == len(wanted)
    assert store["sample"][0]["key"]["window"]["start"] == "2024-03-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("name", "source", "added"),
    [("counts", "changes", 0), pytest.param("counts_snapshots", "snapshots", None, marks=pytest.mark.e2e)],
)
def test_growth_comes_from_changes_or_from_snapshots(name, source, added, look):
    grown = only(look(name))["growth"]
    assert (grown["source"], grown["added"]) == (source, added)
    assert grown["batches"] == [{"batch": batch, "rows": 7} for batch in range(4)]


def test_growth_by_changes_is_exact_where_rows_come_and_go_and_begins_where_it_is_asked_to(look):
    grown, later = only(look("dedup"))["growth"], only(look("dedup", since=1, batch=3))["growth"]
    # the late batch brings one id and moves the watermark past the 60 others
    assert (grown["since"], grown["added"], grown["removed"]) == (0, 41, 60)
    assert [one["rows"] for one in grown["batches"]] == [20, 40, 60, 61, 1]
    assert (later["since"], later["until"], later["added"], later["removed"]) == (1, 3, 21, 0)


@pytest.mark.parametrize("name", named("pairs", "pairs_hdfs"))
def test_a_join_has_four_stores_of_which_two_hold_rows(name, look):
    [operator] = look(name, top=20, show_keys=True)["operators"]
    debits = [row for row in ALL_ROWS if row["type"] == "Debit"]
    credits = [row for row in ALL_ROWS if row["type"] == "Credit"]

    assert {one["store"]: (one["rows"], one["counted"]) for one in operator["stores"]} == {
        "left-keyToNumValues": (7, False),
        "left-keyWithIndexToValue": (len(debits), True),
        "right-keyToNumValues": (7, False),
        "right-keyWithIndexToValue": (len(credits), True),
    }
    right = next(one for one in operator["stores"] if one["store"].startswith("right-keyWith"))
    assert {key["key"]["field0"]: key["rows"] for key in right["top"]} == Counter(row["customer_id"] for row in credits)
    assert [key["rows"] for key in right["top"]] == sorted((key["rows"] for key in right["top"]), reverse=True)
    assert right["growth"]["added"] == len([row for row in credits if row["event_time"] >= BATCHES[1][0]["event_time"]])
    assert operator["rows"] == len(debits) + len(credits)


def test_a_side_of_a_join_is_chosen_by_its_name(look):
    document = look("pairs", store="left")
    assert only(document)["store"] == "left-keyWithIndexToValue"
    assert document["operators"][0]["rows"] is None  # not all stores were read


@pytest.mark.e2e
def test_a_join_that_keeps_both_sides_in_one_store_is_shown_by_side(look):
    [operator] = look("pairs_v3")["operators"]
    stores = [(one["store"], one["rows"], one["growth"]["source"]) for one in operator["stores"]]
    assert stores == [("left", 21, "counts"), ("right", 42, "counts")]


def test_variables_of_transform_with_state_hold_what_the_rows_say(look):
    [operator] = look("notes", top=20, rows=100, show_keys=True)["operators"]
    stores = {one["store"]: one for one in operator["stores"]}
    ids, last, types, timers = (stores[name] for name in ("ids", "last", "types", "timers"))
    counted = {
        (row["key"]["customer_id"], row["user_map_key"]["type"]): row["user_map_value"]["count"]
        for row in types["sample"]
    }

    assert {name: (one["kind"], one["ttl"], one["rows"], one["keys"]) for name, one in stores.items()} == {
        "ids": ("list", False, 63, 7),
        "last": ("value", True, 7, None),
        "types": ("map", False, 14, 7),
        "timers": ("timers", False, 7, None),
    }
    of = Counter(row["customer_id"] for row in ALL_ROWS)
    assert {key["key"]["customer_id"]: key["rows"] for key in ids["top"]} == of
    sample = Counter(row["list_element"]["id"] for row in ids["sample"])
    assert sample == Counter(row["transaction_id"] for row in ALL_ROWS)
    amounts = {row["customer_id"]: str(row["amount"]) for row in ALL_ROWS}
    assert {row["key"]["customer_id"]: row["value"]["value"]["amount"] for row in last["sample"]} == amounts
    assert [column["name"] for column in last["value"]] == ["amount"]
    assert counted == Counter((row["customer_id"], row["type"]) for row in ALL_ROWS)
    assert (types["growth"]["source"], types["growth"]["added"]) == ("changes", 0)
    assert timers["timers"]["first"] <= timers["timers"]["last"]
    # a variable's first batch makes its column family, which makes a snapshot
    assert [(file["snapshot_batch"], file["snapshot_age"]) for file in operator["files"]] == [(0, 2), (0, 2)]


def test_a_shipped_job_with_variables_is_told_by_them(look):
    [operator] = look("enriched")["operators"]

    assert {one["store"]: (one["rows"], one["keys"]) for one in operator["stores"]} == {
        "customers": (5, 4),  # two of them share a group
        "waiting": (2, 2),  # customers 5 and 6, who never come
        "timers": (6, None),  # for both in each of the batches
    }


def test_each_of_two_operators_is_told_and_one_can_be_chosen(look):
    document = look("two")
    names = {one["operator"]: one["name"] for one in document["operators"]}
    chosen = look("two", operator=1)
    assert sorted(names.values()) == ["dedupeWithinWatermark", "stateStoreSave"]
    assert [(one["operator"], one["name"]) for one in chosen["operators"]] == [(1, names[1])]


@pytest.mark.parametrize("name", ["total", "first"])
def test_a_count_of_all_rows_and_a_limit_have_one_partition_whatever_the_setting(name, made, look):
    [metric] = made(name)[1][-1]["stateOperators"]
    [operator] = look(name)["operators"]
    assert (metric["numShufflePartitions"], metric["numStateStoreInstances"]) == (2, 1)
    assert (operator["partitions"], operator["rows"], len(operator["files"])) == (1, 1, 1)


def test_state_that_was_repartitioned_holds_the_same_rows_in_as_many_partitions(spoilt, spark):
    copy = spoilt("counts")
    for partitions in (5, 3):
        with temporary_conf(spark, ROCKSDB):
            spark._streamingCheckpointManager.repartition(str(copy), partitions)
        document = summarize(copy, Selection(top=10), spark)
        [operator], store = document["operators"], only(document)
        assert (operator["partitions"], len(store["partitions"]), len(store["top"])) == (partitions, partitions, 7)
        assert (operator["rows"], document["kept"]["batches"]) == (7, 1)  # earlier batches were in other partitions


def test_keys_and_texts_are_hashed_unless_they_are_asked_for(look):
    hidden, shown = (only(look("pairs", store="left", rows=3, top=3, show_keys=show)) for show in (False, True))
    text = json.dumps([hidden["top"], hidden["sample"]])
    value, full = hidden["sample"][0]["value"], shown["sample"][0]["value"]

    assert [key["key"]["field0"] for key in hidden["top"]] == [hashed(key["key"]["field0"]) for key in shown["top"]]
    assert not any(row["customer_id"] in text or row["transaction_id"] in text for row in ROWS)
    assert value["debit_event_time"] == full["debit_event_time"]
    assert value["debit_customer_id"] == hashed(full["debit_customer_id"])


@pytest.mark.parametrize("name", named("seen", "numbered", "numbered_v3"))
def test_a_number_that_is_a_key_is_hashed_wherever_it_is_kept(name, look):
    [hidden], [shown] = (look(name, rows=100, top=10, show_keys=show)["operators"] for show in (False, True))
    numbers = {str(number) for number in ACCOUNTS.values()}
    for store, plain in zip(hidden["stores"], shown["stores"], strict=True):
        text, full = (json.dumps([each["top"], each["sample"]]) for each in (store, plain))
        if store["sample"] is not None:  # all but a join's index
            assert set(words(full)) >= numbers and set(words(text)) >= set(map(hashed, numbers))
        assert not numbers & set(words(text))


def test_figures_and_times_beside_a_key_are_shown(look):
    counts, last = (only(look("seen", rows=1), store)["sample"][0] for store in ("counts", "last"))
    assert (type(counts["user_map_value"]["rows"]), type(last["value"]["number"])) == (int, int)
    side = only(look("numbered", store="left", rows=1))["sample"][0]
    assert side["value"]["event_time"].startswith("2024-03-01T00:")


def test_keys_can_be_ranked_by_one_column_times_included_and_one_that_the_key_has_not_is_said(look):
    [top] = only(look("counts", key="window"))["top"]
    assert (top["key"], top["rows"]) == ({"window": "2024-03-01T00:00:00Z to 2024-03-02T00:00:00Z"}, 7)
    told = refusal_of(look, "counts", key="amount")
    assert told.startswith("no column 'amount' in the key of default; there are window, customer_id")


def test_what_spark_cannot_read_is_one_line(spoilt, spark):
    copy = spoilt("counts")
    for file in copy.glob("state/0/*/3.changelog"):
        file.write_bytes(b"")
        file.with_name(".3.changelog.crc").unlink(missing_ok=True)

    with pytest.raises(UserError, match=f"^Spark cannot read the state in {copy}: [^\n]+$"):
        summarize(copy, Selection(), spark)


def test_a_checkpoint_whose_schema_is_elsewhere_is_refused(spoilt, spark):
    copy = spoilt("notes")
    for file in copy.glob("state/0/_metadata/v2/0"):
        file.write_text(file.read_text().replace("_stateSchema", "_gone"))
    with pytest.raises(UserError, match=r"has no schema of operator 0: Spark looks for it at [^;]*_gone"):
        summarize(copy, Selection(), spark)


def test_the_session_has_its_own_settings_afterwards(made, spark):
    before = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    summarize(made("counts")[0], Selection(top=0), spark)
    assert spark.conf.get("spark.sql.streaming.stateStore.providerClass") == before


def test_a_query_at_work_is_read_and_each_batch_agrees_with_its_metric(spark, tmp_path):
    conf = {**ROCKSDB, "spark.sql.streaming.minBatchesToRetain": "4"}
    feed = Feed(spark, dedup_transactions.JOB, tmp_path)
    batches = ([transaction(f"T{batch}-{n}", at(0)) for n in range(50)] for batch in count())
    feed.add(*islice(batches, 4))
    where = {"sink": ParquetSink(feed.output), "checkpoint": feed.checkpoint}
    with temporary_conf(spark, conf):
        query = start(feed.job, feed.inputs(), **where, trigger_seconds=0.2)

    def progress():
        worked = [one for one in query.recentProgress if "addBatch" in one["durationMs"]]
        return {one["batchId"]: one["stateOperators"][0]["numRowsTotal"] for one in worked}

    try:
        seen, limit, given = {}, time.monotonic() + 120, 4
        until(progress, 120, "the first batch")
        while len(seen) < 3 and time.monotonic() < limit:
            feed.add(*islice(batches, 2))  # the query is at work while it is read
            given += 2
            try:
                document = summarize(feed.checkpoint, Selection(top=0), spark)
            except UserError as error:  # a busy machine reads more slowly than the query cleans up
                assert "faster than they can be read" in str(error)
            else:
                seen[document["batch"]] = document["operators"][0]["rows"]
        query.processAllAvailable()
        last = summarize(feed.checkpoint, Selection(top=0), spark)
        until(lambda: progress().keys() >= {*seen, last["batch"]}, 60, "the progress of all that was read")
        told = progress()
    finally:
        query.stop()
    assert query.exception() is None
    assert len(seen) > 1 and seen == {batch: told[batch] for batch in seen}
    assert last["operators"][0]["rows"] == told[last["batch"]] == 50 * given


def test_a_run_is_listed_from_its_files(made):
    path = made("counts_snapshots")[0]
    [job] = listing(path.parent.parent, [path])["jobs"]
    [operator] = job["operators"]
    assert (job["job"], job["provider"], job["error"]) == ("daily_counts", "rocksdb", None)
    assert (operator["rows_batch"], operator["rows"], operator["bytes"] > 0) == (3, 7, True)


def test_the_command_shows_a_picture(made, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["state", str(made("pairs")[0]), "--store", "right", "--top", "2"]) == 0

    out, err = capsys.readouterr()
    assert err == "" and "\x1b" not in out and max(map(len, out.splitlines())) <= 80
    assert "operator 0  symmetricHashJoin  2 partitions, format 2" in out
    assert "right-keyWithIndexToValue  side of a join; 42 rows; skew 1.0×" in out
    assert "13 at batch 0, 42 at batch 3: 29 added, 0 removed" in out


def test_the_command_prints_the_document(made, capsys):
    assert main(["state", str(made("counts")[0]), "--json", "--rows", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["provider"], document["batch"]) == (1, "rocksdb", 3)
    assert document["kept"] == {"first": 0, "last": 3, "batches": 4}


def test_a_query_without_state_is_an_answer(made, capsys):
    path = made("stateless")[0]
    assert main(["state", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: the query has no state\n"
    assert main(["state", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"] == []
