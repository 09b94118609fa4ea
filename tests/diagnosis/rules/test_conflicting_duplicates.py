import pytest

from ledgerops.diagnosis.rules.conflicting_duplicates import RULE
from tests.diagnosis.conftest import observed_by_name, told_by
from tests.tables import cases


def conflicts(rows, *ids):
    return {"ledgerops_conflicts": {"conflicts": rows, "ids": [{"item": each, "count": 1} for each in ids]}}


def after(history, *observed, **changes):
    return observed_by_name(history(seconds=[1] * len(observed), warm=0, **changes), observed)


def test_copies_that_contradict_are_found_in_a_query_that_is_quick(history):
    [finding] = RULE.check(after(history, conflicts(0), conflicts(4, "a1", "b2"), conflicts(6, "c3", "d4")))

    assert finding.summary == (
        "10 rows repeat an earlier transaction id with different contents, 0.33% of the rows of the latest 3 "
        "batches (hashed: c3, d4, a1)"
    )
    assert (finding.component.kind, finding.component.name) == ("source", "transactions")
    assert told_by(finding) == {"conflicting_rows": 10, "conflicting_share": 10 / 3000, "conflicting_batches": 2}


def test_one_of_a_million_is_found_without_a_sample_too(history):
    observed = {"ledgerops_conflicts_mine": {"conflicts": 1}}

    [finding] = RULE.check(after(history, observed, rows=1_000_000))

    assert finding.summary == (
        "1 row repeats an earlier transaction id with different contents, 0.00% of the rows of the latest batch"
    )


@cases(
    "observed",
    ("a job that does not look", [{}]),
    ("exact copies only", [conflicts(0), conflicts(0)]),
    ("counts are null", [{"ledgerops_conflicts": {"conflicts": None, "ids": None}}]),
    ("somebody else's observation", [{"conflicts": {"conflicts": 5}}]),
    ("conflicts of long ago", [conflicts(5, "a1"), *[conflicts(0)] * 65]),
)
def test_others_are_not(history, observed):
    assert list(RULE.check(after(history, *observed))) == []


def test_a_query_that_looks_and_finds_none_is_ruled_out(history):
    assert RULE.ruled_out(after(history, conflicts(0))) == (
        "no row of the newest batch repeats a transaction id with different contents"
    )
    assert RULE.ruled_out(after(history, {})) is None


@pytest.mark.parametrize("ids", [7, "a1", {"item": "a1"}, [None, 3, {"item": 4}]])
def test_a_sample_that_is_none_costs_no_count(history, ids):
    [finding] = RULE.check(after(history, {"ledgerops_conflicts": {"conflicts": 4, "ids": ids}}))
    assert finding.evidence[0].value == 4
