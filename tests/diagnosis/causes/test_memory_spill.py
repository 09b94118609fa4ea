from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.memory_spill import CAUSE
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import late, stage, told_by
from tests.tables import cases

MIB = 2**20


def spilling(size: int, seconds: float = 3.0, gc: float = 0.0) -> list:
    return [
        stage("map", wall=0.5),
        stage("save at X.java:0", began=0.5, records=[5000, 5000], seconds=[seconds] * 2, spill=size, gc=gc),
    ]


@cases("plan, steps", ("without state more partitions are advised", {}, 3), ("with state not", {"stateful": True}, 2))
def test_stages_that_spill_are_told_with_their_size_and_time(history, plan, steps):
    [finding] = check(CAUSE, late(history, spilling(200 * MIB), 4.0, plan=plan))
    assert finding.summary == "tasks spill 210 MB per batch; 3.0 s of a batch of 4.0 s pass in stages that do"
    assert finding.component.name == "save"
    assert len(finding.remedies) == steps


@cases(
    "records, read, told",
    ("a join that makes thousands of rows of each", 500, 0, True),
    ("large documents, as large when they are read", 500, 100 * MIB, False),
    ("rows that are sorted", 5000, 0, False),
    ("what it reads is not counted", 0, 0, False),
)
def test_rows_that_a_stage_multiplies_before_it_spills_are_looked_for_first(history, records, read, told):
    reads = replace(spilling(200 * MIB)[1], records=2 * records, records_max=records, input_bytes=read)
    [finding] = check(CAUSE, late(history, [spilling(0)[0], reads], 4.0))
    assert finding.remedies[0].action.startswith("see in the Spark UI, page SQL, which join or explode") is told
    assert (", 210 kB for each row that is read; " in finding.summary) is told


def persisting(view: QueryView, share: float, most: int = 2**30) -> QueryView:
    """The view, with so much of the executors' memory held by persisted data."""
    held = {"memory_used_bytes": int(share * 2**30), "memory_max_bytes": most}
    hosts = [replace(host, executors=tuple(replace(each, **held) for each in host.executors)) for host in view.hosts]
    return QueryView(view.history, view.now, hosts, view.others)


def test_a_cache_that_holds_the_memory_is_named(history):
    [finding] = check(CAUSE, persisting(late(history, spilling(200 * MIB), 4.0), 0.9))

    assert finding.summary == (
        "tasks spill 210 MB per batch while persisted data holds 966 MB of the 1.1 GB that it shares with tasks; "
        "3.0 s of a batch of 4.0 s pass in stages that do"
    )
    assert finding.remedies[0].action.startswith("see on page Storage of the Spark UI what is persisted")
    assert told_by(finding)["persisted_share_of_memory"] == pytest.approx(0.9)


@cases("share, most", ("no cache", 0.0, 2**30), ("a small one", 0.3, 2**30), ("the memory is unknown", 0.9, 0))
def test_other_caches_are_not(history, share, most):
    [finding] = check(CAUSE, persisting(late(history, spilling(200 * MIB), 4.0), share, most))
    assert "persisted" not in finding.summary
    assert not [step for step in finding.remedies if "persist" in step.action]


@cases(
    "stages",
    ("a little", spilling(MIB)),
    ("the tasks compute far longer than so many bytes take", spilling(20 * MIB)),
    ("another stage takes the time", spilling(200 * MIB, 0.6)),
    ("the collector takes it", spilling(200 * MIB, gc=0.8)),
)
def test_others_are_not(history, stages):
    assert list(check(CAUSE, late(history, stages, 4.0))) == []
