from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.gc_pressure import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.records import Executor, Host
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import stage, told_by
from tests.tables import cases

MIB = 2**20


def late(history, share, **more):
    """Batches of 4 s whose tasks collect garbage for so much of their time."""
    told = {"seconds": [4] * 8, "stages": [stage(seconds=[3.4, 3.4], gc=share, cpu=0.4)], "cores": 2}
    return history(**told | {"phases": {"add_batch": 3.8}} | more)


def watched(
    view: QueryView, share: float, name: str = "driver", heap: int = 600 * MIB, persisted: float = 0.0
) -> QueryView:
    """With looks at an executor of two cores, 10 s apart, that collects garbage for `share` of its tasks' time, and
    whose memory is `persisted` data for so much."""
    memory = int((heap - 300 * MIB) * 0.6)
    first = Executor(name, True, 2, 0, 0, 9, 100.0, 9.0, int(persisted * memory), memory)
    looks = [
        Host(view.now - ago, 2, 0.5, 2**33, 2**32, None, None, (), (each,))
        for ago in (20, 10, 0)
        for each in [replace(first, run_seconds=120.0 - ago, gc_seconds=9.0 + (20 - ago) * share)]
    ]
    return QueryView(view.history, view.now, looks)


def test_collection_by_the_tasks_is_told_in_seconds_of_a_batch(history):
    [finding] = check(CAUSE, late(history, 0.5))
    assert finding.summary == "garbage collection takes 1.7 s of a batch of 4.0 s"
    assert (finding.component.kind, finding.component.detail) == ("executor", "heap")
    assert finding.remedies[0].safe and finding.remedies[1].action == "set spark.driver.memory to 4100m"


def test_in_local_mode_the_driver_is_stopped_too(history):
    """One JVM: what it collects for a quarter of the time takes a quarter of all of the batch."""
    [finding] = check(CAUSE, watched(late(history, 0.0), 0.25))
    assert finding.remedies[1].settings == (("spark.driver.memory", "1200m"),)
    assert finding.saving_seconds == pytest.approx(1.0)


@cases(
    "state, share",
    ("it fills the heap", {"memory_bytes": 300 * MIB}, pytest.approx(0.5, abs=0.01)),
    ("it is outside the heap", {"memory_bytes": 300 * MIB, "custom": {"rocksdbPutCount": 1.0}}, None),
    ("it is small", {"memory_bytes": 5 * MIB}, None),
)
def test_state_that_fills_the_heap_is_told_and_advised_to_leave_it(history, state, share):
    [finding] = check(CAUSE, watched(late(history, 0.5, operators=state), 0.4))
    assert told_by(finding).get("state_share_of_heap") == share
    assert any("RocksDB" in each.action for each in finding.remedies) is (share is not None)
    assert finding.remedies[0].action.startswith("see how many rows the state holds") is (share is not None)


@cases(
    "share, state, named",
    ("it fills the memory", 0.8, {}, True),
    ("it is small", 0.3, {}, False),
    ("state fills the heap, too", 0.8, {"memory_bytes": 300 * MIB}, False),
)
def test_persisted_data_that_fills_the_heap_is_named(history, share, state, named):
    [finding] = check(CAUSE, watched(late(history, 0.5, operators=state), 0.4, persisted=share))
    assert ("while persisted data holds 151 MB of the 189 MB that it shares with tasks" in finding.summary) is named
    assert finding.remedies[0].action.startswith("see on page Storage of the Spark UI") is named


@cases(
    "make, found",
    ("a tenth of a late batch is enough", lambda history: late(history, 0.18), True),
    ("less is not", lambda history: late(history, 0.1), False),
    ("the executors still collect", lambda history: watched(late(history, 0.5), 0.3, name="1"), True),
    ("late otherwise", lambda history: late(history, 0.5, stages=[stage(seconds=[0.6, 0.6], gc=0.5)]), False),
    ("an executor that is not the driver", lambda history: watched(late(history, 0.0), 0.25, name="1"), False),
)
def test_collection_that_costs_enough_is_found(history, make, found):
    assert bool(list(check(CAUSE, make(history)))) is found


def growing(count: int, watermark: bool = False, gc: float = 0.5) -> dict:
    """A state that takes a megabyte more in each batch, until collecting it makes the last eight batches late."""
    slow = [stage(seconds=[3.4, 3.4], gc=gc, cpu=0.4)] if gc else [stage(seconds=[0.5, 0.5])]
    return {
        "warm": 0,
        "seconds": [1.0] * (count - 8) + [4.0] * 8,
        "operators": [{"name": "dedupe", "rows": 1000 * n, "memory_bytes": n * MIB} for n in range(1, count + 1)],
        "stages": [[stage(seconds=[0.5, 0.5])]] * (count - 8) + [slow] * 8,
        "phases": [{"add_batch": 0.8}] * (count - 8) + [{"add_batch": 3.8}] * 8,
        "plan": {"watermarks": {"event_time": 86400.0}} if watermark else {},
    }


@cases(
    "case, first",
    ("state that grows without a bound is the root of it", {}, "unbounded-state"),
    ("state that may yet be bounded is not", {"watermark": True}, "gc-pressure"),
    ("without collection late batches have another cause", {"gc": 0.0}, "slow-sink"),
)
def test_state_is_blamed_for_collection_only(history, case, first):
    view = watched(history(**growing(40, **case)), 0.0 if case.get("gc") == 0.0 else 0.4)
    roots = {root.rule: root.explains for root in Diagnoser()(view).root_causes}
    assert first in roots
    assert ("gc-pressure" in roots.get("unbounded-state", ())) is (not case)
