import math

import pytest

from ledgerops.metrics import QUERY_METRICS
from ledgerops.metrics.model import Metric
from ledgerops.model.finding import Verdict
from ledgerops.model.records import TableCommit
from ledgerops.runtime.family import MAX_LABEL_BYTES, Family, clean_label, fit_families, series_of
from ledgerops.runtime.registry import QueryState
from ledgerops.runtime.snapshot import ENDED_TOTALS_SECONDS, QuerySnapshot, Snapshot
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, source
from tests.tables import cases

ONE = Metric("one", "One.")
BY_PARTITION = Metric("wide", "Wide.", labels=("topic", "partition"))
AGE = Metric("age", "Age.", age=True)


def no_judge(view):
    raise AssertionError


def state_of(*batches, ended=None):
    state = QueryState("daily_counts", no_judge)
    state.history.start(T0, "id-1", "run-1")
    for each in batches:
        take(state, each)
    if ended is not None:
        state.history.end(T0 + 50, "run-1", ended, None)
    state.verdict = Verdict("daily_counts", T0 + 60, "healthy", 100)
    return state


def take(state, done):
    state.history.add(done)
    state.totals.add(done)


def seconds_count(families):
    """How many batches the histogram of their durations has."""
    return sum(families["ledgerops_batch_duration_seconds"].histogram.counts)


def unexpected(name, error):
    raise error


def snapshot(state, budget=500, failed=unexpected):
    """What is exported."""
    return QuerySnapshot(state, QueryView(state.history, T0 + 60), budget, failed).exported


def wide(count, head=lambda number: 5):
    """A batch of so many partitions, which consumed 5 offsets of each."""
    ends = {("transactions", str(number)): 5 for number in range(count)}
    heads = {partition: head(int(partition[1])) for partition in ends}
    return batch(0, sources=(source(100, dict.fromkeys(ends, 0), ends, heads),))


def test_a_running_query_has_its_counters_gauges_and_histogram():
    found = snapshot(state_of(batch(0), batch(1)))
    assert found.families["ledgerops_batches_total"].series == (((), 2.0),)
    assert found.families["ledgerops_query_active"].series == (((), 1.0),)
    assert found.families["ledgerops_health_score"].series == (((), 100.0),)
    assert (seconds_count(found.families), found.dropped) == (2, 0)


def ended(seconds):
    """The families that are left so long after a query's end."""
    state = state_of(batch(0), ended="boom")
    return QuerySnapshot(state, QueryView(state.history, T0 + 50 + seconds), 500, None).exported.families


def test_the_totals_of_a_query_that_has_ended_stay_for_a_while_so_that_its_last_batches_are_seen():
    families = ended(ENDED_TOTALS_SECONDS - 1)
    assert families["ledgerops_batches_total"].series == (((), 1.0),)
    assert families["ledgerops_input_rows_total"].series
    assert seconds_count(families) == 1
    assert "ledgerops_last_batch_duration_seconds" not in families


def test_long_after_the_end_only_what_survives_remains():
    families = ended(ENDED_TOTALS_SECONDS)
    assert families["ledgerops_query_active"].series == (((), 0.0),)
    assert families["ledgerops_query_failures_total"].series == ((("unclassified",), 1.0),)
    assert all(family.metric.survives for family in families.values())
    assert "ledgerops_batches_total" not in families


def test_a_reader_that_raises_costs_its_own_family_only(monkeypatch):
    heard = []
    broken = Metric("ledgerops_broken", "Broken.", read=lambda view: 1 / 0)
    monkeypatch.setattr("ledgerops.runtime.snapshot.QUERY_METRICS", (broken, ONE, BY_PARTITION))
    assert dict(snapshot(state_of(batch(0)), failed=lambda name, error: heard.append((name, str(error)))).families)
    assert heard == [("ledgerops_broken", "division by zero")]


def test_a_total_that_is_no_number_costs_its_own_family_only():
    state, heard = state_of(batch(0)), []
    state.totals.counters["ledgerops_batches_total"] = {(): "many"}
    found = snapshot(state, failed=lambda name, error: heard.append(name)).families

    assert heard == ["ledgerops_batches_total"]
    assert seconds_count(found) == 1


def test_partitions_beyond_the_budget_are_cut_and_counted_and_the_rest_is_whole():
    whole = snapshot(state_of(wide(300)), budget=100_000)
    cut = snapshot(state_of(wide(300)), budget=200)
    series = cut.families["ledgerops_source_backlog_offsets"].series

    assert cut.size <= 200
    assert cut.dropped == whole.size - cut.size
    assert cut.families["ledgerops_batches_total"].series == (((), 1.0),)
    assert [labels[1] for labels, _ in series] == [str(number) for number in range(len(series))]


def test_the_wide_families_keep_the_same_series():
    families = [Family(ONE, (((), 1.0),)), *(Family(BY_PARTITION, [(("t", str(n)), 1.0) for n in range(50)]),) * 2]
    kept, dropped = fit_families(families, 21)
    assert ([family.size for family in kept], dropped) == ([1, 10, 10], 80)


