import pytest

from ledgerops.analysis.capacity.stages import stages_of
from ledgerops.model.records import TaskSummary
from ledgerops.signals.query_view import QueryView
from tests.analysis.capacity.conftest import stage, stages
from tests.build import T0, batch, history
from tests.tables import cases


@cases(
    "work, cores, factor",
    ("many tasks share twice the cores", stage([0.4] * 8, wall=1.6), 4, 0.5),
    ("a core for each", stage([0.4] * 8, wall=1.6), 8, 0.25),
    ("more cores than tasks", stage([0.4] * 8, wall=1.6), 32, 0.25),
    ("half the cores", stage([0.4] * 8, wall=1.6), 1, 2.0),
    ("two partitions", stage([0.8, 0.8], wall=0.8), 8, 1.0),
    ("one task has nearly all", stage([1.6, 0.1, 0.1, 0.1], wall=1.6), 8, 1.0),
    ("what it waits stays", stage([0.4] * 8, wall=2.0), 8, 0.4),
)
def test_time_in_tasks_with_other_cores(work, cores, factor):
    assert stages(work, cores=2).factor(cores) == pytest.approx(factor, rel=0.15)


@cases(
    "work, cores, stateful, bound",
    ("source partitions", stage([0.4] * 5, shuffle=False), 8, True,
     ("source_partitions", "the source stage has 5 tasks")),
    ("state partitions", stage([0.4] * 2), 8, True,
     ("state_partitions", "the state stage has 2 tasks, fixed by the checkpoint (Spark 4.2 can change it)")),
    ("shuffle partitions", stage([0.4] * 2), 8, False,
     ("shuffle_partitions", "the stage after the shuffle has 2 tasks")),
    ("one hot key", stage([2.0, 0.1, 0.1, 0.1], records=[900, 30, 40, 30]), 4, True,
     ("hot_key", "one of 4 tasks reads 90% of the rows of its stage")),
    ("one full source partition", stage([2.0, 0.1, 0.1, 0.1], records=[900, 30, 40, 30], shuffle=False), 4, True,
     ("source_skew", "one of 4 tasks reads 90% of the rows of its stage")),
    ("one slow task with few rows", stage([2.0, 0.1, 0.1, 0.1]), 4, True,
     ("straggler", "the longest of 4 tasks takes 2.0 s, an even share would be 0.6 s")),
    ("too few cores", stage([0.4] * 8), 2, True, ("cores", "8 tasks share 2 cores")),
)  # fmt: skip
def test_what_bounds_the_tasks(work, cores, stateful, bound):
    assert stages(work, cores=2, stateful=stateful).bound(cores) == bound


def test_the_stage_that_takes_longest_is_the_one_that_bounds():
    small, large = stage([0.1] * 2, shuffle=False), stage([1.0] * 16)
    found = stages(small, large).bound(8)
    assert found is not None and found.what == "cores"


def _view(known: int, in_tasks: float) -> QueryView:
    """Twelve batches of 0.4 s and more, a share of whose time passes in tasks."""
    rows = [1000 + 200 * n for n in range(12)]
    took = [0.4 + n / 5000 for n in rows]
    each = [batch(n, rows=rows[n], duration=took[n], phases={"add_batch": took[n]}) for n in range(12)]
    remembered = history(each)
    for number in range(12 - known, 12):
        whole = stage([in_tasks * took[number]] * 2)
        remembered.tasks.append(TaskSummary("run-1", number, (whole,)))
    return QueryView(remembered, T0 + 30)


def test_the_part_of_the_line_that_passes_in_tasks_is_fitted():
    view = _view(12, 0.75)
    found = stages_of(view, view.batches)

    assert found is not None and found.cores is None
    assert found.of_slope == pytest.approx(0.75) and found.of_overhead == pytest.approx(0.75)


def test_a_few_batches_with_tasks_give_one_share_for_both():
    view = _view(3, 0.6)
    found = stages_of(view, view.batches)

    assert found is not None
    assert found.of_slope == found.of_overhead == pytest.approx(0.6)


def test_one_batch_with_tasks_says_nothing():
    view = _view(1, 0.6)
    assert stages_of(view, view.batches) is None
