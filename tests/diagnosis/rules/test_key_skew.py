import pytest

from ledgerops.diagnosis.rules.key_skew import RULE
from tests.diagnosis.rules.conftest import stage

KEYED = {"keys": ("customer_id",), "stateful": True, "shuffle_partitions": 2}


def hot(share: float, rows: int = 1000, key: str = "3fa2", column: str | None = None) -> dict:
    told = {"rows": rows, "hot_keys": [{"item": key, "count": int(share * rows)}]}
    return told | ({"key": column} if column else {})


def test_a_hot_key_is_named_with_its_share(history):
    [finding] = RULE.check(history(seconds=[1] * 4, observed=[hot(0.8)] * 4, plan=KEYED))

    assert finding.summary == (
        "key 3fa2 of customer_id has 80% of the rows; more tasks cannot make this stage more than 1.25x faster"
    )


def test_uneven_tasks_are_named_with_their_stage(history):
    uneven = [stage("customers", records=[100, 900])]
    [finding] = RULE.check(history(seconds=[1] * 4, stages=[uneven] * 4, plan=KEYED))

    assert finding.summary == "one of 2 tasks of stage 0 reads 90% of the records"
    assert finding.component.detail == "customer_id"


def test_both_agree(history):
    uneven = [stage("customers", records=[100, 900])]
    [finding] = RULE.check(history(seconds=[1] * 4, stages=[uneven] * 4, observed=[hot(0.8)] * 4, plan=KEYED))

    assert finding.component.kind == "stage"
    assert {each.name for each in finding.evidence} >= {"ledgerops_hot_key_share", "largest_task_share"}
    assert finding.confidence > 0.9


def test_a_hot_key_that_changes_stays_one_finding(history):
    observed = [hot(0.7, key=key) for key in ("a", "b", "c", "d")]

    assert len(list(RULE.check(history(seconds=[1] * 4, observed=observed, plan=KEYED)))) == 1


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1] * 4, "observed": [hot(0.045)] * 4, "plan": KEYED}, id="mild Zipf"),
        pytest.param({"seconds": [1] * 4, "observed": [hot(0.4)] * 4, "plan": KEYED}, id="40 % cost two tasks little"),
        pytest.param(
            {"seconds": [1] * 4, "observed": [hot(0.2)] * 4, "plan": KEYED | {"shuffle_partitions": 8}},
            id="a fifth of the rows leaves room for five tasks",
        ),
        pytest.param({"seconds": [1] * 4, "observed": [hot(0.9, rows=20)] * 4, "plan": KEYED}, id="a trickle"),
        pytest.param(
            {"seconds": [1] * 4, "observed": [hot(0.1), hot(0.1), hot(0.9), hot(0.1)], "plan": KEYED}, id="one batch"
        ),
        pytest.param({"seconds": [1] * 4, "observed": [hot(0.8)] * 4, "plan": {"stateful": False}}, id="no shuffle"),
        pytest.param(
            {
                "seconds": [1] * 4,
                "observed": [hot(0.8, column="customer_id")] * 4,
                "plan": KEYED | {"keys": ("transaction_id",)},
            },
            id="rows are shuffled by another key",
        ),
        pytest.param(
            {
                "seconds": [1] * 4,
                "observed": [hot(0.8)] * 4,
                "stages": [[stage(records=[480, 520])]] * 4,
                "plan": KEYED,
            },
            id="the tasks are even",
        ),
        pytest.param(
            {"seconds": [1] * 4, "observed": [hot(0.8)] * 4, "stages": [[stage(records=[4, 6])]] * 4, "plan": KEYED},
            id="rows are combined before the shuffle",
        ),
        pytest.param(
            {"seconds": [1] * 4, "stages": [[stage(records=[10, 90])]] * 4, "plan": KEYED}, id="few records by chance"
        ),
        pytest.param(
            {"seconds": [1] * 4, "stages": [[stage(records=[100, 900], shuffle=False)]] * 4}, id="the source is uneven"
        ),
        pytest.param(
            {"seconds": [1] * 4, "stages": [[stage(records=[400] * 4 + [1000])]] * 4, "cores": 2, "plan": KEYED},
            id="uneven, but two cores stay busy",
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    even = history(seconds=[1] * 4, stages=[[stage("customers", records=[480, 520])]] * 4)

    assert RULE.acquit(even) == "the largest of 2 tasks of stage 0 reads 52% of the records"
    assert RULE.acquit(history(seconds=[1] * 4, observed=[hot(0.045)] * 4)) == ("the hottest key has 4.5% of the rows")
    assert RULE.acquit(history(seconds=[1] * 4)) is None


def test_without_a_look_at_the_executors_no_split_is_called_uneven(history):
    """One row or ten of a task among 200 is chance; over as many slots as tasks it would look like a whale."""
    uneven = stage(records=[1] * 100 + [10] * 40 + [40] * 4, seconds=[0.1] * 144)

    assert list(RULE.check(history(seconds=[1] * 6, stages=[[uneven]] * 6, cores=None))) == []
    assert RULE.acquit(history(seconds=[1] * 6, stages=[[uneven]] * 6, cores=None)) is None


LONG = {"warm": 0, "seconds": [9.0, 21.0, 43.0], "rows": [0, 550, 1240], "plan": KEYED, "cores": 8}


def test_one_long_batch_of_a_query_that_falls_behind_is_enough(history):
    uneven = [stage("customers", records=[1000, *[30] * 7], seconds=[40.0, *[1.0] * 7], wall=40.0)]
    [finding] = RULE.check(history(stages=[[], uneven, uneven], **LONG))

    assert finding.share is not None
    assert finding.share > 0.5


def test_a_long_first_batch_is_enough_until_a_second_one_has_ended(history):
    uneven = [stage("customers", records=[1000, *[30] * 7], seconds=[50.0, *[2.0] * 7], wall=50.0)]
    case = LONG | {"interval": 0.0, "plan": KEYED | {"trigger": None}, "seconds": [53.0], "rows": [1210]}

    assert list(RULE.check(history(**case, stages=[uneven])))
    assert list(RULE.check(history(**case | {"seconds": [53.0, 3.0], "rows": 900}, stages=[uneven, []]))) == []


def test_even_tasks_of_long_batches_are_no_skew(history):
    even = [stage("customers", records=[150] * 8, seconds=[20.0] * 8, wall=20.0)]

    assert list(RULE.check(history(stages=[[], even, even], **LONG))) == []
