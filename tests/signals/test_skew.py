"""Ratios and scores of skew, None where they are no number."""

from types import SimpleNamespace

import pytest

from ledgerops.model.records import Executor, ExecutorShare, Host
from ledgerops.signals import skew
from ledgerops.signals.cluster import Cluster
from tests.build import T0
from tests.tables import cases


@cases(
    "values, ratio, score",
    ("FLIP-418's own example, by its formula", [1, 1, 1, 5, 10], 10.0, 86.67),
    ("its other example", [1, 1, 5, 5, 5], 1.0, 56.47),
    ("even", [7, 7, 7], 1.0, 0.0),
    ("nothing anywhere", [0, 0, 0], None, 0.0),
    ("all on one: the median is zero, the score is full", [0, 0, 100], None, 100.0),
    ("a single value has no skew", [5], None, 0.0),
    ("no value", [], None, None),
)
def test_skew_of_values(values, ratio, score):
    assert skew.skew_ratio(values) == ratio
    assert skew.skew_score(values) == (None if score is None else pytest.approx(score, abs=0.01))


@pytest.mark.parametrize(
    ("largest", "middle", "found"), [(3.0, 2.0, 1.5), (1.0, 0.0, None), (1.0, -1.0, None), (1e300, 5e-324, None)]
)
def test_a_ratio_that_is_no_number_is_unknown(largest, middle, found):
    assert skew.ratio(largest, middle) == found


def executor(name: str, cores: int) -> Executor:
    return Executor(name, True, cores, 0, 0, 0, 0.0, 0.0, 0, 0)


def of_executors(busy: dict[str, float], tasks: int, *executors: Executor) -> tuple[float, float] | None:
    """The skew of executors in a stage whose tasks kept some busy for so many seconds."""
    shares = {name: ExecutorShare(1, seconds) for name, seconds in busy.items()}
    stage = SimpleNamespace(tasks=tasks, executors=shares, records_median=0.0, seconds_median=0.0)
    cluster = Cluster([Host(T0, 2, 0.5, 2**33, 2**32, None, None, (), executors)])
    return skew.Skew(SimpleNamespace(last=None, widest_stage=stage), cluster).ratios.get("executor")


@cases(
    "busy, tasks, ratio",
    ("one of three does all: three times its even share", {"0": 6.0}, 6, 3.0),
    ("one is idle", {"0": 4.0, "1": 2.0}, 6, 2.0),
    ("even", {"0": 2.0, "1": 2.0, "2": 2.0}, 6, 1.0),
    ("a single task runs on one executor", {"0": 6.0}, 1, None),
    ("two tasks fill two executors", {"0": 6.0}, 2, 2.0),
)
def test_executors_without_a_task_count_in_the_skew_of_executors(busy, tasks, ratio):
    found = of_executors(busy, tasks, executor("driver", 0), *(executor(each, 1) for each in "012"))
    assert (found and found[0]) == ratio


def test_in_local_mode_there_is_no_skew_of_executors():
    assert of_executors({"driver": 2.0}, 2, executor("driver", 2)) is None
