"""Whatever a recording holds: the core raises nothing but its own errors, and no finding is without true numbers.

A few thousand lines here; `python -m tests.fuzzing` goes on to a million.
"""

from collections import Counter

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledgerops.errors import UserError
from ledgerops.model import recording
from ledgerops.model.records import KINDS
from ledgerops.runtime.replay import replay
from tests.fuzzing import mutated
from tests.fuzzing.cases import KINDS as CASES
from tests.fuzzing.cases import run
from tests.fuzzing.checks import judged
from tests.fuzzing.made import Chance, application
from tests.paths import RECORDED
from tests.tables import cases

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
LINES = (RECORDED / "spark-4.2.0.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("number", range(len(CASES) * 5))
def test_a_case_is_judged_or_refused(number):
    run(11, number, Counter())


@cases(
    "number",
    ("an observer whose queue holds nothing", 22),
    ("commits with less than no files", 217),
    ("an event with a number of more than 64 bits", 317),
    ("clocks that go back", 469),
    ("a stage without tasks", 3340),
)
def test_what_once_raised_is_judged(number):
    run(5, number, Counter())


def test_cases_hold_every_kind_of_observation_and_are_the_same_each_time():
    assert {line["kind"] for number in range(0, 60, 6) for line in application(Chance(number), 40)} == set(KINDS)
    first, second = (application(Chance(3), 30) for _ in range(2))
    assert first == second


def test_the_real_lines_that_are_changed_are_all_that_are_recorded():
    assert len(mutated.recordings()) >= 7 and len(mutated.event_logs()) >= 2


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


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_an_odd_value_anywhere_in_any_kind_is_judged_or_refused(data, kind):
    values = orjson.loads(orjson.dumps(application(Chance(7), 40)))
    of_kind = [value for value in values if value["kind"] == kind] or values
    for _ in range(data.draw(st.integers(1, 6))):
        value = data.draw(st.sampled_from(of_kind))
        where = data.draw(st.sampled_from(list(spots(value["data"], ("data",)))))
        try:
            put(value, where, data.draw(ODD))
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took the place away
    try:
        judged(recording.read_lines((orjson.dumps(value) + b"\n" for value in values), "fuzz"), Counter())
    except UserError as error:
        assert "\n" not in str(error)


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, 2000), junk=st.binary(max_size=40), at=st.integers(0, 20))
def test_broken_lines_are_refused_in_one_sentence(cut, junk, at):
    lines = [*LINES[:at], LINES[at][:cut] + junk + b"\n", *LINES[at + 1 : at + 5]]
    try:
        judged(recording.read_lines(iter(lines), "fuzz"), Counter())
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e9])
def test_a_look_at_any_time_is_safe(seconds):
    registry = replay(recording.read(RECORDED / "spark-4.2.0.jsonl")).registry
    for state in registry.queries.values():
        registry.judge(state, seconds)
        assert state.judge.errors == {}
