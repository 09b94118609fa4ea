"""The catalogue is the contract: names, units, labels, and nothing that a recording holds is left out."""

import re

import pytest

from ledgerops.metrics import METRICS, QUERY_METRICS, integrity, state
from ledgerops.metrics.model import Metric
from ledgerops.model.history import History
from ledgerops.model.recording import read
from ledgerops.model.records import Plan
from ledgerops.model.spark_progress import parse_progress
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, operator
from tests.paths import RECORDED
from tests.tables import cases

LABELS = {
    "query", "source", "topic", "partition", "operator", "phase", "kind", "executor", "rule", "severity",
    "status", "error_class", "event", "step", "collector", "reason", "part", "plan", "worker",
    "signal", "name", "field", "quantile",
}  # fmt: skip
BY_NAME = {metric.name: metric for metric in QUERY_METRICS}
COUNTED = {
    "rows", "ratio", "score", "share", "seconds", "bytes", "offsets", "batches", "partitions", "cores", "tasks", "cpus",
    "threads", "files", "count", "size", "active", "expected", "status", "finding", "cause", "second", "variables",
    "keys", "families", "processes", "reachable", "rate", "valid", "observed", "value", "versions",
}  # fmt: skip
NAMED_BY_THE_CONTRACT = {
    "ledgerops_build_info", "ledgerops_query_info", "ledgerops_query_active", "ledgerops_query_expected",
    "ledgerops_query_restarts_total", "ledgerops_query_failures_total", "ledgerops_query_start_timestamp_seconds",
    "ledgerops_query_status", "ledgerops_input_rows_total", "ledgerops_output_rows_total", "ledgerops_batches_total",
    "ledgerops_input_rows_per_second", "ledgerops_processed_rows_per_second", "ledgerops_batch_duration_seconds",
    "ledgerops_batch_phase_seconds_total", "ledgerops_event_latency_seconds",
    "ledgerops_last_progress_timestamp_seconds", "ledgerops_batch_running_seconds",
    "ledgerops_watermark_timestamp_seconds", "ledgerops_watermark_lag_seconds",
    "ledgerops_event_time_max_timestamp_seconds", "ledgerops_rows_dropped_by_watermark_total",
    "ledgerops_arrival_rows_per_second", "ledgerops_capacity_rows_per_second", "ledgerops_batch_overhead_seconds",
    "ledgerops_busy_ratio", "ledgerops_pressure_ratio", "ledgerops_source_backlog_offsets",
    "ledgerops_source_lag_seconds", "ledgerops_backlog_drain_seconds", "ledgerops_state_rows",
    "ledgerops_state_memory_bytes", "ledgerops_state_updated_rows_total", "ledgerops_state_removed_rows_total",
    "ledgerops_state_commit_seconds_total", "ledgerops_state_snapshot_lag_batches", "ledgerops_skew_ratio",
    "ledgerops_skew_score", "ledgerops_hot_key_share", "ledgerops_finding", "ledgerops_root_cause",
    "ledgerops_health_score", "ledgerops_listener_events_total", "ledgerops_listener_queue_size",
    "ledgerops_listener_dropped_total", "ledgerops_callback_seconds_total", "ledgerops_worker_seconds_total",
    "ledgerops_collector_errors_total", "ledgerops_series_dropped_total", "ledgerops_scrape_seconds",
}  # fmt: skip


def test_each_family_is_defined_once_and_those_of_the_contract_are_all_there():
    names = [metric.name for metric in METRICS]
    assert sorted(set(names)) == sorted(names)
    assert set(names) >= NAMED_BY_THE_CONTRACT


def test_names_end_in_their_unit_help_is_a_sentence_and_labels_are_few(subtests: pytest.Subtests):
    for metric in METRICS:
        with subtests.test(metric.name):
            assert re.fullmatch(r"ledgerops_[a-z0-9_]+", metric.name)
            assert metric.name.endswith("_total") == (metric.kind == "counter")
            assert metric.name.endswith("_info") == (metric.kind == "info")
            if metric.kind in ("gauge", "histogram"):
                assert metric.name.rsplit("_", 1)[-1] in COUNTED
            assert re.match(r"[A-Z0-9]", metric.help) and metric.help.endswith(".")
            assert metric.kind == "info" or set(metric.labels) <= LABELS, "a label is never an id"


def test_every_custom_metric_that_five_versions_of_spark_report_is_exported():
    every = [each for path in RECORDED.glob("spark-*.jsonl") for each in read(path) if each.kind == "progress"]
    operators = [found for each in every for found in parse_progress(each.data).operators]
    seen = {name for found in operators for name in found.custom}
    assert len(seen) > 40
    assert seen <= {row[0] for row in state.CUSTOM}


