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


def told_of(query, batches=(), at=NOW, change=None, status="healthy", interval=2.0):
    """The status of the one query of an application, after a `change` of its history."""
    registry = QueryRegistry(no_judge)
    state = add_query(registry, query, status, 100, batches=batches, interval=interval)
    if change is not None:
        change(state.history)
    return query_status(state, registry.view(state, at))


def test_every_query_is_shown_by_name_in_json_without_nan_or_infinity(document):
    assert [each["query"] for each in document["queries"]] == sorted(demo_fleet().queries)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_query_that_is_found_ill_carries_its_root_cause_with_evidence_and_remedy(document):
    verdict = of(document, "daily_counts")["verdict"]
    skew = {"name": "ledgerops_skew_ratio", "value": 14.9, "unit": "ratio", "expected": "<= 3"}
    assert (verdict["rule"], verdict["severity"], verdict["summary"]) == ("key-skew", "critical", KEY_SKEW.summary)
    assert verdict["why"].startswith("skew ratio 14.90 (expected at most 3)")
    assert verdict["evidence"][0] == skew
    assert verdict["remedies"][0]["action"] == "aggregate in two steps, with a salt on the key"


def test_a_healthy_query_says_how_much_of_its_capacity_is_used(document):
    verdict = of(document, "large_credits")["verdict"]
    summary = "no problem found; running at 19% of the sustainable rate"
    assert (verdict["rule"], verdict["summary"]) == (None, summary)


@pytest.mark.parametrize(
    ("status", "told", "summary"),
    [
        ("pressured", batches("q", seconds=1.85), "under pressure; running at 87% of the sustainable rate"),
        ("starting", batches("q", seconds=1.0)[:1], "one batch so far, too few to judge"),
        ("starting", batches("q", seconds=1.0)[:2], "2 batches so far, too few to judge"),
    ],
    ids=["under pressure without a finding", "one batch", "two batches"],
)
def test_what_is_said_of_a_query_that_is_not_well_or_not_judged(status, told, summary):
    assert told_of("q", told, status=status)["verdict"]["summary"] == summary


def test_a_reader_of_a_table_says_what_is_unread_and_how_old_it_is():
    def read(history):
        history.add_tables(Tables(NOW, "run-1", {"bronze": TableRead(9, 3, 7, 700, NOW - 90)}))

    def read_and_end(history):
        read(history)
        history.end(NOW, "run-1", None, None)

    told = told_of("silver", batches("silver"), change=read)
    assert (told["unread"], told["lag_seconds"]) == ({"versions": 3, "files": 7, "bytes": 700}, 90.0)
    assert told_of("silver", batches("silver"))["unread"] is None
    assert told_of("silver", batches("silver"), change=read_and_end)["unread"] is None


def test_a_query_before_its_first_batch_has_no_figures(document):
    told = of(document, "debit_credit_pairs")
    assert told["verdict"]["summary"] == "waiting for the first batch"
    for name in ("backlog", "drain_seconds", "batch", "watermark_lag", "state", "skew"):
        assert told[name] is None
    assert set(told["rates"].values()) == {None}
    assert told["series"] == {name: [] for name in SERIES}


@pytest.mark.parametrize(("tasks", "said"), [((3, 200, 37), "; 37 of 200 tasks done"), ((1, 0, 0), ""), ((), "")])
def test_a_long_first_batch_shows_how_far_it_is(tasks, said):
    running = Running(NOW, "run-1", NOW - 140, "Processing new data", *tasks)
    told = told_of("young", change=lambda history: history.set_running(running), status="starting")
    assert told["verdict"]["summary"] == f"its first batch has been running for 2 min 20 s{said}"


def test_an_idle_query_has_rates_of_zero_and_keeps_its_last_batch(document):
    told = of(document, HOSTILE)
    rates = [told["rates"][name] for name in ("arrival", "input", "processed")]
    assert (rates, told["batch"]["id"]) == ([0.0, 0.0, 0.0], 39)


def test_a_failed_query_has_no_rates_but_keeps_its_totals(document):
    told = of(document, "enriched_transactions")
    assert set(told["rates"].values()) == {None}
    assert (told["watermark_lag"], told["busy_ratio"], told["ended_at"]) == (None, None, NOW - 100)
    assert told["batch"]["id"] == 59


def test_state_is_summed_over_the_operators_and_dropped_rows_over_all_batches():
    operators = (operator(rows=3, memory_bytes=10), operator(name="dedupe", rows=4, memory_bytes=20, dropped_rows=5))
    told = told_of("joined", stream([100, 200, 300], [100, 200, 300], operators=operators), at=T0 + 6)
    assert (told["state"], told["dropped_rows"]) == ({"rows": 7, "bytes": 30}, 15)


def test_the_series_tell_arrival_by_the_heads_and_input_by_what_was_read():
    series = told_of("behind", stream([100, 500, 900], [100, 200, 300]), at=T0 + 6)["series"]
    assert (series["arrival"], series["input"]) == ([None, 200.0, 200.0], [None, 50.0, 50.0])
    assert series["backlog"] == [0, 300, 600]

    asks = stream([100, 500, 1100], [100, 200, 300])
    asks[-1] = replace(asks[-1], phases={"latest_offset": 1.0, "add_batch": 0.4})  # from look to look
    assert told_of("asks", asks, at=T0 + 6)["series"]["arrival"] == [None, 200.0, 200.0]
    back = stream([500, 100], [500, 500])
    assert told_of("reset", back, at=T0 + 6)["series"]["arrival"] == [None, None]


def test_the_series_cover_the_last_minutes_and_hold_few_points():
    at = told_of("fast", batches("fast", count=1000, seconds=0.2, gap=0.5))["series"]["at"]
    assert len(at) <= SERIES_POINTS + 1
    assert at == sorted(at)
    assert NOW - SERIES_SECONDS <= at[0] <= NOW - SERIES_SECONDS + 20  # the trend goes on where batches are forgotten
    assert at[-1] > NOW - 2


def test_a_clock_that_was_set_back_gives_no_rate():
    told = batches("back", count=400, seconds=0.2, gap=0.5)

    def set_back(history):
        first, second, *rest = history.trend
        history.trend.clear()
        history.trend.extend([first, first, second, first, *rest])
        history.batches.append(replace(told[-1], started=told[-2].started - 1.0))

    rates = told_of("back", told, change=set_back)["series"]["input"]
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
    def real_time(history):
        history.plan = replace(history.plan, trigger="real_time")

    told = told_of("fast", batches("fast")[:shown], change=real_time, interval=interval)
    assert (told["trigger"], told["verdict"]["summary"]) == ("real_time", said)


@pytest.mark.parametrize("ended", [False, True])
def test_a_continuous_query_waits_for_no_batch(ended):
    def continuous(history):
        history.plan = replace(history.plan, trigger="continuous")
        if ended:
            history.end(NOW, "run-1", None, None)

    told = told_of("steady", change=continuous, status="stopped" if ended else "starting", interval=1.0)
    said = "stopped cleanly" if ended else "continuous mode; not judged: Spark reports nothing of it"
    assert told["verdict"]["summary"] == said
