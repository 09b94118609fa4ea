"""Runs that write Delta tables: which job reads which table, and when such a reader has caught up."""

import json

import pytest

from ledgerops.ledger.jobs import choose_jobs
from ledgerops.ledger.run.completion import CatchUpCheck
from ledgerops.ledger.run.sink import RunSink
from tests.refusals import refusal_of
from tests.tables import cases

THREE = ("landed_transactions", "masked_transactions", "daily_counts")


@cases(
    "names, read",
    ("all three", THREE, {"masked_transactions": THREE[0], "daily_counts": THREE[1]}),
    ("bronze and silver", THREE[:2], {"masked_transactions": THREE[0]}),
    ("gold without silver reads the source", (THREE[0], THREE[2]), {}),
    ("gold alone", (THREE[2],), {}),
)
def test_a_job_reads_the_table_of_the_one_before_it_where_that_runs(names, read):
    assert RunSink("delta").upstream(choose_jobs(names)) == read
    assert RunSink("parquet").upstream(choose_jobs(names)) == {}


def test_jobs_that_change_rows_are_refused():
    told = refusal_of(RunSink("delta").check, choose_jobs(["large_credits", "customer_activity"]), None)
    assert told.startswith("customer_activity changes rows that it has written, and --sink delta only")
    RunSink("delta").check(choose_jobs(THREE), None)


class Query:
    """A query between two triggers, with nothing more to read."""

    def __init__(self, name):
        self.name, self.isActive = name, True
        self.status = {"isTriggerActive": False, "isDataAvailable": False, "message": "Waiting for data to arrive"}


@pytest.fixture
def case(tmp_path):
    """`case(bronze, version)`: offsets that bronze has read of a topic that ends at 10, and the version that silver
    reads next of a table that has the versions 0 to 2; whether both have caught up."""
    table = tmp_path / "output" / "bronze"
    (table / "_delta_log").mkdir(parents=True)
    for version in range(3):
        (table / "_delta_log" / f"{version:020}.json").touch()
    queries = [Query("bronze"), Query("silver")]

    def commit(name, offset):
        for log, text in (("offsets", f"v1\n{{}}\n{json.dumps(offset)}"), ("commits", "v1\n{}")):
            (tmp_path / name / log).mkdir(parents=True, exist_ok=True)
            (tmp_path / name / log / "0").write_text(text)

    def done(bronze, version):
        commit("bronze", {"t": {"0": bronze}})
        if version is not None:
            commit("silver", {"reservoirVersion": version, "index": -1, "isStartingVersion": False})
        return CatchUpCheck(queries, tmp_path, {("t", "0"): 10}, {"silver": table}).done()

    return done


@cases(
    "bronze, version, done",
    ("both have read all", 10, 3, True),
    ("more comes into the table", 9, 3, False),
    ("the newest version was not read", 10, 2, False),
    ("no batch yet", 10, None, False),
)
def test_a_reader_of_a_table_has_caught_up_with_the_query_that_writes_it(case, bronze, version, done):
    assert case(bronze, version) is done
