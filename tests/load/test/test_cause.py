from dataclasses import replace

import pytest

from ledgerops.analysis.capacity.fit import Interval
from ledgerops.analysis.finding_history import FindingPeriod
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.load.test import plans
from ledgerops.load.test.cause import causes, examine, overload, peak
from ledgerops.load.test.driver import TrialRequest
from ledgerops.model.finding import Component, Finding
from tests.load.test.simulated import ORIGIN, System
from tests.tables import cases

CARRIES = Interval(24_000.0, 23_000.0, 25_000.0)


def period(rule, summary="told", rooted=3, began=ORIGIN + 30, **more):
    finding = Finding(
        summary, Component("query", "daily_counts"), (), rule=rule, severity="warning", since=began, **more
    )
    return FindingPeriod("daily_counts", finding, began, began, rooted=rooted)


def at(rate, **changes):
    return System(noise=0.0, **changes).measured(plans.at_rate(rate, 2.0), seconds=60.0)


def test_more_than_is_sustainable_is_an_overload_before_any_rule_speaks():
    [cause] = causes(at(28_800), [], CARRIES)
    assert cause.text == "input-overload (offered 28,800 rows/s, 20% above the sustainable rate of 24,000 rows/s)"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (28_300.0, "1.8% above the sustainable rate of 28,300"),
        (28_750.0, "0.2% above the sustainable rate of 28,750"),
        (10_000.0, "2.9 times the sustainable rate of 10,000"),
    ],
)
def test_how_much_was_offered_is_told_also_where_it_is_little_more(told, said):
    assert said in overload(at(28_800), Interval(told, told, told)).because


@pytest.mark.parametrize("rate", [12_000, 21_600, 23_900])
def test_what_is_sustainable_is_no_overload(rate):
    assert causes(at(rate), [], CARRIES) == []


@cases(
    "told, cause",
    ("a fit that is too high", 29_500.0, "offered 29k rows/s, at which a batch takes"),
    ("half of the capacity: it is something else that takes long", 60_000.0, ""),
)
def test_batches_that_outlast_their_interval_near_the_capacity_are_an_overload(told, cause):
    found = overload(at(28_800), Interval(told, told, told))
    assert (found.because.partition(" takes")[0] + " takes" if found else "") == cause


def test_batches_that_end_in_time_near_the_capacity_are_none():
    assert overload(at(22_000), Interval(22_500.0, 22_000.0, 23_000.0)) is None


@cases(
    "rate, rules, expected",
    ("a fault first", 28_800, ["slow-sink", "falling-behind"], ["slow-sink", "input-overload"]),
    ("what bounds", 28_800, ["python-bound", "trigger-overrun"], ["input-overload", "python-bound"]),
    ("the diagnosis' own overload only once", 28_800, ["input-overload"], ["input-overload"]),
    ("a symptom alone as it is", 12_000, ["trigger-overrun"], ["trigger-overrun"]),
)
def test_causes_come_in_their_order(rate, rules, expected):
    found = causes(at(rate), [period(rule) for rule in rules], CARRIES)
    assert [each.rule for each in found] == expected
    assert {each.because for each in found if each.rule != "input-overload"} <= {"told"}


def test_of_two_causes_each_says_what_it_takes_of_a_batch():
    sink = period("slow-sink", "the sink takes long", saving_seconds=2.1)
    python = period("python-bound", "Python workers take 0.60 s of a batch of 3.1 s", saving_seconds=0.6)
    assert [each.because for each in causes(at(12_000), [sink, python], CARRIES)] == [
        "the sink takes long; 2.1 s of a batch",
        "Python workers take 0.60 s of a batch of 3.1 s",
    ]
    assert [each.because for each in causes(at(12_000), [sink], CARRIES)] == ["the sink takes long"]


def test_a_finding_that_was_never_a_root_cause_is_none():
    assert causes(at(12_000), [period("key-skew", rooted=0)], CARRIES) == []


def test_without_a_capacity_what_was_left_over_tells_the_overload():
    cause = overload(at(36_000), None)
    assert cause is not None
    assert cause.text == "input-overload (80% of the 36k rows/s offered were processed)"
    assert overload(at(12_000), None) is None


def test_a_failed_run_failed_of_that():
    found = causes(at(12_000, fails="the driver was killed by signal 9"), [], CARRIES)
    assert found[0].text == "query-failed (the driver was killed by signal 9)"


def test_the_load_is_what_was_offered_for_ten_seconds_and_not_a_moment():
    burst = parse_plan("phases: [{shape: burst, base: 100, peak: 1000, every: 30s, length: 2s}]")
    run = System().measured(burst, seconds=60.0)
    assert peak(run) == pytest.approx((2 * 1000 + 8 * 100) / 10)


@pytest.fixture
def performed(tmp_path):
    """The recording and the measures of a run at a rate."""

    def perform(rate, seconds=60.0):
        wanted = TrialRequest(("daily_counts",), plans.at_rate(rate, 2.0), 20.0, seconds, 2.0)
        trial = System().perform(wanted, tmp_path, lambda what, share: None)
        return trial.recording, trial.measured()["daily_counts"]

    return perform


def test_a_recording_is_examined_as_diagnose_does(performed):
    recording, measured = performed(28_800)
    [found] = examine(recording, [measured])
    assert found.sustainable.value == pytest.approx(24_000, rel=0.1)
    assert found.causes[0].rule == "input-overload"
    assert len(found.track.batches) > 15


@pytest.mark.parametrize("seconds", [30.0, 60.0, 300.0])
def test_the_capacity_of_a_steady_run_is_known_by_its_warm_up(performed, seconds):
    recording, measured = performed(18_000, seconds)
    [found] = examine(recording, [measured])
    assert found.sustainable.value == pytest.approx(24_000, rel=0.1)
    assert found.causes == []


def test_a_recording_that_is_not_there_explains_nothing(tmp_path, calm):
    [found] = examine(tmp_path / "none", [calm])
    assert (found.causes, found.sustainable, found.track) == ([], None, None)
    assert "no such file" in found.unknown_because


def test_a_job_that_the_recording_does_not_know_hides_no_other(performed, calm):
    recording, measured = performed(28_800)
    gone, known = examine(recording, [replace(calm, job="large_credits"), measured])
    assert (gone.causes, gone.sustainable) == ([], None)
    assert gone.unknown_because == f"no query 'large_credits' in {recording}; the queries are daily_counts"
    assert known.causes[0].rule == "input-overload"
