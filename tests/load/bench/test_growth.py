import pytest

from ledgerops.config import Config
from load.bench.growth import FedWorker, Spent, exponent
from tests.tables import cases


@cases(
    "costs, slope",
    ("a cost that does not grow", [3, 3, 3], 0),
    ("proportional", [2, 20, 200], 1),
    ("with the square", [1, 100, 10_000], 2),
)
def test_the_exponent_tells_how_a_cost_grows(costs, slope):
    assert exponent([1, 10, 100], costs) == pytest.approx(slope)


def test_one_size_shows_no_growth():
    with pytest.raises(ValueError, match="is constant"):
        exponent([5, 5], [1, 2])


def test_the_worker_is_fed_whole_batches_and_nothing_of_it_fails(tmp_path):
    fed = FedWorker(queries=3, partitions=4, folder=tmp_path).remember(6).measure(10)
    took, size, series = fed.scrape()

    assert len(fed.worker.snapshot.queries) == 3
    assert all(len(query.state.history.batches) >= 7 for query in fed.worker.snapshot.queries.values())
    assert not fed.stats.collector_errors
    assert len(fed.spent) >= 10
    assert fed.p99 >= fed.mean / 2 > 0
    assert took > 0
    assert size > 100 * 3 < series
    # the batches' four events are on disk as well: those whose turn it was to be judged
    assert sum(path.stat().st_size for path in (tmp_path / "recording").iterdir()) > 1000


def test_the_share_of_a_core_counts_each_kind_of_event_as_often_as_its_collector_reports_it(tmp_path):
    fed = FedWorker(queries=50, partitions=4, folder=tmp_path)
    fed.spent += [Spent("progress", 1.0), Spent("progress", 3.0), Spent("tasks", 1.0), Spent("offsets", 0.5)]
    fed.spent.append(Spent("host", 10.0))

    share = fed.core_share(Config(tasks_interval=5.0, kafka_interval=2.0, host_interval=10.0), 30.0)

    assert share == pytest.approx(50 * (0.002 + 0.001 / 5 + 0.0005 / 2) + 0.010 / 10 + 0.030 / 15)
