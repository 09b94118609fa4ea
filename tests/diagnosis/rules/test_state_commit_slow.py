import pytest

from ledgerops.diagnosis.rules.state_commit_slow import RULE
from tests.diagnosis.rules.conftest import stage


def saving(*seconds: float, **more) -> list[dict]:
    return [{"rows": 1000, "commit_seconds": each} | more for each in seconds]


def test_commits_that_grew_against_the_past_are_found(history):
    [finding] = RULE.check(history(warm=14, seconds=[5] * 4, operators=saving(8, 8, 8, 8)))

    assert finding.summary == "saving the state takes 4.0 s of a batch of 5.0 s (usually 0.0 s)"
    assert finding.share == 1.0
    assert [each.name for each in finding.evidence] == [
        "state_commit_wall_seconds",
        "state_commit_share",
        "usual_state_commit_wall_seconds",
    ]


def test_without_a_past_the_commit_must_dominate(history):
    [finding] = RULE.check(history(warm=0, seconds=[5] * 9, operators=saving(*[6.0] * 9)))

    assert finding.summary == "saving the state takes 3.0 s of a batch of 5.0 s"


def test_task_seconds_are_divided_by_the_tasks_that_run_at_once(history):
    case = {"warm": 0, "seconds": [5] * 9, "operators": saving(*[6.0] * 9, shuffle_partitions=16)}

    assert list(RULE.check(history(**case))) == []
    assert len(list(RULE.check(history(**case, cores=2)))) == 1


def test_rocksdb_is_advised_to_save_changes_only(history):
    view = history(warm=14, seconds=[5] * 4, operators=saving(8, 8, 8, 8, custom={"rocksdbPutCount": 7.0}))
    [finding] = RULE.check(view)

    assert "changelogCheckpointing" in finding.remedies[1].action


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"warm": 14, "seconds": [5] * 4}, id="no state"),
        pytest.param(
            {"warm": 14, "seconds": [1.8] * 4, "operators": saving(3, 3, 3, 3)}, id="most of the batch, but no harm"
        ),
        pytest.param({"warm": 14, "seconds": [5] * 4, "operators": saving(2, 2, 2, 2)}, id="something else is slow"),
        pytest.param({"warm": 14, "seconds": [1, 1, 5, 1], "operators": saving(0, 0, 8, 0)}, id="one slow commit"),
        pytest.param(
            {
                "warm": 14,
                "seconds": [5] * 4,
                "operators": saving(8, 8, 8, 8),
                "stages": [[stage(seconds=[4, 4], gc=0.5)]] * 4,
            },
            id="everything waits for garbage collection",
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(warm=14, seconds=[5] * 4, operators=saving(1, 1, 1, 1))

    assert RULE.acquit(view) == "saving the state takes 0.5 s of a batch of 5.0 s"
