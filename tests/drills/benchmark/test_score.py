"""The scorer of the data set, on truths and answers made by hand."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from ledgerops.drills.benchmark import score
from tests.tables import cases

FAULT = {
    "split": "test", "kind": "slow-sink", "strength": "clear", "source": "kafka", "void": "", "healthy": False,
    "onset": "later", "started": 0.0, "fault_at": 100.0, "harm_at": 110.0, "ended": 200.0, "due": "warning",
    "accepted": ["slow-sink", "query-stuck"], "also_true": [], "elsewhere": [],
}  # fmt: skip
HEALTHY = FAULT | {
    "kind": "bursts", "strength": "", "onset": "", "healthy": True, "harm_at": None, "due": "", "accepted": [],
}  # fmt: skip


def says(at, *causes, **more):
    """An answer at a moment; `more` holds for each cause."""
    return {"at": at, "causes": [{"cause": cause, "severity": "warning", **more} for cause in causes]}


@cases(
    "answers, seconds, leads",
    ("named first", [says(125, "slow-sink")], 15.0, (True, True, True)),
    ("named second", [says(125, "key-skew", "query-stuck")], 15.0, (False, True, True)),
    ("named fifth", [says(125, *"abcd", "slow-sink")], 15.0, (False, False, True)),
    ("named sixth", [says(125, *"abcde", "slow-sink")], 15.0, (False, False, False)),
    ("named before the harm", [says(105, "slow-sink")], 0.0, (True, True, True)),
    ("named before the fault", [says(99, "slow-sink")], None, (False, False, False)),
    ("another cause", [says(125, "key-skew")], None, (False, False, False)),
    ("nothing said", [], None, (False, False, False)),
    ("half of them", [says(120), says(125, "slow-sink"), says(130)], 15.0, (False, False, False)),
    ("in most from the first on", [says(120), says(125, "slow-sink"), says(130), says(135, "slow-sink")], 15.0,
     (True, True, True)),
    ("answers before the harm do not count where it is named after it",
     [says(104, "slow-sink"), says(106), says(108), says(115, "slow-sink")], 0.0, (True, True, True)),
    ("not serious enough", [says(125, "slow-sink", severity="info")], None, (False, False, False)),
    ("an unknown place", [says(125, "slow-sink", place="other")], 15.0, (True, True, True)),
)  # fmt: skip
def test_a_fault_is_named_by_an_accepted_cause_after_its_start(answers, seconds, leads):
    judged = score.judge(FAULT, answers)
    assert (judged.seconds, tuple(judged.leads.values())) == (seconds, leads)


def test_a_cause_in_another_query_does_not_name_the_fault_and_takes_no_rank_from_it():
    truth = FAULT | {"elsewhere": ["reports"]}
    other, own = says(120, "slow-sink", place="reports"), says(120, "slow-sink", place="orders")

    assert score.judge(truth, [other]).seconds is None
    both = score.judge(truth, [{"at": 120, "causes": other["causes"] + own["causes"]}])
    assert (both.seconds, both.leads[1]) == (10.0, True)


def test_a_fault_that_is_due_at_info_may_be_named_at_info():
    assert score.judge(FAULT | {"due": "info"}, [says(120, "slow-sink", severity="info")]).seconds == 10.0


@cases(
    "truth, answers, alarms",
    ("two", HEALTHY, [says(10, "a"), says(20, "b"), says(30), says(40, "a")], [{"a", "b"}, {"a"}]),
    ("nothing said", HEALTHY, [says(10), says(20)], []),
    ("an info", HEALTHY, [says(10, "a", severity="info")], []),
    ("true of the machine", HEALTHY | {"also_true": ["a"]}, [says(10, "a")], []),
    ("true and another", HEALTHY | {"also_true": ["a"]}, [says(10, "a", "b")], [{"b"}]),
    ("before the fault", FAULT, [says(50, "a"), says(150, "b")], [{"a"}]),
    ("at the fault", FAULT, [says(100, "a")], []),
    ("from birth there is no time before", FAULT | {"onset": "birth"}, [says(50, "a")], []),
)
def test_an_alarm_is_a_run_of_causes_while_all_is_well(truth, answers, alarms):
    assert score.judge(truth, answers).alarms == alarms


def test_the_interval_of_a_share_is_wilsons():
    # 8 of 10 by the formula: centre (0.8 + 0.19208) / 1.38416, half 0.3358 / 1.38416
    found = score.share(8, 10)
    assert (round(found["low"], 4), round(found["high"], 4)) == (0.4902, 0.9433)
    assert (score.share(0, 5)["low"], score.share(5, 5)["high"], score.share(0, 0)) == (0.0, 1.0, None)


@pytest.fixture
def dataset(tmp_path):
    """Two faults, two healthy cases of 200 s, one void case."""
    (tmp_path / "truth").mkdir()
    truths = {
        "1-01": FAULT, "1-02": FAULT | {"kind": "overload", "accepted": ["input-overload"]}, "1-03": HEALTHY,
        "1-04": HEALTHY, "1-05": FAULT | {"void": "the fault did no harm", "harm_at": None, "due": ""},
    }  # fmt: skip
    for case, truth in truths.items():
        (tmp_path / "truth" / f"{case}.json").write_text(json.dumps({"case": case, **truth}))
    names = ("slow-sink", "key-skew", "input-overload", "unknown")
    (tmp_path / "causes.json").write_text(json.dumps({name: {"meaning": "x", "family": "y"} for name in names}))
    return tmp_path


def answered(dataset, *lines):
    file = dataset / "answers.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def answer(case, at, *causes):
    return {"case": case, "at": at, "causes": [{"cause": cause} for cause in causes]}


LINES = (
    answer("1-01", 150, "slow-sink"),
    answer("1-01", 130, "slow-sink"),
    answer("1-01", 60, "unknown"),
    answer("1-02", 130, "key-skew"),
    answer("1-03", 20),
    answer("1-05", 120, "slow-sink"),
)


def test_figures_are_those_computed_by_hand(dataset):
    found = score.report(dataset, answered(dataset, *LINES))
    everything = found["figures"]["all"]

    assert (found["cases"], found["void"], found["unanswered"]) == (5, 1, 1)
    assert (everything["faults"], everything["healthy"], everything["time"]) == (2, 2, 20.0)
    assert [everything[name]["share"] for name in ("recall", "AC@1", "silent")] == [0.5, 0.5, 1.0]
    # 200 s of each healthy case and 100 s before each fault are 600 s; one alarm, before a fault
    assert everything["alarms/hour"] == pytest.approx(6.0)
    assert found["figures"]["kind: slow-sink"]["recall"]["share"] == 1.0
    assert found["figures"]["kind: overload"]["recall"]["share"] == 0.0
    assert [name for name in found["figures"] if name.startswith("onset")] == ["onset: later"]


def test_a_tool_that_looks_back_once_has_no_time(dataset):
    found = score.report(dataset, answered(dataset, answer("1-01", 9999, "slow-sink"), answer("1-03", 9999, "unknown")))

    assert found["figures"]["all"]["time"] is None
    assert found["figures"]["all"]["AC@1"]["share"] == 0.5
    assert found["figures"]["all"]["silent"]["share"] == 0.5


def run(*words):
    return subprocess.run(
        [sys.executable, "-I", score.__file__, *map(str, words)], capture_output=True, text=True, check=False
    )


def test_it_runs_as_a_file_of_its_own(dataset):
    file = answered(dataset, *LINES)
    table, document = run(dataset, file), run(dataset, file, "--json")

    assert (table.returncode, document.returncode) == (0, 0)
    assert table.stdout.splitlines()[0] == "5 cases; 1 void, left out; 1 without an answer"
    assert "all              2       0.50 [0.09, 0.91]" in table.stdout
    assert json.loads(document.stdout)["figures"]["all"]["recall"]["count"] == 1


@cases(
    "line, problem",
    ("not JSON", "{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ("another case", answer("9-99", 1), "missing or unknown '9-99'"),
    ("no case", {"at": 1, "causes": []}, "missing or unknown 'case'"),
    ("no causes", {"case": "1-01", "at": 1}, "missing or unknown 'causes'"),
    ("another cause", answer("1-01", 1, "slow_sink"), "unknown cause or severity in {'cause': 'slow_sink'}"),
    ("no time", answer("1-01", "soon"), "could not convert string to float: 'soon'"),
    ("time NaN", answer("1-01", math.nan), "nan is no time: expected seconds since the epoch"),
    ("no end of time", answer("1-01", math.inf), "inf is no time: expected seconds since the epoch"),
    ("before the epoch", answer("1-01", -1), "-1.0 is no time: expected seconds since the epoch"),
    ("more than any time", answer("1-01", 10**400), "int too large to convert to float"),
    ("a name", {"case": "1-01", "at": 1, "causes": ["slow-sink"]}, "string indices must be integers"),
    ("a list", "[]", "list indices must be integers"),
    ("nested without end", "[" * 100_000, "maximum recursion depth exceeded"),
)
def test_a_line_that_is_not_an_answer_is_named(dataset, line, problem):
    file = answered(dataset, answer("1-01", 1), line)
    found = run(dataset, file)

    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith(f"{file}:2: not an answer: {problem}")
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("at", [0, 1_790_000_000, 1_790_000_000.25, "1790000000"])
def test_seconds_since_the_epoch_are_a_time(dataset, at):
    assert run(dataset, answered(dataset, answer("1-01", at))).returncode == 0


def test_the_scorer_is_short_enough_to_be_read():
    assert len(Path(score.__file__).read_text("utf-8").splitlines()) <= 150


def test_a_line_that_is_no_text_is_named_and_a_rare_separator_ends_none(dataset):
    file = answered(dataset, answer("1-01", 1) | {"note": "one\u2028line"})
    file.write_bytes(file.read_bytes().replace(b"\\u2028", "\u2028".encode()))
    assert run(dataset, file).returncode == 0

    file.write_bytes(file.read_bytes() + b"\xff\n")
    found = run(dataset, file)

    assert found.returncode == 2 and found.stderr.startswith(f"{file}:2: not an answer: 'utf-8' codec can't decode")


def test_a_missing_file_and_missing_words_are_errors(dataset):
    assert run(dataset, dataset / "none").returncode == run(dataset).returncode == 2
    assert run(dataset).stderr == "usage: python score.py DATASET ANSWERS.jsonl [--json]\n"
