from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.gc_pressure import RULE
from ledgerops.model.records import Executor, Host
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.conftest import stage


def collecting(share: float, seconds: float = 2.0) -> list[list]:
    return [[stage(seconds=[seconds, seconds], gc=share)]] * 4


def watched(view: QueryView, share: float, heap: int = 600 * 2**20) -> QueryView:
    """With two looks at the only executor, 20 s apart, that spent `share` of 30 task seconds in garbage collection."""
    driver = Executor("driver", True, 2, 0, 0, 9, 100.0, 9.0, 0, int((heap - 300 * 2**20) * 0.6))
    later = replace(driver, run_seconds=130.0, gc_seconds=9.0 + 30 * share)
    looks = [
        Host(at, 2, 0.5, 2**33, 2**32, None, None, (), (each,))
        for at, each in ((view.now - 20, driver), (view.now, later))
    ]
    return QueryView(view.history, view.now, looks)


def test_collection_that_makes_batches_late_is_found(history):
    [finding] = RULE.check(history(seconds=[4] * 4, stages=collecting(0.25, 3.0)))

    assert finding.summary == "tasks spend 25% of their time in garbage collection, 0.8 s per batch"
    assert finding.share == pytest.approx(0.1875)


def test_state_that_fills_the_heap_is_named(history):
    view = history(seconds=[4] * 4, stages=collecting(0.5, 3.0), operators=[{"memory_bytes": 300 * 2**20}] * 4)
    [finding] = RULE.check(watched(view, 0.4))

    assert finding.summary == (
        "tasks spend 50% of their time in garbage collection, 1.5 s per batch; the state takes 300 MiB of a "
        "heap of 600 MiB"
    )
    assert "RocksDB" in finding.remedies[0].action


def test_a_severe_share_is_found_before_batches_are_late(history):
    [finding] = RULE.check(watched(history(seconds=[1.8] * 4, stages=collecting(0.3, 1.4)), 0.3))

    assert finding.evidence[2].name == "gc_share_of_executors"
    assert finding.evidence[2].value == pytest.approx(0.3)


def on_cluster(view: QueryView) -> QueryView:
    """The same with the executor on a cluster, where Spark lists the driver too: no cores, its uptime as run time."""
    looks = []
    for seconds, look in zip((279.0, 299.0), view.hosts, strict=True):
        [only] = look.executors
        driver = replace(only, cores=0, completed_tasks=0, run_seconds=seconds, gc_seconds=1.0)
        looks.append(replace(look, executors=(driver, replace(only, executor_id="0"))))
    return QueryView(view.history, view.now, looks)


def test_the_uptime_of_a_cluster_s_driver_is_no_task_time_and_its_heap_holds_no_state(history):
    local = watched(
        history(seconds=[4] * 4, stages=collecting(0.5, 3.0), operators=[{"memory_bytes": 300 * 2**20}] * 4), 0.15
    )
    [alone], [beside] = RULE.check(local), RULE.check(on_cluster(local))

    assert beside.summary == alone.summary
    assert beside.evidence == alone.evidence
    assert {each.name: each.value for each in beside.evidence}["gc_share_of_executors"] == pytest.approx(0.15)


def test_state_outside_the_heap_is_not_blamed(history):
    operators = [{"memory_bytes": 300 * 2**20, "custom": {"rocksdbPutCount": 1.0}}] * 4
    view = history(seconds=[4] * 4, stages=collecting(0.5, 3.0), operators=operators)
    [finding] = RULE.check(watched(view, 0.4))

    assert finding.summary == "tasks spend 50% of their time in garbage collection, 1.5 s per batch"


@pytest.mark.parametrize(
    ("case", "executors"),
    [
        pytest.param({"warm": 0}, None, id="no batch yet"),
        pytest.param({"seconds": [4] * 4}, None, id="no tasks known"),
        pytest.param(
            {"seconds": [4] * 4, "stages": collecting(0.05, 3.0)}, 0.05, id="little collection in late batches"
        ),
        pytest.param({"seconds": [1] * 4, "stages": collecting(0.15, 0.8)}, 0.15, id="some, and batches are in time"),
        pytest.param(
            {"seconds": [0.4] * 4, "stages": collecting(0.3, 0.2)}, 0.3, id="young collections of short tasks"
        ),
        pytest.param(
            {"seconds": [9] * 4, "stages": collecting(0.3, 1.0)}, None, id="the batch is late for another reason"
        ),
        pytest.param({"seconds": [4] * 4, "stages": collecting(0.3, 3.0)}, 0.02, id="the executors say otherwise"),
        pytest.param(
            {"interval": 60.0, "seconds": [2] * 8, "stages": collecting(0.3, 1.5) * 2}, 0.3, id="a long rest in between"
        ),
        pytest.param(
            {"seconds": [1.8] * 4, "stages": collecting(0.3, 1.4)}, None, id="no harm and nobody to confirm it"
        ),
    ],
)
def test_others_are_not(history, case, executors):
    view = history(**case)
    view = view if executors is None else watched(view, executors)

    assert list(RULE.check(view)) == []


def test_it_is_over_when_the_executors_no_longer_collect(history):
    view = watched(history(seconds=[4] * 4, stages=collecting(0.5, 3.0)), 0.4)
    after = [replace(view.hosts[-1], at=view.now - 4), replace(view.hosts[-1], at=view.now)]
    after[1] = replace(after[1], executors=(replace(after[1].executors[0], run_seconds=134.0),))

    assert list(RULE.check(QueryView(view.history, view.now, [view.hosts[0], *after]))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[5] * 4, stages=collecting(0.02))

    assert RULE.acquit(view) == "garbage collection takes 2% of the tasks' time"


def growing(count: int, watermark: bool = False) -> dict:
    """A state that takes a megabyte more in each batch, until collecting it makes the last four batches late."""
    quick = [[stage(seconds=[0.5, 0.5])]] * (count - 4)
    return {
        "warm": 0,
        "seconds": [1.0] * (count - 4) + [4.0] * 4,
        "operators": [{"name": "dedupe", "rows": 1000 * n, "memory_bytes": n * 2**20} for n in range(1, count + 1)],
        "stages": [*quick, *collecting(0.5, 3.0)],
        "plan": {"watermarks": {"event_time": 86400.0}} if watermark else {},
    }


def test_state_that_grows_without_a_bound_is_the_root_of_it(history):
    verdict = Diagnoser()(watched(history(**growing(40)), 0.4))

    assert [root.rule for root in verdict.root_causes] == ["unbounded-state"]
    assert "gc-pressure" in verdict.root_causes[0].explains


def test_state_that_may_yet_be_bounded_is_not(history):
    verdict = Diagnoser()(watched(history(**growing(40, watermark=True)), 0.4))

    assert [root.rule for root in verdict.root_causes] == ["gc-pressure"]


def test_growing_state_is_not_blamed_for_late_batches_without_collection(history):
    case = growing(40)
    slow = [[stage(seconds=[0.5, 0.5], wall=0.6)]] * 4
    verdict = Diagnoser()(watched(history(**case | {"stages": [*case["stages"][:-4], *slow]}), 0.01))

    blamed = {root.rule: root.explains for root in verdict.root_causes}
    assert blamed["unbounded-state"] == ()
    assert "slow-sink" in blamed
