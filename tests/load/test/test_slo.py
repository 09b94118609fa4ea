from dataclasses import replace

import pytest

from ledgerops.errors import UserError
from ledgerops.load.test.slo import MEASURES, default_slos, judge, parse
from tests.refusals import refusal_of


@pytest.mark.parametrize(
    ("text", "measure", "comparison", "limit"),
    [
        ("lag < 10s", "lag", "<", 10.0),
        ("p99 latency<5s", "p99 latency", "<", 5.0),
        ("  p99.9   latency  <=  250 ms ", "p99.9 latency", "<=", 0.25),
        ("batch < trigger", "batch", "<", None),
        ("state < 200MB", "state", "<", 200e6),
        ("state rows <= 2M", "state rows", "<=", 2e6),
        ("lag slope <= 1%", "lag slope", "<=", 0.01),
        ("processed >= 0.99", "processed", ">=", 0.99),
        ("max waiting < 1.5m", "max waiting", "<", 90.0),
    ],
)
def test_an_objective_is_a_measure_a_comparison_and_a_value(text, measure, comparison, limit):
    slo = parse(text)
    assert (slo.measure, slo.comparison) == (measure, comparison)
    assert slo.limit == (None if limit is None else pytest.approx(limit))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("fast enough", "write a measure, a comparison and a value, such as 'p99 latency < 5s'"),
        (
            "throughput > 5k",
            "no measure 'throughput'; there are lag, lag slope, batch, p95 batch, max batch, state, state rows, "
            "state growth, processed, and p50|p90|p95|p99|p99.9|max of latency, waiting, working",
        ),
        ("lag < 10", "'10' is not a valid value; write 5s or 200ms or trigger"),
        ("lag < 5%", "'5%' is not a valid value; write 5s or 200ms or trigger"),
        ("state < 200", "'200' is not a valid value; write 200MB"),
        ("state < trigger", "'trigger' is not a valid value; write 200MB"),
        ("lag < -1s", "'-1s' is not a valid value; write 5s or 200ms or trigger"),
        ("lag < nan", "'nan' is not a valid value; write 5s or 200ms or trigger"),
        ("lag slope <= 1s", "'1s' is not a valid value; write 1%"),
        ("lag < 1s; rm", "'1s; rm' is not a valid value; write 5s or 200ms or trigger"),
    ],
)
def test_what_is_no_objective_is_refused_with_a_hint(text, hint):
    assert refusal_of(parse, text) == f"--slo {text!r}: {hint}"


@pytest.mark.parametrize("text", ["", "lag", "< 5s", "lag = 5s", "lag < < 5s", "lag < 5s and batch < trigger"])
def test_anything_else_is_refused(text):
    with pytest.raises(UserError):
        parse(text)


def test_a_calm_run_holds_every_default(calm):
    assert [each.status for each in judge(default_slos(60.0), calm)] == ["held"] * 4


def test_an_overloaded_run_holds_none_of_lag_latency_and_batch(overloaded):
    slos = [parse(each) for each in ("lag slope <= 1%", "p99 latency < 5s", "batch < trigger", "processed > 95%")]
    assert [each.status for each in judge(slos, overloaded)] == ["failed"] * 4


def test_an_outcome_says_what_was_measured_and_what_was_wanted(calm):
    assert parse("batch < trigger").judge(calm).text == "batch 1.2 s, wanted < 2 s, the trigger interval"


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_of_a_run_without_batches_is_unknown_and_fails(calm, measure):
    unit = MEASURES[measure].unit
    generous = {"seconds": "9999h", "ratio": "999999", "bytes": "999999GB", "rows": "999999M"}[unit]
    silent = replace(calm, done=())
    for comparison in ("<", ">="):
        outcome = parse(f"{measure} {comparison} {generous if comparison == '<' else '0' + generous[-1:].lstrip('9')}")
        told = outcome.judge(silent)
        assert (told.status, told.held) == ("unknown", False)
    assert told.reason == "0 batches ended in 30 s, 5 are needed"


def test_a_run_with_too_few_batches_is_unknown_and_not_fast(calm):
    few = replace(calm, done=calm.inside[:4])
    assert parse("p99 latency < 5s").judge(few).text == (
        "p99 latency unknown (4 batches ended in 30 s, 5 are needed), wanted < 5 s"
    )


def test_a_run_that_failed_holds_nothing_whatever_it_did_before(calm):
    died = replace(calm, error="the driver was killed by signal 9")
    assert {each.status for each in judge(default_slos(60.0), died)} == {"unknown"}


def test_without_an_interval_the_word_trigger_is_unknown(calm):
    assert parse("batch < trigger").judge(replace(calm, trigger=None)).status == "unknown"
