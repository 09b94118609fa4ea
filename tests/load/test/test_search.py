import itertools
from dataclasses import replace

import pytest

from ledgerops.load.test import plans
from ledgerops.load.test.search import Rate, SearchSettings, planned_trials, search
from ledgerops.load.test.slo import default_slos, judge, parse
from tests.load.test.simulated import System

SLOS = default_slos(60.0)


class Lab:
    """Runs a system at rates, and remembers in which order."""

    def __init__(self, system, seconds=30.0, spoil=lambda number, measured: measured):
        self.system, self.seconds, self.spoil = system, seconds, spoil
        self.tried = []

    def run(self, rate, why):
        self.tried.append((rate, why))
        measured = self.system.measured(plans.at_rate(rate, 2.0), self.seconds)
        return self.spoil(len(self.tried), measured)

    def search(self, estimate, **settings):
        return search(self.run, SearchSettings(SLOS, **settings), estimate)

    @property
    def again(self):
        """The order of the repetitions."""
        return [rate for rate, why in self.tried if why == "again"]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 6.0])
@pytest.mark.parametrize("overhead", [0.1, 0.8])
def test_the_rate_is_found_wherever_the_estimate_was(share, overhead):
    system = System(overhead=overhead, noise=0.0)
    found = Lab(system).search(share * system.carries())
    assert found.reason == ""
    assert found.low.rate <= system.carries() * 1.02  # a batch of just the interval takes no longer than it
    assert found.high.rate >= system.carries() * 0.98
    assert found.high.rate / found.low.rate <= 1.11


@pytest.mark.parametrize("seed", range(8))
def test_a_noisy_system_is_found_within_the_precision(seed):
    system = System(noise=0.05, wander=0.02, seed=seed)
    found = Lab(system).search(1.3 * system.carries())
    assert found.low.rate == pytest.approx(system.carries(), rel=0.15)
    assert found.high.rate > found.low.rate


def test_both_ends_are_repeated_and_no_other_rate():
    found = Lab(System()).search(24_000.0, repeat=3)
    assert {len(each.trials) for each in (found.low, found.high)} == {3}
    assert {len(each.trials) for each in found.rates if each not in (found.low, found.high)} <= {1}


def test_many_repetitions_are_no_reason_to_give_up():
    found = Lab(System(noise=0.0)).search(24_000.0, repeat=25)
    assert found.reason == ""
    assert {len(each.trials) for each in (found.low, found.high)} == {25}


def test_the_order_of_the_repetitions_is_the_seeds():
    orders = []
    for seed in range(12):
        lab = Lab(System(noise=0.0))
        lab.search(24_000.0, seed=seed, repeat=4)
        orders.append(lab.again)
        assert sorted(lab.again) == sorted(orders[0])
    assert len({tuple(each) for each in orders}) > 3  # some order, and not always the same
    same = Lab(System(noise=0.0))
    same.search(24_000.0, seed=5, repeat=4)
    assert same.again == orders[5]


def test_one_bad_trial_of_three_does_not_decide():
    """The machine stalls once, at a rate that holds otherwise."""
    lab = Lab(System(noise=0.0))
    lab.spoil = lambda number, measured: replace(measured, done=()) if len(lab.again) == 1 else measured
    found = lab.search(24_000.0)
    assert found.low.rate == pytest.approx(24_000, rel=0.11)


def test_a_rate_that_only_held_once_is_given_up():
    """Its first trial was lucky: two of three fail, and the search goes on below it."""
    lucky = System(noise=0.0)

    class Fickle(Lab):
        def run(self, rate, why):
            first = rate not in {each for each, _ in self.tried}
            self.system = System(noise=0.0, per_row=lucky.per_row * (0.8 if first and rate > 24_000 else 1.0))
            return super().run(rate, why)

    found = Fickle(lucky).search(26_000.0)
    assert found.low.rate <= 24_500
    assert found.high.rate >= 24_000


def test_a_job_that_always_fails_has_a_clear_answer():
    lab = Lab(System(overhead=3.0, noise=0.0))
    found = lab.search(10_000.0)
    assert found.low is None
    assert found.reason == "even 320 rows/s failed: batch 3.03 s, wanted < 2 s, the trigger interval"
    assert len(lab.tried) <= 12


