"""Figures of findings that contradict each other: the checker finds those that readers found, the recordings have none,
in their sentences, their evidence and the figures beside them."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ledgerops.analysis.inputs import open_source
from ledgerops.diagnosis.report import document, text
from ledgerops.model.finding import Verdict
from ledgerops.runtime.replay import Replay
from tests.diagnosis.contradictions import disagreements, misstatements
from tests.drills.saved import NAMES, verdicts
from tests.paths import OTHER_RECORDINGS, needed_data
from tests.tables import cases


@pytest.mark.parametrize(
    "said",
    [
        "dropped_share 0.00 (expected < 0.001)",
        "python_seconds_per_row 0.00 s (expected less)",
        "headroom_share 0.20 (expected >= 0.2)",
        "cores_of_the_heaviest 1.0 (expected < 1)",
        "planning_slowdown 0.68 (expected < 1.5)",
        "slowdown_at_equal_rows 0.94 (expected < 1.5)",
        "ledgerops_source_backlog_offsets 0 offsets (expected 0)",
        "3.0 task seconds per batch, 14% of its 10.8 s",
        "no task runs in 0.2 s of a batch of 4.7 s (3%)",
        "115.4 GiB a day; state_bytes_in_a_day 124 GB (expected < 10 GB)",
        "the oldest was 170 s behind the watermark",
        "the oldest was 2.8 min behind the watermark",
        "a row dated 86,378 s ahead of the rest",
        "rows on time are 86,348 s behind it",
        "240 tasks with 0 records and 106 ms each",
        "1.0 s of a batch of 1.0 s pass in the sink",
        "a batch has run for 64 s; the usual is 0.0 s",
        "missing_amount 679k amount (expected 0 amount)",
        "backlog 1, backlog clears in 0.01 s",
        "a batch 2.0 s (expected at most 2.0 s)",
        "source lag 5.0 s (expected below 5.0 s)",
    ],
)
def test_what_was_told_wrong_is_found(said):
    assert list(misstatements(said)) != []


@pytest.mark.parametrize(
    "said",
    [
        "dropped_share 0.0012 (expected < 0.001)",
        "headroom_share 0.1996 (expected >= 0.2)",
        "profile_seconds 5.0 s (expected the usual 0.7)",
        "usual_batch_seconds 0.71 s (expected the usual)",
        "Python workers take 7.7 s of a batch of 8.1 s; usually 0.41 s",
        "a batch 2.1 s (expected at most 2.0 s)",
        "0.07 s of 4.0 s (2%)",
        "0.2 s of a batch of 4.7 s (4%)",
        "the oldest was 2 min 50 s behind the watermark",
        "spilled 511 MB (expected 0 B)",
        "the watermark jumped 24 h ahead of the clock",
        "240 tasks with less than one record each",
        "backlog 1,200, backlog clears in 12 s",
    ],
)
def test_what_is_true_is_left_alone(said):
    assert list(misstatements(said)) == []


def query(summary="", evidence=(), **figures):
    told = [{"name": name, "value": value, "expected": expected} for name, value, expected in evidence]
    return {"figures": figures, "findings": [{"rule": "a-rule", "summary": summary, "evidence": told}]}


BEHIND = {"backlog_offsets": 480_600, "input_rows_per_second": 5424}


@cases(
    "shown",
    ("a backlog without a lag", query(lag_seconds=0.0, **BEHIND)),
    ("evidence of no backlog", query(evidence=[("ledgerops_source_backlog_offsets", 0, "what it was")], **BEHIND)),
    ("evidence that is as expected", query(evidence=[("planning_slowdown", 0.68, "< 1.5")])),
    ("evidence that is as usual", query(evidence=[("sum_seconds", 2.0, "about 2.1")])),
    ("fewer failures than restarts", query("failed 20 times in 46 s", [("ledgerops_query_restarts_total", 28, "0")])),
    ("two lengths", query("it takes 3.8 s of a batch of 9.6 s", [("profile_seconds", 7.6, "the usual 3.0")])),
)
def test_figures_that_disagree_are_found(shown):
    assert list(disagreements(shown)) != []


def wrong(found: Iterable[Verdict]) -> dict[str, str]:
    """What is contradictory in some verdicts, with its first instance."""
    lines: dict[str, str] = {}
    seen = set()
    for verdict in found:
        key = (verdict.findings, verdict.root_causes)
        if not verdict.findings or key in seen:
            continue
        seen.add(key)
        told = document([verdict], verdict.at, "")
        shown = f"{text(told)}\n{text(told, verbose=True)}"
        for each in (*misstatements(shown), *disagreements(told["queries"][0])):
            lines.setdefault(each, f"{verdict.query}: {[finding.summary for finding in verdict.findings]}")
    return lines


def replayed(place: Path) -> Iterable[Verdict]:
    return Replay().verdicts(open_source(str(place)).observations, brief=False)


@pytest.mark.parametrize("name", NAMES)
def test_no_finding_of_a_drill_contradicts_itself(name):
    assert wrong(verdicts(name)) == {}


@pytest.mark.parametrize("place", OTHER_RECORDINGS, ids=str)
def test_no_finding_of_a_recording_contradicts_itself(place):
    assert wrong(replayed(place)) == {}


@pytest.mark.parametrize("read", ["recording", "log/eventlog_v2_*"])
def test_no_finding_of_an_application_contradicts_itself(data_dir, read):
    places = sorted(needed_data(data_dir / "applications").glob(f"*/{read}"))
    assert {str(place): found for place in places if (found := wrong(replayed(place)))} == {}
