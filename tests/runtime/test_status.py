import json
from dataclasses import replace

import pytest

from ledgerops.model.records import Running, TableRead, Tables
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.status import SERIES, SERIES_POINTS, SERIES_SECONDS, query_status, status_document
from tests.build import T0, operator, stream
from tests.runtime.demo import HOSTILE, KEY_SKEW, NOW, add_query, batches, demo_fleet, no_judge


@pytest.fixture(scope="module")
def document():
    return status_document(demo_fleet(), NOW)


def of(document, query):
    return next(each for each in document["queries"] if each["query"] == query)


def test_every_query_is_shown_by_name(document):
    assert [each["query"] for each in document["queries"]] == sorted(demo_fleet().queries)


def test_the_document_is_json_without_nan_or_infinity(document):
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_query_that_is_found_ill_carries_its_root_cause_with_evidence_and_remedy(document):
    verdict = of(document, "daily_counts")["verdict"]

    assert (verdict["rule"], verdict["severity"], verdict["summary"]) == ("key-skew", "critical", KEY_SKEW.summary)
    assert verdict["why"].startswith("skew ratio 14.90 (expected at most 3)")
    assert verdict["evidence"][0] == {
        "name": "ledgerops_skew_ratio",
        "value": 14.9,
        "unit": "ratio",
        "expected": "<= 3",
    }
    assert verdict["remedies"][0]["action"] == "aggregate in two steps, with a salt on the key"


def test_a_healthy_query_says_how_much_of_its_capacity_is_used(document):
    told = of(document, "large_credits")
    assert told["verdict"]["rule"] is None
    assert told["verdict"]["summary"] == "no problem found; running at 19% of the sustainable rate"


def test_a_query_under_pressure_without_a_finding_is_not_called_well():
    registry = QueryRegistry(no_judge)
    state = add_query(registry, "busy", "pressured", 100, batches=batches("busy", seconds=1.85))
    assert query_status(state, registry.view(state, NOW))["verdict"]["summary"] == (
        "under pressure; running at 87% of the sustainable rate"
    )


def test_a_reader_of_a_table_says_what_is_unread_and_how_old_it_is():
    registry = QueryRegistry(no_judge)
    state = add_query(registry, "silver", "healthy", 100, batches=batches("silver"))
    run_id = state.history.run_id or ""
    before = query_status(state, registry.view(state, NOW))
    state.history.add_tables(Tables(NOW, run_id, {"bronze": TableRead(9, 3, 7, 700, NOW - 90)}))
    told = query_status(state, registry.view(state, NOW))

    assert (told["unread"], told["lag_seconds"]) == ({"versions": 3, "files": 7, "bytes": 700}, 90.0)
    assert before["unread"] is None
    state.history.end(NOW, run_id, None, None)
    assert query_status(state, registry.view(state, NOW))["unread"] is None


def test_one_batch_is_too_few_to_judge_and_that_is_said():
    registry = QueryRegistry(no_judge)
    state = add_query(registry, "young", "starting", 100, batches=batches("young", seconds=1.0)[:1])
    assert query_status(state, registry.view(state, NOW))["verdict"]["summary"] == "one batch so far, too few to judge"


def test_a_query_before_its_first_batch_has_no_figures(document):
    told = of(document, "debit_credit_pairs")

    assert told["verdict"]["summary"] == "waiting for the first batch"
    for name in ("backlog", "drain_seconds", "batch", "watermark_lag", "state", "skew"):
        assert told[name] is None
    assert set(told["rates"].values()) == {None}
    assert told["series"] == {name: [] for name in SERIES}


@pytest.mark.parametrize(("tasks", "said"), [((3, 200, 37), "; 37 of 200 tasks done"), ((1, 0, 0), ""), ((), "")])
def test_a_long_first_batch_shows_how_far_it_is(tasks, said):
    registry = QueryRegistry(no_judge)
    state = add_query(registry, "young", "starting", 100)
    run_id = state.history.run_id
    state.history.set_running(Running(NOW, run_id, NOW - 140, "Processing new data", *tasks))

    told = query_status(state, registry.view(state, NOW))
    assert told["verdict"]["summary"] == f"its first batch has been running for 2 min 20 s{said}"


def test_an_idle_query_has_rates_of_zero_and_keeps_its_last_batch(document):
    told = of(document, HOSTILE)
    assert (told["rates"]["arrival"], told["rates"]["input"], told["rates"]["processed"]) == (0.0, 0.0, 0.0)
    assert told["batch"]["id"] == 39


