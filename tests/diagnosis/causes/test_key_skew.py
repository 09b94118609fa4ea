import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.key_skew import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from tests.diagnosis.conftest import stage
from tests.tables import cases

KEYED = {"keys": ("customer_id",), "stateful": True, "shuffle_partitions": 4}
UNEVEN = [stage("customers", records=[100, 100, 100, 1700], seconds=[0.2, 0.2, 0.2, 3.4])]


def skewed(history, **more):
    told = {"seconds": [4] * 8, "stages": UNEVEN, "phases": {"add_batch": 3.8}, "plan": KEYED, "cores": 4}
    return history(**told | more)


def hot(share: float, key: str = "3fa2") -> dict:
    return {"rows": 1000, "hot_keys": [{"item": key, "count": int(share * 1000)}]}


def test_one_task_that_has_most_of_the_rows_behind_a_shuffle_is_told_with_what_that_costs(history):
    [finding] = check(CAUSE, skewed(history))

    assert finding.summary == (
        "one of 4 tasks of stage 0 reads 85% of the records, which costs 2.4 s of a batch of 4.0 s"
    )
    assert finding.saving_seconds == pytest.approx(3.4 - 4.0 / 4)
    assert (finding.component.name, finding.component.detail) == ("shuffle by customer_id", "customer_id")


def test_the_key_is_named_where_keys_are_counted(history):
    [finding] = check(CAUSE, skewed(history, observed=hot(0.8)))

    assert finding.summary.startswith(
        "key 3fa2 of customer_id has 80% of the rows; more tasks cannot make this stage more than 1.25x faster; one of "
    )
    assert {each.name: each.value for each in finding.evidence}["ledgerops_hot_key_share"] == 0.8


def test_a_hot_key_that_changes_stays_one_finding(history):
    judge = Diagnoser()
    for name in "abc":
        verdict = judge(skewed(history, observed=hot(0.7, name)))
    assert [each.rule for each in verdict.findings].count("key-skew") == 1


def test_of_a_stateful_query_nobody_is_told_to_add_partitions(history):
    [stateful], [stateless] = check(CAUSE, skewed(history)), check(CAUSE, skewed(history, plan={"keys": ("a",)}))
    assert len(stateful.remedies) == 3 and stateful.remedies[2].action.startswith("do not add cores")
    assert [each.safe for each in stateless.remedies] == [True, False]


@cases(
    "stages",
    ("even", [stage(records=[500] * 4, seconds=[1] * 4)]),
    ("one is slow for as many rows", [stage(records=[500] * 4, seconds=[0.2, 0.2, 0.2, 3.4])]),
    ("few rows by chance", [stage(records=[1, 1, 1, 90], seconds=[0.2, 0.2, 0.2, 3.4])]),
    ("the source is uneven", [stage(records=[100, 100, 100, 1700], seconds=[0.2, 0.2, 0.2, 3.4], shuffle=False)]),
    ("all cores stay busy", [stage(records=[400] * 11 + [1000], seconds=[1.0] * 11 + [1.2], wall=3.4)]),
    ("it costs little", [stage(records=[100, 100, 100, 1700], seconds=[0.1, 0.1, 0.1, 0.6])]),
    ("tasks unknown", None),
)
def test_others_are_not(history, stages):
    assert list(check(CAUSE, skewed(history, stages=stages and [stages] * 8))) == []


def test_without_known_cores_no_split_is_called_uneven(history):
    """Over as many slots as tasks a row or ten of each would look like a whale."""
    assert list(check(CAUSE, skewed(history, cores=None))) == []


def test_a_hot_key_that_no_task_feels_is_no_finding(history):
    """Rows are combined before the shuffle."""
    even = [stage(records=[500] * 4, seconds=[0.9] * 4)]
    assert list(check(CAUSE, skewed(history, stages=even, observed=hot(0.8)))) == []


def test_one_long_batch_of_a_query_that_falls_behind_is_enough(history):
    uneven = [stage("customers", records=[1000, *[30] * 7], seconds=[40.0, *[1.0] * 7])]
    long = {"warm": 0, "seconds": [9.0, 21.0, 43.0], "rows": [0, 550, 1240], "cores": 8}
    [finding] = check(CAUSE, skewed(history, **long, stages=[[], uneven, uneven], phases={"add_batch": 41.0}))
    assert finding.share is not None and finding.share > 0.5