def series(metric: Metric, *batches):
    return metric.read(QueryView(history(list(batches)), T0 + 100))


def test_milliseconds_become_seconds_and_sizes_stay_bytes():
    done = batch(operators=(operator(custom={"rocksdbGetLatency": 1500, "rocksdbSstFileSize": 4096}),))
    assert list(state.added(done)) == [("ledgerops_rocksdb_get_seconds_total", ("stateStoreSave",), 1.5)]
    assert series(BY_NAME["ledgerops_rocksdb_sst_bytes"], done) == {("stateStoreSave",): 4096.0}


def test_what_an_upload_of_state_took_is_not_added_up_because_spark_tells_it_again_until_the_next_one():
    upload = operator(custom={"rocksdbBytesCopied": 171_385, "rocksdbFilesCopied": 4, "rocksdbFilesReused": 2})
    batches = [batch(n, operators=(upload,)) for n in range(22)]
    assert [found for each in batches for found in state.added(each)] == []
    for name, value in (("copied_bytes", 171_385.0), ("copied_files", 4.0), ("reused_files", 2.0)):
        assert series(BY_NAME[f"ledgerops_rocksdb_{name}"], *batches) == {("stateStoreSave",): value}


def test_the_hdfs_stores_cache_counts_are_taken_as_they_are_because_spark_adds_them_up():
    hits = BY_NAME["ledgerops_hdfs_state_cache_hits_total"]
    batches = [batch(n, operators=(operator(custom={"loadedMapCacheHitCount": 4 * n}),)) for n in range(5)]
    assert hits.per_batch is None
    assert series(hits, *batches) == {("stateStoreSave",): 16.0}


@cases(
    "versions, expected",
    ("laggard", {"partition_0_default": 8, "partition_1_default": 5}, {("stateStoreSave",): 3.0}),
    ("never uploaded", {"partition_0_default": -1}, {("stateStoreSave",): 8.0}),
    ("not reported", {}, {}),
)
def test_snapshot_lag_is_in_batches(versions, expected):
    assert series(state.SNAPSHOT_LAG, batch(7, operators=(operator(snapshot_versions=versions),))) == expected


TWO_TOPICS = {
    "ledgerops_rejects_transactions": {"rejected_invalid_json": 2, "rejected_tombstone": 0},
    "ledgerops_rejects_customers": {"rejected_invalid_json": 1},
}


@cases(
    "observed, expected",
    ("a source that reads no bytes", {}, {}),
    ("an observation of something else", {"ledgerops": {"rows": 5, "rejected": 3}}, {}),
    ("an observation of the user's", {"mine": {"rejected_by_me": 3}}, {}),
    ("an empty batch", {"ledgerops_rejects_transactions": {"rejected_tombstone": None}}, {}),
    ("two topics", TWO_TOPICS, {("invalid_json",): 3.0, ("tombstone",): 0.0}),
)
def test_rejected_rows_are_counted_by_reason(observed, expected):
    assert BY_NAME["ledgerops_rejected_rows_total"].per_batch(batch(observed=observed)) == expected


def test_an_idle_query_keeps_its_gauges_and_its_rates_are_zero():
    remembered = history([batch(n) for n in range(5)])
    remembered.idle(T0 + 20)
    idle = QueryView(remembered, T0 + 21)
    assert BY_NAME["ledgerops_processed_rows_per_second"].read(idle) == {(): 0.0}
    assert BY_NAME["ledgerops_input_rows_per_second"].read(idle) == {("transactions",): 0.0}
    assert BY_NAME["ledgerops_last_batch_duration_seconds"].read(idle) == {(): 0.5}


def test_a_query_without_a_batch_has_no_value_and_so_no_sample():
    empty = QueryView(History("q"), T0)
    spoken = {name for name, metric in BY_NAME.items() if metric.read is not None and metric.read(empty)}
    assert spoken == {f"ledgerops_query_{name}" for name in ("info", "active", "expected", "restarts_total")}


RUNS = "it runs"