def test_a_rate_at_which_no_batch_ended_is_not_told_as_a_measurement():
    lab = Lab(System(), spoil=lambda number, measured: replace(measured, done=()))
    found = lab.search(10_000.0, low=5_000.0)
    assert found.low is None
    assert found.reason == "no batch ended at 5,000 rows/s: the machine is busy or the job does not run"


def test_too_few_batches_are_a_failure_that_says_how_many_ended():
    lab = Lab(System(), spoil=lambda number, measured: replace(measured, done=measured.done[-2:]))
    found = lab.search(10_000.0, low=5_000.0)
    assert found.reason.startswith("even 5,000 rows/s failed: lag slope unknown (")


def test_bounds_are_kept():
    lab = Lab(System())
    found = lab.search(24_000.0, low=2_000.0, high=8_000.0)
    assert {rate for rate, _ in lab.tried} == {8_000.0}
    assert (found.low.rate, found.high) == (8_000.0, None)
    assert found.reason == "8,000 rows/s held and no more was tried: --max"


def test_with_both_bounds_no_estimate_is_needed():
    lab = Lab(System())
    found = lab.search(None, low=10_000.0, high=40_000.0)
    assert lab.tried[0][0] == 20_000.0
    assert found.low.rate == pytest.approx(24_000, rel=0.11)


def test_nothing_to_begin_with_is_said():
    assert Lab(System()).search(None).reason == (
        "no starting point: no batch ended in the first trial; give --min and --max"
    )


def test_a_system_that_cannot_make_up_its_mind_ends():
    calls = itertools.count()

    class Random(Lab):
        def run(self, rate, why):
            self.system = System(overhead=3.0 if next(calls) % 3 else 0.1)
            return super().run(rate, why)

    assert Random(System()).search(20_000.0, precision=0.02, repeat=5) is not None


@pytest.mark.parametrize("bounds", [{"low": 9e6}, {"high": plans.MAX_RATE}, {"low": 1.0, "high": 1e7}, {}])
def test_bounds_of_possible_rates_are_taken(bounds):
    assert SearchSettings(SLOS, **bounds).slos == SLOS


@pytest.mark.parametrize("estimate", [9e6, 3e9])
def test_a_job_that_sustains_all_that_can_be_offered_is_tried_no_higher(estimate):
    lab = Lab(System(overhead=0.1, per_row=1e-9, noise=0.0))
    found = lab.search(estimate)
    assert max(rate for rate, _ in lab.tried) == plans.MAX_RATE
    assert (found.low.rate, found.high) == (plans.MAX_RATE, None)
    assert found.reason == "10,000,000 rows/s held and no more can be tried"


def test_the_plan_of_trials_is_about_what_it_takes():
    lab = Lab(System(noise=0.0))
    settings = SearchSettings(SLOS)
    search(lab.run, settings, 25_000.0)
    assert abs(len(lab.tried) + 1 - planned_trials(settings, estimated=True)) <= 3


def test_the_median_of_three_decides_each_objective():
    found = Lab(System(noise=0.05)).search(24_000.0)
    values = sorted(each[0].value for each in found.high.judged)
    assert found.high.outcomes[0].value == values[1]


@pytest.mark.parametrize(
    ("known", "status"),
    [((True, True, False), "held"), ((True, False, False), "unknown"), ((True, False), "unknown"), ((True,), "held")],
)
def test_most_of_the_trials_must_know(calm, known, status):
    trials = [calm if each else replace(calm, done=()) for each in known]
    rate = Rate(12_000.0, trials, [judge(SLOS, each) for each in trials])
    assert {each.status for each in rate.outcomes} == {status}
    assert rate.held is (status == "held")


def test_a_lower_bound_objective_takes_the_median_too():
    settings = SearchSettings([parse("processed >= 97%")])
    found = search(Lab(System(noise=0.0), seconds=60.0).run, settings, 24_000.0)
    assert found.low is not None
    assert found.high is not None