@cases(
    "metric, values, series",
    ("no number", ONE, {(): math.nan}, ()),
    ("infinity", ONE, {(): math.inf}, ()),
    ("minus infinity", ONE, {(): -math.inf}, ()),
    ("an instant that has not come", AGE, {(): math.inf}, (((), math.inf),)),
    ("the wrong count of labels", BY_PARTITION, {("only one",): 1.0}, ()),
)
def test_what_is_no_number_is_no_sample(metric, values, series):
    assert series_of(metric, values) == series


def test_partition_ten_comes_after_partition_nine():
    series = series_of(BY_PARTITION, {("t", "10"): 1.0, ("t", "9"): 2.0, ("a", "x"): 3.0})
    assert [labels for labels, _ in series] == [("a", "x"), ("t", "9"), ("t", "10")]


def test_labels_are_cut_and_can_be_encoded():
    [((topic, partition), _)] = series_of(BY_PARTITION, {("x" * 1000, "\ud800"): 1.0})
    assert (len(topic), partition) == (MAX_LABEL_BYTES, "?")


def test_a_snapshot_does_not_change_with_the_state_and_its_families_are_made_when_they_are_read(monkeypatch):
    made = []
    counted = Metric("ledgerops_made", "Made.", read=lambda view: made.append(1) or {(): float(len(view.batches))})
    monkeypatch.setattr("ledgerops.runtime.snapshot.QUERY_METRICS", (*QUERY_METRICS, counted))
    state = state_of(batch(0))
    before = QuerySnapshot(state, QueryView(state.history, T0 + 60), 500, unexpected)
    take(state, batch(1))
    assert not made

    for _ in range(2):
        families = before.exported.families
    assert (len(made), len(before.state.history.batches)) == (1, 1)
    assert families["ledgerops_made"].series == families["ledgerops_batches_total"].series == (((), 1.0),)
    assert seconds_count(families) == 1
    assert before.state.totals.counters["ledgerops_batches_total"] == {(): 1.0}


def test_of_the_partitions_the_worst_are_kept_and_the_sums_and_maxima_are_whole():
    families = snapshot(state_of(wide(300, head=lambda number: 5 + number)), budget=200).families
    kept = {int(labels[1]) for labels, _ in families["ledgerops_source_backlog_offsets"].series}
    assert 0 < len(kept) < 300
    assert kept == set(range(300 - len(kept), 300))
    assert {int(labels[1]) for labels, _ in families["ledgerops_source_lag_seconds"].series} == kept
    assert families["ledgerops_query_backlog_offsets"].series == (((), float(sum(range(300)))),)


def test_names_that_are_alike_at_their_beginning_stay_apart_and_no_label_is_above_its_limit_in_bytes():
    first, second = (clean_label("🜁" * 300 + end) for end in "ab")
    assert first != second
    assert max(len(first.encode()), len(second.encode())) <= MAX_LABEL_BYTES


@pytest.mark.parametrize("name", ["größte_gutschriften", "x" * MAX_LABEL_BYTES])
def test_a_name_that_fits_is_published_as_it_is(name):
    assert clean_label(name) == name


def test_many_queries_together_stay_within_the_budget_of_the_driver_and_small_ones_whole():
    small, large = (
        QuerySnapshot(state, QueryView(state.history, T0 + 60), 500, unexpected)
        for state in (state_of(batch(0)), state_of(wide(300)))
    )
    queries = {"small": small, **{f"large-{number}": large for number in range(10)}}
    budget = small.exported.size + 10 * 150
    fitted = Snapshot(T0, queries, budget=budget).exported

    assert sum(each.size for each in fitted.values()) <= budget
    assert fitted["small"] is small.exported
    assert fitted["large-1"].dropped > large.exported.dropped
    assert fitted["large-1"].families["ledgerops_query_backlog_offsets"].series
    again = Snapshot(T0 + 1, queries, budget=budget).exported
    assert again["large-1"] is fitted["large-1"]  # unchanged: not cut anew
    assert Snapshot(T0, queries, budget=10_000).exported["large-1"] is large.exported


def test_of_totals_that_no_batch_has_added_to_the_families_are_made_once_and_the_rest_anew():
    state = state_of(batch(0))
    first = snapshot(state)
    state.verdict = Verdict("daily_counts", T0 + 60, "healthy", 90)
    second = snapshot(state)

    assert second.families["ledgerops_batches_total"] is first.families["ledgerops_batches_total"]
    assert second.families["ledgerops_health_score"].series == (((), 90.0),)


def test_after_another_batch_the_totals_are_counted_anew_and_the_snapshot_before_stays_as_it_was():
    state = state_of(batch(0))
    first = snapshot(state)
    take(state, batch(1))
    second = snapshot(state)

    for seen, count in ((first, 1), (second, 2)):
        assert seen.families["ledgerops_batches_total"].series == (((), float(count)),)
        assert seconds_count(seen.families) == count


def test_after_a_commit_to_the_table_of_the_sink_the_totals_are_counted_anew():
    state = state_of(batch(0))
    snapshot(state)
    state.totals.add_commits([TableCommit(1, T0, 0, None, 7, None)])
    assert snapshot(state).families["ledgerops_sink_files_total"].series == (((), 7.0),)


def test_a_family_that_the_budget_has_cut_is_whole_again_with_more_room():
    state = state_of(wide(300))
    assert snapshot(state, budget=100).dropped
    whole = snapshot(state, budget=100_000)
    assert whole.dropped == 0
    assert whole.families == snapshot(state_of(wide(300)), budget=100_000).families