def test_a_failed_query_has_no_rates_but_keeps_its_totals(document):
    told = of(document, "enriched_transactions")
    assert set(told["rates"].values()) == {None}
    assert (told["watermark_lag"], told["busy_ratio"], told["ended_at"]) == (None, None, NOW - 100)
    assert told["batch"]["id"] == 59


def test_state_is_summed_over_the_operators():
    state = add_query(
        registry := QueryRegistry(no_judge),
        "joined",
        "healthy",
        100,
        batches=stream([100], [100], operators=(operator(rows=3, memory_bytes=10), operator(rows=4, memory_bytes=20))),
    )

    assert query_status(state, registry.view(state, T0 + 3))["state"] == {"rows": 7, "bytes": 30}


def test_dropped_rows_are_the_total_over_all_batches():
    state = add_query(
        registry := QueryRegistry(no_judge),
        "late",
        "healthy",
        100,
        batches=stream([100, 200, 300], [100, 200, 300], operators=(operator(dropped_rows=5),)),
    )

    assert query_status(state, registry.view(state, T0 + 6))["dropped_rows"] == 15


def test_the_series_tell_arrival_by_the_heads_and_input_by_what_was_read():
    state = add_query(
        registry := QueryRegistry(no_judge), "behind", "healthy", 100, batches=stream([100, 500, 900], [100, 200, 300])
    )
    series = query_status(state, registry.view(state, T0 + 6))["series"]

    assert series["arrival"] == [None, 200.0, 200.0]
    assert series["input"] == [None, 50.0, 50.0]
    assert series["backlog"] == [0, 300, 600]


def test_the_arrival_of_the_series_is_told_from_look_to_look():
    batches = stream([100, 500, 1100], [100, 200, 300])
    batches[-1] = replace(batches[-1], phases={"latest_offset": 1.0, "add_batch": 0.4})
    state = add_query(registry := QueryRegistry(no_judge), "asks", "healthy", 100, batches=batches)
    assert query_status(state, registry.view(state, T0 + 6))["series"]["arrival"] == [None, 200.0, 200.0]


def test_a_head_that_goes_back_gives_no_arrival():
    state = add_query(
        registry := QueryRegistry(no_judge), "reset", "healthy", 100, batches=stream([500, 100], [500, 500])
    )
    assert query_status(state, registry.view(state, T0 + 6))["series"]["arrival"] == [None, None]


def test_the_series_cover_the_last_minutes_and_hold_few_points():
    state = add_query(
        registry := QueryRegistry(no_judge),
        "fast",
        "healthy",
        100,
        batches=batches("fast", count=1000, seconds=0.2, gap=0.5),
    )
    at = query_status(state, registry.view(state, NOW))["series"]["at"]

    assert len(at) <= SERIES_POINTS + 1
    assert at == sorted(at)
    assert NOW - SERIES_SECONDS <= at[0] <= NOW - SERIES_SECONDS + 20  # the trend goes on where batches are forgotten
    assert at[-1] > NOW - 2


def test_a_clock_that_was_set_back_gives_no_rate():
    registry, told = QueryRegistry(no_judge), batches("back", count=400, seconds=0.2, gap=0.5)
    state = add_query(registry, "back", "healthy", 100, batches=told)
    first, second, *rest = state.history.trend
    state.history.trend.clear()
    state.history.trend.extend([first, first, second, first, *rest])
    state.history.batches.append(replace(told[-1], started=told[-2].started - 1.0))
    rates = query_status(state, registry.view(state, NOW))["series"]["input"]

    assert all(rate is None or rate >= 0 for rate in rates)


@pytest.mark.parametrize(
    ("shown", "interval", "said"),
    [
        (2, 300.0, "real-time; reports every 300 s"),
        (0, 300.0, "real-time; reports every 300 s, not yet since its start"),
        (2, None, "real-time; reports with each checkpoint"),
    ],
)
def test_a_real_time_query_says_how_often_it_reports(shown, interval, said):
    registry = QueryRegistry(no_judge)
    state = add_query(registry, "fast", "healthy", 100, batches=batches("fast")[:shown], interval=interval)
    state.history.plan = replace(state.history.plan, trigger="real_time")
    told = query_status(state, registry.view(state, NOW))
    assert (told["trigger"], told["verdict"]["summary"]) == ("real_time", said)
