"""What of a run other threads may read: the tables that it uses, and what it did last."""

from types import SimpleNamespace

import pytest

from ledgerops.model.history import History
from ledgerops.model.records import Observation, Plan
from ledgerops.model.spark_progress import parse_progress
from ledgerops.runtime.runs import LAST_LOOK_SECONDS, Runs
from tests.build import T0, spark_json
from tests.tables import cases

DELTA, ICEBERG = "DeltaSink[/lake/silver]", "Iceberg[lake.db.silver]"


@cases(
    "described, planned, table",
    ("Delta by the batch", DELTA, DELTA, "/lake/silver"),
    ("Iceberg by the plan: the batch tells its name alone", "lake.db.silver", ICEBERG, ICEBERG),
    ("a name without a plan", "lake.db.silver", None, None),
    ("files: the log of the sink", "FileSink[file:/out]", None, "file:/out/_spark_metadata"),
)
def test_the_table_of_a_sink_is_known_after_a_batch_and_not_before_there_is_one(described, planned, table):
    runs, past, record = Runs(), History("silver"), spark_json(sink={"description": described, "numOutputRows": -1})
    past.start(T0, record["id"], record["runId"])
    runs.note(Observation(T0, "started", "silver", {"id": record["id"], "runId": record["runId"]}), past, "session")
    past.plan = Plan(record["runId"], sink=planned) if planned else None
    runs.note(Observation(T0, "plan", "silver", {"run_id": record["runId"]}), past, "session")
    [run] = runs.runs()
    assert run.sink_table is None

    past.add(parse_progress(record))
    runs.note(Observation(T0, "progress", "silver", record), past, "session")
    assert run.sink_table == table


@cases(
    "marks, alive, seen",
    ("it has ended", {}, True, ["run-1"]),
    ("its session was stopped", {}, False, []),
    ("it was lost", {"lost": True}, True, []),
    ("its session is watched no more", {"unwatched": True}, True, []),
)
def test_what_a_run_did_last_can_be_read_for_a_moment_after_its_end(marks, alive, seen):
    now, session, past = [T0], SimpleNamespace(alive=True), History("silver")
    runs = Runs(lambda: now[0])
    past.start(T0, "id-1", "run-1")
    runs.note(Observation(T0, "started", "silver", {"id": "id-1", "runId": "run-1"}), past, session)
    assert [run.run_id for run in runs.recent()] == ["run-1"]

    past.end(T0 + 5, "run-1", None, None, **marks)
    runs.note(Observation(T0 + 5, "terminated", "silver", {"id": "id-1", "runId": "run-1", **marks}), past, session)
    session.alive = alive
    assert ([run.run_id for run in runs.recent()], runs.runs()) == (seen, [])
    assert [run.run_id for run in runs.recent(stopped=True)] == ([] if marks else ["run-1"])
    now[0] += LAST_LOOK_SECONDS
    assert runs.recent(stopped=True) == []


def test_an_end_that_is_told_after_the_next_start_leaves_the_same_moment():
    runs, session, past = Runs(), SimpleNamespace(alive=True), History("silver")
    for run_id, at in (("run-1", T0), ("run-2", T0 + 9)):
        past.start(at, "id-1", run_id)
        runs.note(Observation(at, "started", "silver", {"id": "id-1", "runId": run_id}), past, session)
    past.end(T0 + 10, "run-1", "boom", None)
    runs.note(Observation(T0 + 10, "terminated", "silver", {"id": "id-1", "runId": "run-1"}), past, session)
    assert [run.run_id for run in runs.recent()] == ["run-2", "run-1"]


@pytest.mark.parametrize("kind", ["tasks", "files", "tables", "plan"])
def test_what_is_found_of_a_run_that_is_over_brings_it_not_back_after_an_attach(kind):
    runs, session, past = Runs(), SimpleNamespace(alive=True), History("silver")
    past.start(T0, "id-1", "run-1")
    runs.note(Observation(T0, "started", "silver", {"id": "id-1", "runId": "run-1"}), past, session)
    past.end(T0 + 5, "run-1", None, None)
    runs.note(Observation(T0 + 5, "terminated", "silver", {"id": "id-1", "runId": "run-1"}), past, session)
    runs.readmit()
    runs.note(Observation(T0 + 6, kind, "silver", {"run_id": "run-1"}), past, session)
    assert runs.runs() == []


def test_a_run_that_was_lost_for_a_while_has_its_last_moment_too():
    runs, session, past = Runs(), SimpleNamespace(alive=True), History("silver")
    past.start(T0, "id-1", "run-1")
    runs.note(Observation(T0, "started", "silver", {"id": "id-1", "runId": "run-1"}), past, session)
    past.end(T0 + 5, "run-1", None, None, lost=True)
    past.start(T0 + 6, "id-1", "run-1")
    past.end(T0 + 9, "run-1", None, None)
    runs.note(Observation(T0 + 9, "terminated", "silver", {"id": "id-1", "runId": "run-1"}), past, session)
    assert [run.run_id for run in runs.recent()] == ["run-1"]
