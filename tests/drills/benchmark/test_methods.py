"""Packages of others, ledgerops without a part of its data, and the command that runs and publishes all of them."""

import json
import sys
from pathlib import Path

import pytest

from ledgerops.drills.benchmark import __main__ as command
from ledgerops.drills.benchmark import page, score
from ledgerops.drills.benchmark.baselines import ours, outside, packages
from ledgerops.drills.benchmark.baselines.data import BenchmarkCase
from ledgerops.drills.benchmark.methods import ABLATIONS, METHODS
from ledgerops.drills.benchmark.page import Claim
from ledgerops.errors import UserError
from ledgerops.model.records import Observation
from tests.drills.benchmark.tiny import T0, case, write
from tests.tables import cases

DURATION = "ledgerops_last_batch_duration_seconds"
PART = "ledgerops_batch_part_seconds/python"


def seen(kind, at=T0, **data) -> Observation:
    return Observation(at, kind, "orders", data)


@pytest.fixture
def late() -> BenchmarkCase:
    return BenchmarkCase(Path("1-01"), T0, T0 + 60, onset=T0 + 20)


@pytest.mark.parametrize(("kind", "kept"), [("tasks", False), ("progress", True)])
def test_kinds_of_records_can_be_taken_away(late, kind, kept):
    assert (ours.without("tasks", "host")(late, seen(kind)) is not None) is kept


@pytest.mark.parametrize(
    ("kind", "at", "kept"),
    [("progress", 19, False), ("progress", 20, True), ("started", 0, True), ("plan", 0, True), ("tasks", 1, False)],
)
def test_without_a_past_only_what_does_not_come_again_is_known_of_the_time_before(late, kind, at, kept):
    assert (ours.without_past(late, seen(kind, T0 + at)) is not None) is kept


def test_a_healthy_case_keeps_its_past():
    healthy = BenchmarkCase(Path("1-01"), T0, T0 + 60, onset=None)
    assert ours.without_past(healthy, seen("progress")) is not None


def test_without_the_trigger_the_rest_of_the_plan_stays(late):
    found = ours.without_trigger(late, seen("plan", trigger="processing_time", trigger_interval=2.0, sink="Kafka"))
    assert found is not None and found.data == {"trigger": None, "trigger_interval": None, "sink": "Kafka"}
    assert ours.without_trigger(late, seen("progress", batchId=1)) == seen("progress", batchId=1)


def test_sparks_own_metrics_hold_rows_and_times_of_a_batch_and_no_offsets(late):
    source = {"description": "KafkaV2", "endOffset": {"t": {"0": 9}}, "metrics": {"x": "1"}, "numInputRows": 9}
    found = ours.spark_only(late, seen("progress", sources=[source], durationMs={"addBatch": 5}))

    assert found is not None and found.data["durationMs"] == {"addBatch": 5}
    assert found.data["sources"] == [{"description": "KafkaV2", "numInputRows": 9}]


@pytest.mark.parametrize("kind", ["tasks", "plan", "offsets", "files", "driver_code", "batch_running"])
def test_sparks_own_metrics_hold_no_tasks_plan_or_offsets(late, kind):
    assert ours.spark_only(late, seen(kind)) is None


def test_sparks_own_metrics_do_not_say_why_a_query_ended(late):
    found = ours.spark_only(late, seen("terminated", exception="boom", errorClassOnException="X"))
    assert found is not None and not any(found.data.values())


def test_a_package_is_told_when_the_fault_began_but_not_of_a_healthy_case(tmp_path):
    metrics = {DURATION: [1, 2], PART: [1, 2]}

    assert packages.request(case(tmp_path / "fault", metrics, fault=0))["split"] is not None
    asked = packages.request(case(tmp_path / "healthy", metrics))
    assert asked["split"] is None and asked["service"] == [f'{DURATION}{{query="orders"}}']


def test_the_ranked_metrics_of_a_package_are_mapped_by_the_way_they_moved(tmp_path):
    one = case(tmp_path, {PART: [1.0] * 6 + [9.0] * 6, DURATION: [9.0] * 6 + [1.0] * 6}, fault=6)
    asked = packages.request(one)

    assert packages.answer(one, asked, asked["series"])["causes"] == [{"cause": "python-bound"}]
    assert packages.answer(one, asked, [])["causes"] == []


