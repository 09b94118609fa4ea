import pytest

from ledgerops.diagnosis.rules.memory_spill import RULE
from tests.diagnosis.rules.conftest import stage

MIB = 2**20


def spilling(size: int, wall: float = 3.0, cpu: float = 0.9) -> list[list]:
    return [
        [stage("map", wall=0.5), stage("save at X.java:0", began=0.5, seconds=[3, 3], wall=wall, cpu=cpu, spill=size)]
    ] * 4


def test_tasks_that_spill_in_late_batches_are_found(history):
    [finding] = RULE.check(history(seconds=[4] * 4, stages=spilling(200 * MIB)))

    assert finding.summary == "tasks spill 200 MiB per batch, and the stages that spill take 75% of the batch time"
    assert finding.component.name == "save"


def test_more_partitions_are_advised_only_without_state(history):
    [stateless] = RULE.check(history(seconds=[4] * 4, stages=spilling(200 * MIB)))
    [stateful] = RULE.check(history(seconds=[4] * 4, stages=spilling(200 * MIB), operators=[{"rows": 1}] * 4))

    assert [len(each.remedies) for each in (stateless, stateful)] == [2, 1]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [4] * 4}, id="no tasks known"),
        pytest.param({"seconds": [4] * 4, "stages": spilling(0)}, id="nothing spilled"),
        pytest.param({"seconds": [4] * 4, "stages": spilling(MIB)}, id="a little"),
        pytest.param({"seconds": [1.8] * 4, "stages": spilling(200 * MIB, wall=1.2)}, id="no harm"),
        pytest.param({"seconds": [9] * 4, "stages": spilling(200 * MIB, wall=2.0)}, id="another stage takes the time"),
        pytest.param({"seconds": [4] * 4, "stages": spilling(200 * MIB, cpu=0.05)}, id="the tasks wait for the sink"),
        pytest.param(
            {"seconds": [4] * 4, "stages": [*spilling(200 * MIB)[:3], *spilling(0)[:1]]}, id="the newest batch did not"
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[4] * 4, stages=spilling(0))

    assert RULE.acquit(view) == "no stage of the latest 3 sampled batches spilled"
