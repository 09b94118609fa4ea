import pytest

from ledgerops.load.test import plans
from ledgerops.load.test.estimate import estimate
from ledgerops.load.test.plan_batches import PlanBatch
from tests.build import batch
from tests.load.test.simulated import System


@pytest.mark.parametrize("carries", [1_500.0, 10_000.0, 60_000.0, 300_000.0])
def test_a_load_that_doubles_gives_an_estimate(carries):
    system = System(per_row=1.6 / (2 * carries), noise=0.05)
    seconds = plans.doubling_seconds(2.0)
    run = system.measured(plans.doubling(2.0), seconds, 0.0)
    assert estimate(run.done, 2.0) == pytest.approx(carries, rel=0.35)


def test_the_first_batches_of_a_cold_driver_do_not_count():
    system = System(noise=0.0)
    run = system.measured(plans.doubling(2.0), plans.doubling_seconds(2.0), 0.0)
    warm = estimate(run.done, 2.0)
    cold = [PlanBatch(batch(0, duration=30.0), 0, 10), PlanBatch(batch(1, duration=20.0), 10, 20), *run.done[2:]]
    assert estimate(cold, 2.0) == warm
    assert estimate(cold[:2], 2.0) is None


def test_without_batches_there_is_none():
    assert estimate([], 2.0) is None


def test_a_job_that_never_ends_in_time_is_estimated_by_what_it_worked_off():
    system = System(overhead=3.0, per_row=1e-4, noise=0.0)
    run = system.measured(plans.doubling(2.0), plans.doubling_seconds(2.0), 0.0)
    assert 0 < estimate(run.done, 2.0) < 10_000