def test_the_script_gives_a_method_a_frame_of_all_series_and_its_ranks_their_names_back():
    def method(frame, inject_time):
        assert inject_time == 5.0 and list(frame["time"]) == [0.0, 5.0]
        return {"ranks": [name for name in reversed(frame.columns) if name != "time"]}

    request = {"time": [0, 5], "series": {"a": [None, 1.0], "b": [2.0, 3.0]}, "service": ["b"], "split": 5.0}

    assert outside.reply(method, request) == ["b", "a"]


def test_without_a_series_of_how_well_the_query_does_nothing_is_detected():
    request = {"time": [0, 5], "series": {"a": [1.0, 1.0]}, "service": [], "split": None}
    assert outside.reply(lambda frame, inject_time: {"ranks": ["metric_0"]}, request) == []


def test_an_environment_without_the_packages_is_refused(tmp_path):
    one = case(tmp_path, {DURATION: [1, 2]})

    with pytest.raises(UserError, match="cannot run"):
        list(packages.by_package(tmp_path / "bin" / "python", "baro", [one]))
    with pytest.raises(UserError, match="ended early"):
        list(packages.by_package(Path(sys.executable), "baro", [one]))


TRUTHS = {
    "fault": {"void": "", "accepted": ["slow-sink"], "also_true": []},
    "healthy": {"void": "", "accepted": [], "also_true": ["cpu-saturated"]},
    "void": {"void": "no harm", "accepted": ["slow-sink"], "also_true": []},
}


def stated(case: str, cause: str, times: int = 10, severity: str = "warning", sure: float = 0.8):
    named = [{"cause": cause, "severity": severity, "confidence": sure}]
    return {case: [{"case": case, "at": T0 + number, "causes": named} for number in range(times)]}


@cases(
    "answers, claimed",
    ("it is right", stated("fault", "slow-sink"), [Claim(0.8, True)]),
    ("it is wrong", stated("fault", "key-skew"), [Claim(0.8, False)]),
    ("nothing is wrong with the query", stated("healthy", "slow-sink"), [Claim(0.8, False)]),
    ("true of the machine", stated("healthy", "cpu-saturated"), []),
    ("only at info", stated("fault", "slow-sink", severity="info"), []),
    ("the case shows nothing", stated("void", "slow-sink"), []),
    ("nothing was said", {}, []),
)
def test_a_first_cause_is_a_claim_that_is_true_or_not(answers, claimed):
    assert page.claims(TRUTHS, answers) == claimed


def test_claims_are_counted_by_their_confidence():
    text = page.calibrated([Claim(0.5, False), Claim(0.95, True), Claim(1.0, True), Claim(0.92, False)])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]

    assert rows == [
        ["50% to 60%", "50%", "1", "0", "0% [0%, 79%]"],
        ["90% to 100%", "96%", "3", "2", "67% [21%, 94%]"],
    ]


def answers(cause: str) -> list[dict[str, object]]:
    return [{"at": T0 + 5, "causes": [{"cause": cause, "severity": "warning"}]}]


TRUTH = {
    "void": "", "healthy": False, "onset": "later", "fault_at": T0, "harm_at": T0 + 5, "due": "warning",
    "accepted": ["slow-sink"], "also_true": [], "elsewhere": [], "kind": "stuck-sink", "strength": "just",
}  # fmt: skip


def test_a_fault_whose_cause_is_not_first_is_listed_with_what_was_first():
    row = "| 1-01 | stuck-sink, later, just | slow-sink | {:<11} |        |".format
    assert page.missed({"1-01": TRUTH}, {"1-01": answers("key-skew")}).splitlines()[2] == row("key-skew")
    assert page.missed({"1-01": TRUTH}, {"1-01": []}).splitlines()[2] == row("nothing")
    assert page.missed({"1-01": TRUTH}, {"1-01": answers("slow-sink")}) == "Nothing."
    assert page.missed({"1-01": TRUTH | {"void": "no harm"}}, {"1-01": []}) == "Nothing."


def test_what_cannot_be_run_is_refused_before_the_run(tmp_path, capsys):
    assert command.main([str(tmp_path)]) == 2
    write(tmp_path, "1-01", {DURATION: [1, 2]}, None)
    assert command.main([str(tmp_path), "--only", "magic"]) == 2

    data, method = capsys.readouterr().err.splitlines()
    assert "no cases of the split test in" in data and "no method magic" in method


