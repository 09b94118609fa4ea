"""Whatever a recording holds: the core raises nothing but its own errors, and no finding is without true numbers."""

from __future__ import annotations

import math
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgerops import recording
from ledgerops.collect import eventlog
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.report import document, text
from ledgerops.errors import UserError
from ledgerops.fleet import Fleet
from ledgerops.offline import replay
from ledgerops.progress import BadRecord

RECORDED = Path(__file__).parent.parent / "recorded"
LINES = (RECORDED / "spark-4.2.0.jsonl").read_bytes().splitlines(keepends=True)
EVENTS = (RECORDED / "eventlog" / "local-2").read_bytes().splitlines(keepends=True)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.builds(list),  # made anew each time: a later change may go into it
    st.builds(dict),
    st.builds(lambda: [None]),
    st.builds(lambda: {"0": {"0": -5}}),
)


def spots(value, path=()):
    """Every place in a JSON value."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from spots(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from spots(each, (*path, index))


def put(value, path, what):
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = what


def judged(observations) -> None:
    fleet = Fleet(Diagnoser)
    at = 0.0
    for seen in observations:
        at = max(at, seen.at)
        try:
            state = fleet.ingest(seen)
        except BadRecord:
            continue
        if state is None:
            continue
        verdict = fleet.judge(state, at)
        assert state.judge.errors == {}
        assert 0 <= verdict.health <= 100
        for finding in (*verdict.findings, *verdict.root_causes):
            assert finding.evidence and finding.summary
            assert all(math.isfinite(each.value) for each in finding.evidence)
            assert 0 <= finding.confidence <= 1
        text(document([verdict], at, "fuzz"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_observations_are_judged_or_refused(data):
    values = [orjson.loads(line) for line in LINES[:120]]
    for _ in range(data.draw(st.integers(1, 12))):
        value = data.draw(st.sampled_from(values))
        where = data.draw(st.sampled_from(list(spots(value["data"], ("data",)))[1:]))
        try:
            put(value, where, data.draw(ODD))
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took the place away
    judged(
        recording.read_lines(
            (orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS) + b"\n" for value in values), "fuzz"
        )
    )


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, 2000), junk=st.binary(max_size=40), at=st.integers(0, 20))
def test_broken_lines_are_refused_in_one_sentence(cut, junk, at):
    lines = [*LINES[:at], LINES[at][:cut] + junk + b"\n", *LINES[at + 1 : at + 5]]
    try:
        judged(recording.read_lines(iter(lines), "fuzz"))
    except UserError as error:
        assert "\n" not in str(error)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_event_logs_are_read_or_refused(tmp_path, data):
    values = [orjson.loads(line) for line in EVENTS]
    for _ in range(data.draw(st.integers(1, 8))):
        value = data.draw(st.sampled_from(values))
        try:
            put(value, data.draw(st.sampled_from(list(spots(value)))), data.draw(ODD))
        except (TypeError, KeyError, IndexError):
            continue
    path = tmp_path / "local-9"
    path.write_bytes(b"".join(orjson.dumps(value) + b"\n" for value in values))
    try:
        replay(eventlog.read(path))
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e9])
def test_a_look_at_any_time_is_safe(seconds):
    fleet = replay(recording.read(RECORDED / "spark-4.2.0.jsonl")).fleet
    for state in fleet.queries.values():
        fleet.judge(state, seconds)
        assert state.judge.errors == {}
