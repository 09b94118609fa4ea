"""Answers for an assistant, without its protocol."""

from ledgerops.analysis.answers import Answers
from ledgerops.config import Config
from tests.paths import RECORDED

OVERLOAD = str(RECORDED / "drills" / "overload" / "recording")


def test_what_the_settings_mute_is_listed_as_muted():
    at = "2026-11-21T19:39:32Z"
    assert "muted" not in Answers(OVERLOAD).diagnosis(at=at)

    told = Answers(OVERLOAD, config=Config(mute=("input-overload",))).diagnosis(at=at)
    assert "muted input-overload" in told and "warning input-overload" not in told


def test_results_are_too_old_from_the_age_in_the_settings():
    outage = str(RECORDED / "drills" / "broker-down" / "recording")
    assert "freshness-breach" not in Answers(outage).timeline()
    assert "freshness-breach" in Answers(outage, config=Config(freshness_objective_seconds=5.0)).timeline()


def test_a_metric_of_the_driver_has_no_query_among_its_labels():
    assert "labels: executor" in Answers(OVERLOAD).metric("ledgerops_executor_tasks_total")
    assert "labels: query, source" in Answers(OVERLOAD).metric("ledgerops_input_rows_total")