@pytest.fixture
def answered(tmp_path) -> Path:
    """A data set of a fault and a healthy case, and a page; `out` has the answers of all methods: nothing is wrong,
    but for the recording, in which an overload is first."""
    write(tmp_path / "data", "1-01", {"ledgerops_query_backlog_offsets": [9] * 12}, 4, ["input-overload"])
    write(tmp_path / "data", "1-02", {"ledgerops_query_backlog_offsets": [9] * 12}, None)
    (tmp_path / "out").mkdir()
    overload = [{"cause": "input-overload", "severity": "warning", "place": "orders", "confidence": 0.8}]
    for method in (*METHODS, *ABLATIONS):
        right = method.slug == "recording"
        found = [
            {"case": "1-01", "at": T0 + at, "causes": overload if right and at > 30 else []} for at in range(0, 56, 5)
        ]
        (tmp_path / "out" / f"{method.slug}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in found))
        (tmp_path / "out" / f"{method.slug}.json").write_text('{"cpu_seconds": 1.0}')
    (tmp_path / "benchmark.md").write_text("# Benchmark\n\n<!-- benchmark -->\n\nmore\n")
    return tmp_path


def test_the_page_compares_all_methods_and_shows_what_is_missed_and_how_sure_they_were(answered):
    arguments = [str(answered / "data"), "--out", str(answered / "out"), "--only", "backlog"]

    assert command.main([*arguments, "--publish", str(answered / "benchmark.md")]) == 0

    text = (answered / "benchmark.md").read_text()
    rows = {line.split("|")[1].strip(): line.split("|") for line in text.splitlines() if line.startswith("| ")}
    assert {method.name for method in (*METHODS, *ABLATIONS)} <= set(rows)
    whole = next(line.split("|") for line in text.splitlines() if line.startswith("| ledgerops, recording"))
    assert [cell.split()[0] for cell in whole[3:8]] == ["1.00", "1.00", "1.00", "1.00", "0.0"]
    assert rows["80% to 90%"][3].strip() == "1"
    assert "Nothing." in text and "1 faults and 1 healthy cases, split `test`, seeds 1." in text


def test_only_cases_of_the_split_are_answered_and_scored(answered):
    for seed, split in ((2, "development"), (3, "held-back")):
        write(answered / "data", f"{seed}-01", {"ledgerops_query_backlog_offsets": [9] * 12}, 4, ["input-overload"])
        file = answered / "data" / "truth" / f"{seed}-01.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"case": f"{seed}-01", "split": split}))
    (answered / "data" / "answers").mkdir()
    lines = [json.dumps({"case": case, "at": T0 + 50, "causes": []}) + "\n" for case in ("1-01", "2-01", "3-01")]
    (answered / "data" / "answers" / "ledgerops.jsonl").write_text("".join(lines))
    arguments = [str(answered / "data"), "--out", str(answered / "out"), "--only", "backlog", "live", "most-frequent"]

    assert command.main([*arguments, "--publish", str(answered / "benchmark.md")]) == 0

    given = [*(answered / "out").glob("*.jsonl")]
    assert {json.loads(line)["case"] for file in given for line in file.read_text().splitlines()} == {"1-01", "1-02"}
    assert "1 faults and 1 healthy cases, split `test`, seeds 1." in (answered / "benchmark.md").read_text()
    every = [method.slug for method in (*METHODS, *ABLATIONS)]
    assert score.report(answered / "data", answered / "out" / f"{every[0]}.jsonl")["figures"]["all"]["faults"] == 3


def test_a_split_without_cases_is_refused(answered, capsys):
    assert command.main([str(answered / "data"), "--split", "held-back"]) == 2
    assert f"no cases of the split held-back in {answered / 'data'}" in capsys.readouterr().err


def test_without_any_answer_the_page_is_complete(answered):
    (answered / "out" / "recording.jsonl").write_text("")

    assert command.main([str(answered / "data"), "--out", str(answered / "out"), "--only", "backlog"]) == 0
    found = command.result(
        next(each for each in METHODS if each.slug == "recording"), answered / "data", answered / "out"
    )
    assert found.figures["all"]["recall"]["count"] == 0