@cases(
    "trigger, exception, expected",
    ("it was to end, and did", "available_now", None, {}),
    ("one batch, and it was done", "once", None, {}),
    ("it was to end, but failed", "available_now", "boom", {(): 1.0}),
    ("it was stopped", "processing_time", None, {(): 1.0}),
    ("nobody knows its trigger", None, None, {(): 1.0}),
    ("it has not ended", "available_now", RUNS, {(): 1.0}),
)
def test_a_query_that_ended_is_expected_unless_its_trigger_let_it_end(trigger, exception, expected):
    remembered = history([batch()])
    remembered.started_at = T0 - 60
    remembered.plan = Plan("run-1", trigger=trigger)
    if exception != RUNS:
        remembered.end(T0 + 5, "run-1", exception, None)
    assert BY_NAME["ledgerops_query_expected"].read(QueryView(remembered, T0 + 6)) == expected


@cases(
    "before, seconds, exception, expected",
    ("the run before was to end", "available_now", 60.0, None, {}),
    ("the run before was not", "processing_time", 0.5, None, {(): 1.0}),
    ("it ended before anybody could ask", None, 0.5, None, {}),
    ("nobody was told in a minute", None, 60.0, None, {(): 1.0}),
    ("it failed at once", None, 0.5, "boom", {(): 1.0}),
)
def test_a_run_that_is_over_before_its_plan_was_read_is_taken_as_the_one_before(before, seconds, exception, expected):
    remembered = history([batch()])
    remembered.plan = Plan("run-1", trigger=before) if before is not None else None
    remembered.end(T0 + 5, "run-1", None, None)
    remembered.start(T0 + 10, "id-1", "run-2")
    remembered.end(T0 + 10 + seconds, "run-2", exception, None)
    assert BY_NAME["ledgerops_query_expected"].read(QueryView(remembered, T0 + 80)) == expected


def book(rows_in, rows_out, amount_in, amount_out):
    return {
        "ledgerops_book_in_mine": {"rows": rows_in, "amount": amount_in},
        "ledgerops_book_out": {"rows": rows_out, "amount": amount_out},
    }


def sides(rows_in, rows_out):
    return {("in",): float(rows_in), ("out",): float(rows_out)}


@cases(
    "observed, rows, wrong, amount",
    ("a job without books", {"ledgerops": {"rows": 5}}, {}, {}, {}),
    ("a balanced batch", book(5, 5, "1.10", "1.1"), sides(5, 5), {(): 0.0}, {(): 0.0}),
    ("one that is not", book(5, 4, "1.10", "2.20"), sides(5, 4), {(): 1.0}, {(): 1.1}),
    ("an unknown sum", book(5, 5, None, "2.20"), sides(5, 5), {(): 0.0}, {(): 0.0}),
)
def test_books_are_counted_by_side_and_differences_never_fall(observed, rows, wrong, amount):
    names = ("ledgerops_book_rows_total", "ledgerops_unbalanced_batches_total", "ledgerops_unbalanced_amount_total")
    assert [BY_NAME[name].per_batch(batch(observed=observed)) for name in names] == [rows, wrong, amount]


def test_conflicting_rows_are_counted_where_somebody_looks():
    conflicting = BY_NAME["ledgerops_conflicting_rows_total"].per_batch
    assert conflicting(batch(observed={"ledgerops_conflicts": {"conflicts": 3, "ids": None}})) == {(): 3.0}
    assert conflicting(batch(observed={"ledgerops_conflicts": {"conflicts": 0, "ids": []}})) == {(): 0.0}
    assert conflicting(batch(observed={"ledgerops": {"rows": 3}})) == {}


NO_NUMBERS = {"text": "5", "yes": True, "list": [1], "row": {"n": 1}, "nan": float("nan"), "null": None}


@cases(
    "observed, expected",
    ("a query that observes nothing", {}, {}),
    ("two columns", {"q": {"nulls": 3, "share": 0.5}}, {("q", "nulls"): 3, ("q", "share"): 0.5}),
    ("two observations", {"a": {"n": 1}, "b": {"n": 2}}, {("a", "n"): 1, ("b", "n"): 2}),
    ("zero is a number", {"quality": {"nulls": 0}}, {("quality", "nulls"): 0}),
    ("no row in the batch", {"quality": {"nulls": None}}, {}),
    ("what is no number", {"quality": NO_NUMBERS}, {}),
    ("what has its own metrics", {"ledgerops": {"rows": 5}, "ledgerops_book_in": {"rows": 5}}, {}),
)
def test_numbers_of_the_jobs_own_are_exported(observed, expected):
    assert series(integrity.OBSERVED, batch(observed={"old": {"n": 1}}), batch(1, observed=observed)) == expected


def test_numbers_of_the_jobs_own_are_bounded():
    observed = {"quality": {f"column{number:03}": number for number in range(80)}}
    found = series(integrity.OBSERVED, batch(observed=observed))
    assert len(found) == 50 and found["quality", "column000"] == 0
