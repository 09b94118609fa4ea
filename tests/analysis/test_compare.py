"""Before and after a change: what is said where the truth is known, over many seeds."""

import math

import numpy as np
import pytest

from ledgerops.analysis.batch_samples import BatchSample
from ledgerops.analysis.compare import compare
from tests.build import T0
from tests.tables import cases

SEEDS = 120


def made(random, count=60, rows=1000, spread=0.2, cost=0.0005, fixed=0.3, noise=0.1, correlation=0.5, slower=1.0, **of):
    """Batches every 2 s: a fixed time and a cost for each row, with noise in which consecutive ones are so alike."""
    found = []
    wander = 0.0
    for number in range(count):
        wander = correlation * wander + random.normal()
        many = max(1, int(rows * math.exp(spread * random.normal())))
        seconds = slower * (fixed + cost * many) * math.exp(noise * wander)
        found.append(
            BatchSample(
                started=T0 + 2.0 * number, ended=T0 + 2.0 * number + seconds, rows=many, seconds=seconds,
                phases={"add_batch": seconds - 0.1, "wal_commit": 0.05, "query_planning": 0.05},
                read=many / 2.0, lag=of.get("lag"), state_bytes=of.get("state"),
            ),
        )  # fmt: skip
    return found


def verdict(before, after):
    [found] = compare({"q": before}, {"q": after})
    return found


def over_seeds(before, after, seeds=SEEDS):
    """How often each verdict is given."""
    random = np.random.default_rng(3)
    told = [verdict(made(random, **before), made(random, **after)).verdict for _ in range(seeds)]
    return {each: told.count(each) / seeds for each in set(told)}


@cases(
    "before, after",
    ("same load", {}, {}),
    ("few batches", {"count": 15}, {"count": 25}),
    ("slow waves", {"correlation": 0.9}, {"correlation": 0.9}),
    ("much noise", {"noise": 0.4}, {"noise": 0.4}),
    ("more rows a batch", {"rows": 1000}, {"rows": 1400}),
    ("quite another load", {"rows": 1000, "spread": 0.02}, {"rows": 3000, "spread": 0.02}),
    ("sides of different length", {"count": 200}, {"count": 20}),
)
def test_where_nothing_changed_hardly_ever_is_a_change_told(before, after):
    told = over_seeds(before, after)
    assert told.get("worse", 0) + told.get("better", 0) <= 0.05, told


@pytest.mark.parametrize(("slower", "said"), [(1.4, "worse"), (0.65, "better")])
@pytest.mark.parametrize("rows", [1000, 1300], ids=["same load", "more rows"])
def test_a_change_that_matters_is_nearly_always_told(slower, said, rows):
    told = over_seeds({}, {"slower": slower, "rows": rows})
    assert told.get(said, 0) >= 0.95, told


def test_batches_without_rows_are_no_part_of_the_load():
    random = np.random.default_rng(5)
    idle = [each._replace(rows=0, read=0.0) for each in made(random)]
    sparse = [each for pair in zip(made(random), idle, strict=True) for each in pair]
    assert verdict(sparse, made(random)).before.rows_per_second == pytest.approx(500, rel=0.1)


def test_with_enough_batches_no_effect_is_shown_and_not_assumed():
    told = over_seeds({"count": 300, "correlation": 0.2}, {"count": 300, "correlation": 0.2}, seeds=30)
    assert told.get("no effect", 0) >= 0.95, told


def test_a_change_of_five_percent_is_no_effect():
    told = over_seeds({"count": 400, "noise": 0.04}, {"count": 400, "noise": 0.04, "slower": 1.05}, seeds=30)
    assert told == {"no effect": 1.0}


def test_twenty_queries_are_not_twenty_chances_of_a_false_alarm():
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(12):
        sides = [{f"q{number}": made(random, count=40) for number in range(20)} for _ in range(2)]
        wrong += any(each.verdict in ("better", "worse") for each in compare(*sides))
    assert wrong <= 1
    assert compare(*sides)[0].measures[0].probability == pytest.approx(1 - 0.05 / 20)


def test_the_phase_that_made_the_difference_is_told_and_no_other():
    random = np.random.default_rng(6)
    found = verdict(made(random), made(random, slower=1.6))

    assert found.verdict == "worse" and found.because == "batch duration"
    assert {each.name: each.verdict for each in found.phases} == {
        "add_batch": "worse",
        "query_planning": "no effect",
        "wal_commit": "no effect",
    }


def test_phases_are_not_told_where_the_duration_did_not_change():
    random = np.random.default_rng(6)
    assert verdict(made(random), made(random)).phases == ()


@cases(
    "before, after, because",
    ("too few", made(np.random.default_rng(1), 5), made(np.random.default_rng(2)),
     "too few batches of the same size: 4 before, 45 after"),
    ("another load", made(np.random.default_rng(1), spread=0.01),
     made(np.random.default_rng(2), spread=0.01, rows=9000),
     "batches have other sizes: 1,000 rows before, 8,988 after"),
    ("only after", [], made(np.random.default_rng(2)), "no batches before the change"),
    ("too much noise", made(np.random.default_rng(1), noise=0.5, correlation=0.0),
     made(np.random.default_rng(2), noise=0.5, correlation=0.0, slower=1.02), "too much variation"),
)  # fmt: skip
def test_what_cannot_be_told_is_said_with_the_reason(before, after, because):
    found = verdict(before, after)
    assert found.verdict == "cannot tell" and found.because.startswith(because), found.because


def test_a_trend_is_worth_few_batches():
    """State that grows all the time is larger afterwards, whatever was changed."""
    random = np.random.default_rng(4)
    before, after = made(random), made(random)
    before = [each._replace(state_bytes=1e7 + 1e5 * number) for number, each in enumerate(before)]
    after = [each._replace(state_bytes=2e7 + 1e5 * number) for number, each in enumerate(after)]
    state = next(each for each in verdict(before, after).measures if each.name == "state memory")

    assert state.verdict == "cannot tell" and "consecutive batches are so similar" in state.because


def lagging(random, lag, **more):
    return [each._replace(lag=lag * math.exp(0.1 * random.normal())) for each in made(random, **more)]


def test_a_lag_that_grew_with_the_load_says_nothing_of_the_change():
    random = np.random.default_rng(4)
    before, after = lagging(random, 4.0), lagging(random, 30.0, rows=1400)
    lag = next(each for each in verdict(before, after).measures if each.name == "lag")
    assert lag.verdict == "cannot tell" and lag.because == "the load differs: 515 rows/s before, 704 after"


def test_a_lag_that_grew_at_the_same_load_is_worse():
    random = np.random.default_rng(4)
    found = verdict(lagging(random, 4.0, count=90), lagging(random, 30.0, count=90))
    assert (found.verdict, found.because) == ("worse", "lag")


def test_what_is_better_and_worse_at_once_is_left_to_the_reader():
    random = np.random.default_rng(4)
    found = verdict(lagging(random, 4.0, count=90), lagging(random, 30.0, count=90, slower=0.6))
    assert found.verdict == "cannot tell"
    assert found.because == "measures disagree: batch duration better, lag worse"
