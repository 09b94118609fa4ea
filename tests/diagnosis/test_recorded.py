"""Real recordings: what is healthy stays silent at every moment, each fault is named and nothing else critical is."""

from pathlib import Path

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model import recording
from ledgerops.runtime.registry import QueryRegistry
from tests.evidence.numbers import compare, wrong
from tests.paths import RECORDED
from tests.tables import cases


def every_verdict(path: Path):
    """The verdict after each observation, as live: on the query that changed."""
    registry = QueryRegistry(Diagnoser)
    for seen in recording.read(path):
        state = registry.ingest(seen)
        if state is not None:
            yield registry.judge(state, seen.at)
    for state in registry.queries.values():
        assert state.judge.errors == {}


def test_a_broker_that_is_away_is_the_only_root_while_it_is_away():
    """A query on a real broker that was stopped for some ten seconds and started again."""
    roots = [
        [root.rule for root in verdict.root_causes] for verdict in every_verdict(RECORDED / "source-unreachable.jsonl")
    ]
    assert {rule for found in roots for rule in found} == {"source-unreachable"}
    assert roots[-1] == []


# two tasks that compute, under `ledgerops exec`; from second 34 on a control group leaves them 0.22 cores
CPU_LIMIT = "cpu-limit.jsonl"
# `local[2,4]`, batches of 0.3 s: after a minute the first attempt of one of two tasks raises after 2.2 s
TASK_RETRIES = "task-retries.jsonl.zst"
# a `foreachBatch` function that appends 12.5 MB to a list every two seconds, for 340 s; it is named when 43 minutes
# are left, 16 times as long as it was observed, and no sooner
MEMORY_LEAK = "memory-leak.jsonl.zst"


@cases(
    "name, rule, soonest, latest, ignored, pressured",
    ("a CPU limit that is used up", CPU_LIMIT, "cpu-saturated", 34, 90, ["info"], 21),
    ("tasks that fail and are run again", TASK_RETRIES, "task-retries", 60, 90, [], 0),
    ("a driver program that keeps what it reads", MEMORY_LEAK, "memory-leak", 150, 190, [], 0),
)
def test_a_fault_is_the_only_cause_with_numbers_that_the_recording_has(
    tmp_path, name, rule, soonest, latest, ignored, pressured
):
    verdicts = list(every_verdict(RECORDED / name))
    roots = [(each.at - verdicts[0].at, root) for each in verdicts for root in each.root_causes]
    found = [(at, root.rule) for at, root in roots if root.severity not in ignored]
    harmed = [verdict.root_causes[0].rule for verdict in verdicts if verdict.status == "pressured"]

    assert soonest < found[0][0] < latest
    assert {each for _, each in found} == {rule} >= set(harmed)
    assert len(harmed) >= pressured
    (tmp_path / name.replace(name.partition(".")[0], "recording-000001")).write_bytes((RECORDED / name).read_bytes())
    assert wrong(list(compare(tmp_path, verdicts))) == ()


def test_a_container_that_is_often_held_back_and_keeps_up_is_left_alone():
    """As for the CPU limit with 2,500 rows a second and 0.9 cores: held back in a quarter of the periods, a batch takes
    a tenth of its interval."""
    verdicts = list(every_verdict(RECORDED / "cpu-limit-unharmed.jsonl"))
    assert len(verdicts) > 50
    assert {finding.rule for verdict in verdicts for finding in verdict.findings} == set()


@pytest.mark.parametrize("version", ["3.5.7", "4.0.5", "4.1.3", "4.2.0", "4.3.0"])
def test_a_healthy_application_is_left_alone_at_every_moment(version):
    verdicts = list(every_verdict(RECORDED / f"spark-{version}.jsonl"))
    found = {(verdict.query, finding.rule, finding.severity) for verdict in verdicts for finding in verdict.findings}
    late = {each for each in found if each[1:] == ("long-batches", "info")}
    if version == "4.0.5":  # at its end the machine was so busy that batches took three times their interval
        late.add(("observed", "checkpoint-slow", "warning"))

    assert found - late == {("crashes", "query-failed", "critical")}
    assert {verdict.status for verdict in verdicts if verdict.query == "idle_files"} <= {"starting", "idle", "stopped"}


def test_a_whale_is_measured_and_not_told_while_batches_get_shorter():
    """`ledgerops run --plan whale` on a busy machine: 80 % of the rows belong to one customer, and it catches up."""
    *_, last = every_verdict(RECORDED / "key-skew.jsonl")
    uneven = {part.part: part.share for part in last.attribution}["uneven_keys"]
    assert 0.1 < uneven < 0.25
    assert {finding.severity for finding in last.findings} <= {"info"}
