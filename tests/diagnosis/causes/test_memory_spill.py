from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check, ruled_out
from ledgerops.diagnosis.causes.memory_spill import CAUSE
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import late, stage
from tests.tables import cases

MIB = 2**20


def spilling(size: int, seconds: float = 3.0, gc: float = 0.0) -> list:
    return [
        stage("map", wall=0.5),
        stage("save at X.java:0", began=0.5, records=[5000, 5000], seconds=[seconds] * 2, spill=size, gc=gc),
    ]


def test_stages_that_spill_are_told_with_their_size_and_time(history):
    [finding] = check(CAUSE, late(history, spilling(200 * MIB), 4.0))
    assert finding.summary == "tasks spill 210 MB per batch; 3.0 s of a batch of 4.0 s pass in stages that do"
    assert finding.component.name == "save"


def test_more_partitions_are_advised_only_without_state(history):
    [stateless] = check(CAUSE, late(history, spilling(200 * MIB), 4.0))
    [stateful] = check(CAUSE, late(history, spilling(200 * MIB), 4.0, plan={"stateful": True}))
    assert [len(each.remedies) for each in (stateless, stateful)] == [3, 2]


def persisting(view: QueryView, share: float, most: int = 2**30) -> QueryView:
    """The view, with so much of the executors' memory held by persisted data."""
    held = {"memory_used_bytes": int(share * 2**30), "memory_max_bytes": most}
    hosts = [replace(host, executors=tuple(replace(each, **held) for each in host.executors)) for host in view.hosts]
    return QueryView(view.history, view.now, hosts, view.others)


def test_a_cache_that_holds_the_memory_is_named(history):
    [finding] = check(CAUSE, persisting(late(history, spilling(200 * MIB), 4.0), 0.9))

    assert finding.summary == (
        "tasks spill 210 MB per batch while persisted data holds 966 MB of their 1.1 GB of memory; "
        "3.0 s of a batch of 4.0 s pass in stages that do"
    )
    assert finding.remedies[0].action.startswith("see on page Storage of the Spark UI what is persisted")
    assert {each.name: each.value for each in finding.evidence}["persisted_share_of_memory"] == pytest.approx(0.9)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_small_cache_is_not(history, share):
    [finding] = check(CAUSE, persisting(late(history, spilling(200 * MIB), 4.0), share))
    assert "persisted" not in finding.summary
    assert not [step for step in finding.remedies if "persist" in step.action]


def test_nothing_is_said_of_a_cache_where_the_memory_is_unknown(history):
    [finding] = check(CAUSE, persisting(late(history, spilling(200 * MIB), 4.0), 0.9, most=0))
    assert "persisted" not in finding.summary


@cases(
    "stages, more",
    ("nothing spilled", spilling(0), {}),
    ("a little", spilling(MIB), {}),
    ("another stage takes the time", spilling(200 * MIB, 0.6), {}),
    ("the collector takes it", spilling(200 * MIB, gc=0.8), {}),
)
def test_others_are_not(history, stages, more):
    assert list(check(CAUSE, late(history, stages, 4.0, **more))) == []


def test_it_is_ruled_out_once_a_batch_has_spilled(history):
    assert ruled_out(CAUSE, late(history, spilling(200 * MIB, 0.3), 4.0)) == "0.30 s of 4.0 s (7%)"
    assert ruled_out(CAUSE, late(history, spilling(0), 4.0)) is None
