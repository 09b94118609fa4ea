"""Whatever a recording holds: the core raises nothing but its own errors, and no finding is without true numbers.

A few thousand lines here; `python -m tests.fuzzing` goes on to a million.
"""

import random
from collections import Counter

import orjson
import pytest

from ledgerops.model import recording
from ledgerops.model.records import KINDS
from ledgerops.model.spark_progress import format_instant, parse_instant
from ledgerops.runtime.replay import replay
from tests.fuzzing import mutated
from tests.fuzzing.cases import KINDS as CASES
from tests.fuzzing.cases import run
from tests.fuzzing.checks import compared, judged
from tests.fuzzing.made import T0, application
from tests.paths import RECORDED
from tests.tables import cases

WITH_TABLES = next(lines for lines in mutated.recordings() if any(b'"kind":"tables"' in line for line in lines))


@pytest.mark.parametrize("number", range(len(CASES) * 12))
def test_a_case_is_judged_or_refused(number):
    run(11, number, Counter())


@cases(
    "number",
    ("an observer whose queue holds nothing", 22),
    ("an event with a number of more than 64 bits", 317),
    ("a stage without tasks", 3340),
)
def test_what_once_raised_is_judged(number):
    run(5, number, Counter())


def fewer(line):
    """The line, in which commits have less than no files."""
    commits = [commit | {"files": -commit["files"]} for commit in line["data"].get("commits", ())]
    return line | {"data": line["data"] | {"commits": commits}} if commits else line


def back(line):
    """The line, at an instant that is earlier the later it is."""
    return line | {"at": format_instant(2 * T0 - parse_instant(line["at"]))}


@cases("change", ("commits with less than no files", fewer), ("clocks that go back", back))
def test_what_once_raised_of_a_table_or_a_clock_is_judged(change):
    lines = (orjson.dumps(change(orjson.loads(line))) + b"\n" for line in WITH_TABLES)
    judged(recording.read_lines(lines, "fuzz"), Counter())


def test_cases_hold_every_kind_of_observation_and_are_the_same_each_time():
    assert {line["kind"] for number in range(40) for line in application(random.Random(number), 40)} == set(KINDS)
    first, second = (application(random.Random(3), 30) for _ in range(2))
    assert first == second


def test_the_real_lines_that_are_changed_are_all_that_are_recorded():
    assert len(mutated.recordings()) >= 7 and len(mutated.event_logs()) >= 2


def test_both_halves_of_every_recording_are_compared():
    for lines in mutated.recordings():
        compared(recording.read_lines(iter(lines), "fuzz"), Counter())


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e9])
def test_a_look_at_any_time_is_safe(seconds):
    registry = replay(recording.read(RECORDED / "spark-4.2.0.jsonl")).registry
    for state in registry.queries.values():
        registry.judge(state, seconds)
        assert state.judge.errors == {}
