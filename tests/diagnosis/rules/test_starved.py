"""Whether a query waits for cores: not where the application's own processes, and no other query, use the machine."""

import pytest

from ledgerops.diagnosis.starvation import starved
from tests.diagnosis.rules.conftest import stage
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour

QUICK = stage("save", seconds=[0.4, 0.3], wall=0.4)
WAITS = stage("save", seconds=[3.5, 3.4], wall=3.6, cpu=0.2)
SLOW = {"add_batch": 4.0, "query_planning": 0.5}  # planning takes longer, too


@pytest.fixture
def slowed(history):
    """A query whose batches take five times as long in all their parts, on two cores that are busy."""

    def make(**machine):
        view = history(
            warm=14, warm_stages=[QUICK], seconds=[5] * 4, phases=[SLOW] * 4, stages=[[WAITS]] * 4, cores=None
        )
        return looked_at(view, **machine)

    return make


@pytest.mark.parametrize(
    ("machine", "waits"),
    [
        pytest.param({"driver_jvm": 1.9}, False, id="its own JVM uses the cores"),
        pytest.param({"driver_jvm": 0.3, "python_workers": 1.6}, False, id="its own Python workers do"),
        pytest.param({"driver_jvm": 0.4}, True, id="other processes do"),
        pytest.param({"driver_jvm": 1.9, "quiet_for": 60.0}, True, id="nobody knows who does"),
        pytest.param({"driver_jvm": 0.4, "busy": 0.5}, False, id="the machine has free cores"),
    ],
)
def test_a_query_waits_for_cores_that_others_use(slowed, machine, waits):
    assert starved(slowed(**machine)) is waits


def test_a_query_waits_for_cores_that_another_query_of_the_driver_uses(slowed):
    view = slowed(driver_jvm=1.9)

    assert starved(beside(view, neighbour(view, heavy_since=20.0))) is True
    assert starved(beside(view, neighbour(view, heavy_since=None))) is False
