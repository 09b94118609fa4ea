from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.diagnosis.attribution import PARTS, as_document, attribution, parts_of
from ledgerops.model.finding import Part
from ledgerops.model.recording import read
from ledgerops.model.records import ExecutorShare, Progress, StageSummary, TaskSummary
from ledgerops.runtime.replay import replay
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, operator
from tests.paths import RECORDED

PHASES = {"latest_offset": 0.1, "query_planning": 0.2, "wal_commit": 0.05, "add_batch": 3.0, "commit_offsets": 0.05}


def stage(began: float, ended: float, run: float, **changes: object) -> StageSummary:
    """A stage of two tasks at work from `began` to `ended`, in seconds after T0, whose tasks took `run` together."""
    plain = StageSummary(
        stage_id=0, name="save", tasks=2, failed_tasks=0, started=T0 + began, ended=T0 + ended, run_seconds=run,
        cpu_seconds=0.0, gc_seconds=0.0, seconds_median=run / 2, seconds_max=run / 2, records=100, records_median=50,
        records_max=50, reads_shuffle=True, input_bytes=0, shuffle_read_bytes=0, shuffle_write_bytes=0, spill_bytes=0,
        executors={"driver": ExecutorShare(2, run, 100)},
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def tasks(*stages: StageSummary, number: int = 0, python: float | None = None) -> TaskSummary:
    return TaskSummary("run-1", number, stages, python)


def seconds(parts: tuple[Part, ...]) -> dict[str, float]:
    return {each.part: round(each.seconds, 6) for each in parts}


def split(whole: Progress, worked: TaskSummary | None) -> dict[str, float]:
    return {part: round(each, 6) for part, each in parts_of(whole, worked).items()}


def test_every_part_of_a_batch_is_named_and_together_they_are_its_duration():
    whole = batch(duration=3.6, phases=PHASES, operators=(operator(update_seconds=0.5, commit_seconds=0.4),))
    worked = tasks(
        stage(0.6, 1.6, 1.6, cpu_seconds=0.8, gc_seconds=0.2),
        stage(1.6, 2.6, 2.4, cpu_seconds=0.8, shuffle_seconds=0.1),
        python=1.0,
    )

    parts = split(whole, worked)

    # tasks ran 4.0 s in 2.0 s of wall time, so each of their seconds is half a second of it
    assert parts == {
        "latest_offset": 0.1,
        "query_planning": 0.2,
        "wal_commit": 0.05,
        "commit_offsets": 0.05,
        "driver": pytest.approx(0.05),
        "after_tasks": 0.95,  # from the end of the last stage to that of add_batch
        "python": 0.5,
        "gc": 0.1,
        "state_commit": 0.2,
        "state_update": 0.25,
        "shuffle": 0.05,
        "cpu": 0.55,
        "waiting": 0.35,
        "unclaimed": pytest.approx(0.2),
    }
    assert math.isclose(sum(parts.values()), 3.6)


def test_time_before_between_and_after_stages_is_the_drivers_and_the_sinks():
    whole = batch(duration=3.6, phases=PHASES)
    found = split(whole, tasks(stage(1.0, 1.5, 1.0), stage(2.0, 2.5, 1.0)))

    assert found["after_tasks"] == pytest.approx(3.6 - 0.05 - 2.5)
    assert found["driver"] == pytest.approx(3.0 - 1.0 - found["after_tasks"])


def test_what_passes_after_add_batch_is_not_the_sinks():
    """Two clocks: the batch went on after its last stage for longer than add_batch has time outside tasks."""
    slow = batch(duration=5.0, phases={"add_batch": 2.0})
    found = split(slow, tasks(stage(0.0, 1.5, 1.5)))

    assert (found["driver"], found["after_tasks"], found["unclaimed"]) == (0.0, 0.5, 3.0)


def test_stages_side_by_side_count_once():
    whole = batch(duration=3.6, phases=PHASES)
    found = split(whole, tasks(stage(0.5, 2.5, 2.0, cpu_seconds=2.0), stage(0.5, 2.5, 2.0)))

    assert found["cpu"] == 1.0
    assert found["waiting"] == 1.0


@pytest.mark.parametrize(
    ("cores", "tiny", "launch"),
    [
        pytest.param(2, stage(0.0, 3.0, 1.0, tasks=100, seconds_max=0.02), 3.0 - 0.51, id="many tiny tasks"),
        pytest.param(2, stage(0.0, 3.0, 5.0, seconds_max=2.5), 0.5, id="all run at once"),
        pytest.param(2, stage(0.0, 3.0, 3.2, tasks=3, seconds_max=2.8), 0.0, id="one waits for a core"),
    ],
)
def test_time_of_a_stage_that_no_task_needs_goes_into_starting_tasks(cores, tiny, launch):
    whole = batch(duration=3.0, phases={"add_batch": 3.0})
    parts = parts_of(whole, tasks(tiny), cores)

    assert parts["launch"] == pytest.approx(launch)
    assert sum(parts.values()) == pytest.approx(3.0)


def test_without_tasks_add_batch_is_not_guessed_at():
    found = split(batch(duration=3.6, phases=PHASES), None)

    assert found["tasks_unknown"] == 3.0
    assert not set(found) & {"driver", "after_tasks", "cpu", "waiting", "gc"}


def test_a_plan_of_which_only_the_newest_stages_were_read_is_not_guessed_at():
    many = tasks(*(stage(0.1 * n, 0.1 * n + 0.1, 0.2) for n in range(8)))

    assert split(batch(duration=3.6, phases=PHASES), many)["tasks_unknown"] == 3.0


def test_python_in_a_state_operator_is_counted_once():
    both = batch(
        duration=3.0, phases={"add_batch": 3.0}, operators=(operator(name="transformWithStateInPySparkExec",
        update_seconds=2.5, commit_seconds=0.0),)
    )  # fmt: skip
    found = split(both, tasks(stage(0.0, 3.0, 3.0), python=2.0))

    assert found["python"] == 2.0
    assert found["state_update"] == 0.5


def test_claims_beyond_what_tasks_ran_are_cut():
    greedy = batch(duration=1.0, phases={"add_batch": 1.0}, operators=(operator(commit_seconds=9.0),))
    found = split(greedy, tasks(stage(0.0, 1.0, 2.0, gc_seconds=1.0, cpu_seconds=2.0)))

    assert (found["gc"], found["state_commit"], found["cpu"], found["waiting"]) == (0.5, 0.5, 0.0, 0.0)


def test_phases_longer_than_the_batch_are_scaled_to_it():
    found = split(batch(duration=0.9, phases={"add_batch": 0.8, "wal_commit": 0.2}), None)

    assert found == {"wal_commit": pytest.approx(0.18), "tasks_unknown": pytest.approx(0.72), "unclaimed": 0.0}


def test_batches_without_duration_have_no_parts():
    assert attribution(QueryView(history([batch(n, duration=0.0, phases={}) for n in range(8)]), T0 + 16)) == ()


def _view(*known: int, count: int = 8) -> QueryView:
    """Batches of 1 s, of which those in `known` have tasks at work for 0.6 s."""
    remembered = history(
        [batch(n, duration=1.0, phases={"add_batch": 0.8, "query_planning": 0.1}) for n in range(count)]
    )
    for n in known:
        remembered.add_tasks(tasks(stage(2 * n + 0.2, 2 * n + 0.8, 1.2, cpu_seconds=0.6), number=n))
    return QueryView(remembered, T0 + 2 * count)


def test_a_typical_batch_is_told_by_those_whose_tasks_are_known():
    assert seconds(attribution(_view(3, 6))) == {
        "query_planning": 0.1,
        "driver": pytest.approx(0.0),
        "after_tasks": pytest.approx(0.2),
        "gc": 0.0,
        "cpu": pytest.approx(0.3),
        "waiting": pytest.approx(0.3),
        "unclaimed": pytest.approx(0.1),
    }


@pytest.mark.parametrize(
    "known", [pytest.param((), id="no tasks"), pytest.param((6,), id="one batch says nothing of the others")]
)
def test_a_typical_batch_without_tasks_says_so(known):
    assert seconds(attribution(_view(*known))) == {
        "query_planning": 0.1,
        "tasks_unknown": 0.8,
        "unclaimed": pytest.approx(0.1),
    }


@pytest.mark.parametrize("count", [pytest.param(0, id="no batch"), pytest.param(1, id="only the first, which warms")])
def test_before_there_is_a_settled_batch_nothing_is_said(count):
    assert attribution(_view(count=count)) == ()


def test_empty_batches_do_not_count():
    remembered = history([batch(n, rows=0 if n % 2 else 100, duration=0.2 if n % 2 else 1.0) for n in range(12)])

    assert sum(each.seconds for each in attribution(QueryView(remembered, T0 + 24))) == pytest.approx(1.0)


def test_the_document_has_part_seconds_and_share():
    assert as_document([Part("cpu", 0.12345678, 0.5)]) == [{"part": "cpu", "seconds": 0.123457, "share": 0.5}]


@pytest.mark.parametrize("name", ["key-skew", "source-unreachable", "spark-4.2.0", "spark-4.3.0"])
def test_recorded_batches_are_split_without_a_rest(name):
    registry = replay(read(RECORDED / f"{name}.jsonl")).registry
    split = 0
    for state in registry.queries.values():
        for each in state.history.batches:
            parts = parts_of(each, state.history.tasks_of(each), 2)
            assert math.isclose(sum(parts.values()), each.duration, abs_tol=1e-9)
            split += 1
        assert state.verdict is not None
        whole = sum(part.share for part in state.verdict.attribution)
        assert whole == pytest.approx(1.0) or not state.verdict.attribution
    assert split > 2


amounts = st.floats(0, 1e4)


@settings(deadline=None)
@given(
    duration=st.floats(0.001, 1e4),
    phases=st.dictionaries(st.sampled_from([*PARTS[:5], "add_batch", "other"]), amounts),
    stages=st.lists(st.tuples(amounts, amounts, amounts, amounts, amounts), max_size=4),
    python=st.none() | amounts,
    state=st.none() | st.tuples(amounts, amounts),
)
def test_whatever_was_measured_the_parts_are_the_duration(duration, phases, stages, python, state):
    operators = () if state is None else (operator(update_seconds=state[0], commit_seconds=state[1]),)
    worked = tasks(
        *(stage(at, at + long, run, cpu_seconds=cpu, gc_seconds=gc) for at, long, run, cpu, gc in stages), python=python
    )
    parts = parts_of(batch(duration=duration, phases=phases, operators=operators), worked if stages else None)

    assert math.isclose(sum(parts.values()), duration, rel_tol=1e-6)
    assert all(each >= 0 and part in PARTS for part, each in parts.items())
