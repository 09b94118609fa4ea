import pytest

from ledgerops.diagnosis.cause import check, ruled_out
from ledgerops.diagnosis.causes.memory_spill import CAUSE
from tests.diagnosis.conftest import stage

MIB = 2**20


def spilling(size: int, seconds: float = 3.0, gc: float = 0.0) -> list:
    return [
        stage("map", wall=0.5),
        stage("save at X.java:0", began=0.5, records=[5000, 5000], seconds=[seconds] * 2, spill=size, gc=gc),
    ]


def late(history, ran, **more):
    return history(**{"seconds": [4] * 8, "stages": [ran] * 8, "phases": [{"add_batch": 3.8}] * 8, "cores": 2} | more)


def test_stages_that_spill_are_told_with_their_size_and_time(history):
    [finding] = check(CAUSE, late(history, spilling(200 * MIB)))

    assert finding.summary == "tasks spill 210 MB per batch; 3.0 s of a batch of 4.0 s pass in stages that do"
    assert finding.component.name == "save"


def test_more_partitions_are_advised_only_without_state(history):
    [stateless] = check(CAUSE, late(history, spilling(200 * MIB)))
    [stateful] = check(CAUSE, late(history, spilling(200 * MIB), plan={"stateful": True}))

    assert [len(each.remedies) for each in (stateless, stateful)] == [3, 2]


@pytest.mark.parametrize(
    ("stages", "more"),
    [
        pytest.param(spilling(0), {}, id="nothing spilled"),
        pytest.param(spilling(MIB), {}, id="a little"),
        pytest.param(spilling(200 * MIB, 0.6), {}, id="another stage takes the time"),
        pytest.param(spilling(200 * MIB, gc=0.8), {}, id="the collector takes it"),
        pytest.param([], {"stages": None}, id="tasks unknown"),
        pytest.param(spilling(200 * MIB), {"interval": 10.0}, id="the query has the time"),
    ],
)
def test_others_are_not(history, stages, more):
    assert list(check(CAUSE, late(history, stages, **more))) == []


def test_it_is_ruled_out_once_a_batch_has_spilled(history):
    assert ruled_out(CAUSE, late(history, spilling(200 * MIB, 0.3))) == "0.30 s of 4.0 s (7%)"
    assert ruled_out(CAUSE, late(history, spilling(0))) is None
