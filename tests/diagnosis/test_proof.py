"""Which numbers prove a finding, and how they read."""

import pytest

from ledgerops.diagnosis.proof import amount, as_expected, confidence, in_words, proof
from tests.tables import cases


def evidence(name, value, unit, expected):
    return {"name": name, "value": value, "unit": unit, "expected": expected}


@pytest.mark.parametrize(
    ("value", "expected", "verdict"),
    [
        (3.0, "< 3", False),
        (2.9, "< 3", True),
        (3.0, "<= 3", True),
        (5.0, ">= 9.9", False),
        (0.0, "0", True),
        (7.0, "0", False),
        (2000.0, "<= 1,000", False),
        (1.1, "about 1.00", True),
        (4.5, "about 0.28", False),
        (0.7, "the usual 1.6", False),
        (9.0, "below 1,000", True),
        (5.0, "> 0 a second", True),
        (2.4e6, "<= 1.2e+06", False),
        (1.1e6, "<= 1.2e+06", True),
        (3e-6, "< 1e-05", True),
        (4.0, "the usual", None),
        (4.0, "below the cap", None),
        (4.0, "all parts together", None),
        (4.0, "a plateau", None),
    ],
)
def test_a_number_is_compared_with_what_is_expected_where_that_is_one(value, expected, verdict):
    assert as_expected(value, expected) is verdict


def test_at_most_three_numbers_are_told_and_none_that_is_as_expected():
    told = proof(
        [
            evidence("profile_seconds", 5.0, "seconds", "the usual 0.7"),
            evidence("after_tasks_seconds", 0.3, "seconds", "about 0.28"),
            evidence("slowdown_at_equal_rows", 0.94, "ratio", "< 1.5"),
            evidence("batch_offsets", 3000.0, "offsets", "below the cap"),
            evidence("ledgerops_source_lag_seconds", 50.0, "seconds", "<= 10"),
            evidence("tasks", 200.0, "count", "<= 6"),
            evidence("other_tasks", 200.0, "count", "<= 6"),
        ]
    )

    assert (
        told
        == "a batch 5.0 s (usually 0.70 s); source lag 50 s (expected at most 10 s); tasks 200 (expected at most 6)"
    )


@cases(
    "value, unit, expected, told",
    ("seconds", 1.52873, "seconds", "< 1.48", "1.53 s (expected below 1.48 s)"),
    ("hardly more", 1.5012, "seconds", "< 1.5008", "1.501 s (expected below 1.5 s)"),
    ("hardly more than a thousand", 1_000.4, "seconds", "<= 1000", "1,000.4 s (expected at most 1,000 s)"),
    ("hardly less", 999.6, "seconds", ">= 1000.4", "999.6 s (expected at least 1,000 s)"),
    ("bytes", 1_234_567.0, "bytes", "<= 1234000", "1,234,567 B (expected at most 1,234,000 B)"),
    ("the limit itself", 3.0, "seconds", "< 3", "3 s (expected below 3 s)"),
)
def test_a_number_beside_its_limit_has_the_digits_that_tell_them_apart(value, unit, expected, told):
    assert proof([evidence("python_seconds", value, unit, expected)]) == f"in Python workers {told}"


def test_nothing_is_told_where_no_number_is_unexpected():
    assert proof([evidence("batches", 3.0, "count", "the usual")]) == ""


@pytest.mark.parametrize(
    ("value", "expected", "text"),
    [(0.0012, "< 0.001", "0.0012"), (0.1996, ">= 0.2", "0.1996"), (0.31, "< 0.25", "0.31"), (0.9, "", "0.90")],
)
def test_a_share_is_not_rounded_to_where_it_would_be_as_expected(value, expected, text):
    assert amount(value, "ratio", expected) == text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ledgerops_query_restarts_total", "query restarts"),
        ("after_tasks_seconds", "after the last task"),
        ("processed_rows_per_second", "processed"),
        ("needed_offsets", "needed"),
        ("seconds_without_arrival", "without arrival"),
    ],
)
def test_names_of_evidence_are_said_in_words(name, words):
    assert in_words(name) == words


@pytest.mark.parametrize(("value", "word"), [(0.95, "high"), (0.85, "high"), (0.7, "medium"), (0.6, "low"), (0, "low")])
def test_confidence_is_a_word(value, word):
    assert confidence(value) == word
