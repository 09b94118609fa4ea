from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.key_skew import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from tests.diagnosis.conftest import stage, told_by
from tests.tables import cases

KEYED = {"keys": ("customer_id",), "stateful": True, "shuffle_partitions": 4}
WHALE = [100, 100, 100, 1700]
UNEVEN, EVEN = [stage(records=WHALE, seconds=[0.2, 0.2, 0.2, 3.4])], stage(records=[500] * 4, seconds=[0.9] * 4)


def skewed(history, **more):
    told = {"seconds": [4] * 8, "stages": UNEVEN, "phases": {"add_batch": 3.8}, "plan": KEYED, "cores": 4}
    return history(**told | more)


def hot(share: float, key: str = "3fa2") -> dict:
    return {"rows": 1000, "hot_keys": [{"item": key, "count": int(share * 1000)}]}


COSTS = "one of 4 tasks of stage 0 reads 85% of the records, which costs 2.4 s of a batch of 4.0 s"
OF_KEY = "key 3fa2 of customer_id has 80% of the rows; more tasks cannot make this stage more than 1.25x faster; "


@cases(
    "observed, said, share", ("the task", None, COSTS, None), ("the key", {"observed": hot(0.8)}, OF_KEY + COSTS, 0.8)
)
def test_one_task_that_has_most_of_the_rows_behind_a_shuffle_is_told_with_what_that_costs(
    history, observed, said, share
):
    [finding] = check(CAUSE, skewed(history, **observed or {}))

    assert finding.summary == said
    assert finding.saving_seconds == pytest.approx(3.4 - 4.0 / 4)
    assert (finding.component.name, finding.component.detail) == ("shuffle by customer_id", "customer_id")
    assert told_by(finding).get("ledgerops_hot_key_share") == share
    assert finding.remedies[0].action.startswith("count the rows of each key" if share is None else "find the hot key")


@cases(
    "wrote, made, step",
    ("a join multiplies them", 9_500_000, ", and makes 9,500,000 rows of 1,700", "narrow the condition of the join"),
    ("as many as it reads", 1_700, "", "salt the key"),
    ("not known", None, "", "salt the key"),
)
def test_rows_that_the_task_makes_of_its_key_are_told(history, wrote, made, step):
    [finding] = check(CAUSE, skewed(history, stages=[replace(UNEVEN[0], slowest_wrote=wrote)]))
    assert finding.summary == COSTS.replace("records", f"records{made}")
    assert finding.remedies[1].action.startswith(step)


@cases(
    "operator, step",
    ("an aggregation", "stateStoreSave", "salt the key"),
    ("a function sees all rows of its key", "applyInPandasWithState", "process the hot key in a query of its own"),
    ("another one", "transformWithStateInPySparkExec", "process the hot key in a query of its own"),
)
def test_rows_of_a_function_are_not_aggregated_in_two_steps(history, operator, step):
    [finding] = check(CAUSE, skewed(history, operators={"name": operator}))
    assert finding.remedies[1].action.startswith(step)


def test_of_a_stateful_query_nobody_is_told_to_add_partitions(history):
    [stateful], [stateless] = check(CAUSE, skewed(history)), check(CAUSE, skewed(history, plan={"keys": ("a",)}))
    assert len(stateful.remedies) == 3 and stateful.remedies[2].action.startswith("do not add cores")
    assert [each.safe for each in stateless.remedies] == [True, False]


@cases(
    "key, condition",
    ("a hash", "789087abc47c", "WHERE sha2(string(`customer_id`), 256) LIKE '789087abc47c%'"),
    ("a key in plain text", "unknown", None),
    ("one as long as a hash", "unknown user", None),
)
def test_a_key_that_is_told_by_its_hash_comes_with_the_condition_that_finds_it(history, key, condition):
    [finding] = check(CAUSE, skewed(history, observed=hot(0.8, key)))

    assert finding.remedies[0].command == condition


def test_a_hot_key_that_changes_stays_one_finding(history):
    judge = Diagnoser()
    for name in "abc":
        verdict = judge(skewed(history, observed=hot(0.7, name)))
    assert [each.rule for each in verdict.findings].count("key-skew") == 1


@cases(
    "ran, more",
    ("even, since rows of a hot key are combined before the shuffle", EVEN, {"observed": hot(0.8)}),
    ("one is slow for as many rows", stage(records=[500] * 4, seconds=[0.2, 0.2, 0.2, 3.4]), {}),
    ("few rows by chance", stage(records=[1, 1, 1, 90], seconds=[0.2, 0.2, 0.2, 3.4]), {}),
    ("the source is uneven", stage(records=WHALE, seconds=[0.2, 0.2, 0.2, 3.4], shuffle=False), {}),
    ("all cores stay busy", stage(records=[400] * 11 + [1000], seconds=[1.0] * 11 + [1.2], wall=3.4), {}),
    ("it costs little", stage(records=WHALE, seconds=[0.1, 0.1, 0.1, 0.6]), {}),
    ("cores unknown: a row or ten of each would look like a whale", UNEVEN[0], {"cores": None}),
)
def test_others_are_not(history, ran, more):
    assert list(check(CAUSE, skewed(history, stages=[ran], **more))) == []


def test_one_long_batch_of_a_query_that_falls_behind_is_enough(history):
    uneven = [stage(records=[1000, *[30] * 7], seconds=[40.0, *[1.0] * 7])]
    long = {"warm": 0, "seconds": [9.0, 21.0, 43.0], "rows": [0, 550, 1240], "cores": 8}
    [finding] = check(CAUSE, skewed(history, **long, stages=[[], uneven, uneven], phases={"add_batch": 41.0}))
    assert finding.share is not None and finding.share > 0.5
