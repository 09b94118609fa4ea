"""What is known of the tables of a query at one moment."""

from dataclasses import replace

import pytest

from ledgerops.metrics import RunningTotals
from ledgerops.metrics.pressure import LAG, QUERY_LAG
from ledgerops.metrics.tables import SINK_CHECKPOINT, UNREAD_BYTES, UNREAD_FILES, UNREAD_VERSIONS
from ledgerops.model.observations import build
from ledgerops.model.records import TableCommit, TableRead, Tables
from ledgerops.model.spark_progress import BadRecord
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history
from tests.tables import cases

LATE = TableRead(head=9, versions=4, files=7, bytes=700, since=T0 + 5, oldest=3, oldest_at=T0 - 55)
DONE = TableRead(head=9, versions=0, files=0, bytes=0, oldest=3, oldest_at=T0 - 55)


def commit(version, files=2, size=200, rows=10):
    return TableCommit(version, T0 + version, version, rows, files, size)


def tables(*commits, at=T0, run_id="run-1", head=None, checkpoint=None, **sources):
    return Tables(at, run_id, sources, commits, head, checkpoint)


def view(*samples):
    remembered = history([batch(1)])
    for sample in samples:
        remembered.add_tables(sample)
    return QueryView(remembered, T0 + 100)


def test_what_is_left_of_a_table_is_exported_by_source():
    seen = view(tables(orders=LATE))
    left = [metric.read(seen) for metric in (UNREAD_VERSIONS, UNREAD_FILES, UNREAD_BYTES)]
    assert left == [{("orders",): 4.0}, {("orders",): 7.0}, {("orders",): 700.0}]
    assert (LAG.read(seen), QUERY_LAG.read(seen)) == ({("orders", "0"): T0 + 5}, {(): T0 + 5})


def test_a_table_that_was_read_to_its_head_has_no_lag_and_what_is_not_known_is_absent():
    done, unknown = view(tables(orders=DONE)), view(tables(orders=TableRead(head=9, versions=4)))
    assert UNREAD_VERSIONS.read(done) == {("orders",): 0.0}
    assert LAG.read(done) == {("orders", "0"): float("inf")}
    assert [metric.read(unknown) for metric in (UNREAD_FILES, UNREAD_BYTES, LAG, QUERY_LAG)] == [{}] * 4


@cases(
    "samples, versions",
    ("the newest", [tables(orders=LATE), tables(at=T0 + 1, orders=DONE)], {"orders": 0}),
    ("not one that is late", [tables(at=T0 + 1, orders=DONE), tables(orders=LATE)], {"orders": 0}),
    ("not that of an earlier run", [tables(run_id="run-0", orders=LATE)], {}),
    ("none", [], {}),
)
def test_which_sample_counts(samples, versions):
    assert view(*samples).tables.versions == versions


@cases(
    "table, seconds",
    ("versions were deleted", LATE, {("orders", "0"): 60.0}),
    ("nothing is left to read", DONE, {}),
    ("the table has all its versions", TableRead(head=9, versions=4, since=T0), {}),
    ("gone", TableRead(head=9, versions=4, since=T0, oldest=5, oldest_at=T0 + 9), {("orders", "0"): 0.0}),
)
def test_the_headroom_is_the_age_of_what_is_kept_before_the_oldest_unread_version(table, seconds):
    assert view(tables(orders=table)).tables.headroom == seconds


def test_commits_of_the_sink_are_counted_once():
    remembered, totals = history([batch(1)]), RunningTotals()
    for sample in (tables(commit(4)), tables(commit(4), commit(5, files=1, size=50, rows=None), at=T0 + 1)):
        totals.add_commits(remembered.add_tables(sample))

    assert totals.counters == {
        "ledgerops_output_rows_total": {(): 10.0},
        "ledgerops_sink_files_total": {(): 3.0},
        "ledgerops_sink_bytes_total": {(): 250.0},
    }


def test_a_commit_to_another_folder_counts_though_it_has_the_same_number():
    remembered = history([batch(1)])
    remembered.add_tables(tables(commit(4)))
    elsewhere = replace(commit(4), at=T0 + 60)
    assert remembered.add_tables(tables(elsewhere, at=T0 + 61)) == [elsewhere]


@cases(
    "head, checkpoint, versions",
    ("after a checkpoint", 17, 10, {(): 7.0}),
    ("a log without a checkpoint", 6, None, {(): 7.0}),
    ("no table", None, None, {}),
)
def test_versions_since_the_checkpoint_are_known_of_the_sinks_table(head, checkpoint, versions):
    assert SINK_CHECKPOINT.read(view(tables(head=head, checkpoint=checkpoint))) == versions


@cases(
    "data",
    ("no run", {"sources": {}}),
    ("no versions", {"run_id": "r", "sources": {"t": {"head": 1}}}),
    ("sources in a list", {"run_id": "r", "sources": [1]}),
    ("a version that is no number", {"run_id": "r", "commits": [{"version": "x"}]}),
    ("errors that are no object", {"run_id": "r", "errors": 5}),
)
def test_a_damaged_sample_is_refused(data):
    with pytest.raises(BadRecord):
        build(Tables, data, at=T0)
