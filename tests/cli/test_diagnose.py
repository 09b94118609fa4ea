import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
import pytest

from ledgerops.analysis.session import BROKE_DOWN
from ledgerops.config import FRESHNESS_HEADER, MUTE_HEADER
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules import RULES
from ledgerops.model.recording import encode
from ledgerops.model.recording import read as read_recording
from ledgerops.model.spark_progress import format_instant
from tests.build import T0, spark_json
from tests.drills.saved import recording
from tests.paths import RECORDED
from tests.serving import Background, Quiet
from tests.tables import cases

CRASH, OUTAGE = str(RECORDED / "spark-4.2.0.jsonl"), str(RECORDED / "source-unreachable.jsonl")
SLOW_SINK = str(RECORDED / "drills" / "slow-sink" / "recording")
KEYS = {
    "rule", "severity", "since", "confidence", "share", "saving_seconds", "batches", "usual_batches", "component",
    "summary", "evidence", "remedies", "explains", "ruled_out",
}  # fmt: skip


@pytest.fixture
def diagnose(ledgerops):
    return partial(ledgerops, "diagnose")


def test_the_report_names_the_cause_and_sums_up(diagnose):
    told = diagnose("--from", CRASH)

    assert told.code == 1
    assert told.lines[0] == "  critical query-failed  crashes"
    [when] = [line for line in told.lines if line.startswith("    when:      2026-11-21 07:02:01 to ")]
    assert "ended with the run" in when
    assert told.lines.index("") <= 8
    assert "    runbook:   ledgerops rules query-failed" in told.lines
    assert any(line.startswith("crashes                  failed          health   0") for line in told.lines)
    assert told.lines[-1].startswith("6 queries until 2026-11-21 07:02:23 UTC: ")
    assert "crashes (query-failed)" in told.lines[-1]
    assert "\x1b" not in told.out


def test_the_document_has_the_promised_form_and_the_worst_incident_first(diagnose):
    told = diagnose("--from", CRASH, "--json")

    assert told.code == 1
    assert (told.document["version"], told.document["source"], told.document["at"][-1]) == (1, CRASH, "Z")
    crashes = told.document["queries"][0]
    [cause, *_] = crashes["root_causes"]
    assert set(crashes) >= {"query", "status", "health", "root_causes", "findings", "forecast"}
    assert set(cause) == KEYS
    assert set(cause["evidence"][0]) == {"name", "value", "unit", "expected", "at"}
    assert set(cause["remedies"][0]) == {"action", "why", "command", "safe", "prevents", "settings"}
    assert set(crashes["forecast"]) == {"drain_seconds", "seconds_to_slo_breach"}
    incidents = told.document["incidents"]
    assert set(incidents[0]) == KEYS | {"query", "until", "seconds", "ended"}
    severities = [each["severity"] for each in incidents]
    assert severities == sorted(severities, key=["critical", "warning", "info"].index)


def test_nothing_found_is_zero(diagnose):
    told = diagnose("--from", CRASH, "--query", "idle_files")
    assert (told.code, told.lines[-1]) == (0, "1 query until 2026-11-21 07:02:23 UTC: nothing found")


def test_a_problem_that_had_ended_is_an_incident_of_a_recording(diagnose):
    told = diagnose("--from", OUTAGE)

    assert told.code == 1
    assert told.lines[0].startswith("  critical source-unreachable  outage, source")
    assert "    when:      2026-11-21 12:35:51 to 12:36:08 UTC, 18 s, ended by itself; confidence high" in told.lines
    assert told.lines[-1].endswith(": 1 incident: outage (source-unreachable)")
    assert "not recorded" not in told.out


def test_a_run_whose_end_nobody_recorded_is_said_to_be_as_of_the_end_of_the_source(tmp_path, diagnose):
    """A driver that is killed writes no end: its last status would stand for ever."""
    cut = tmp_path / "recording.jsonl"
    cut.write_text("".join(each for each in Path(OUTAGE).read_text().splitlines(True) if '"terminated"' not in each))
    assert "the end of its run was not recorded" in diagnose("--from", cut).out


@cases(
    "again, said",
    ("once", ["12:40:00"], "the run before 2026-11-21 12:40:00 UTC"),
    ("twice", ["12:40:00", "12:45:00"], "2 runs, the last before 2026-11-21 12:45:00 UTC,"),
)
def test_a_driver_that_was_killed_and_started_again_is_told_beside_the_query(tmp_path, diagnose, again, said):
    lines = [orjson.loads(each) for each in Path(OUTAGE).read_text().splitlines() if '"terminated"' not in each]
    [begun] = [each for each in lines if each["kind"] == "started"]
    for number, clock in enumerate(again):
        at = f"2026-11-21T{clock}.000Z"
        lines.append({**begun, "at": at, "data": {**begun["data"], "runId": f"again-{number}", "timestamp": at}})
    (tmp_path / "recording.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))

    told = diagnose("--from", tmp_path / "recording.jsonl")

    assert f"; nothing was recorded of how {said} ended" in told.out
    assert "of how" not in diagnose("--from", OUTAGE).out


@cases(
    "place, at, absent",
    ("before it", CRASH, "2026-11-21T07:02:00Z", "critical"),
    ("after it", OUTAGE, "2026-11-21T12:37:00Z", "source-unreachable"),
)
def test_a_moment_without_the_problem_is_judged_as_it_was_then(diagnose, place, at, absent):
    told = diagnose("--from", place, "--at", at)
    assert (told.code, absent in told.out) == (0, False)


def test_what_fails_and_what_is_shown_are_two_knobs(diagnose):
    told = diagnose("--from", CRASH, "--fail-on", "critical", "--min-severity", "critical", "--json")
    assert told.code == 1
    assert told.document["queries"][0]["root_causes"]


@pytest.mark.parametrize(("lowest", "shown"), [("warning", ["slow-sink"]), ("critical", [])])
def test_what_is_not_shown_is_in_no_list_of_the_document(diagnose, lowest, shown):
    told = diagnose("--from", SLOW_SINK, "--at", "2026-11-21T18:47:45Z", "--json", "--min-severity", lowest)

    assert [each["rule"] for each in told.document["queries"][0]["ended_lately"]] == shown


CANNOT_LOOK = {
    "--from absent.jsonl": "cannot read absent.jsonl: no such file or folder",
    "s3://logs/app": "cannot read s3://logs/app: not on this machine; copy it here first",
    "9464": "cannot read 9464: no such file; for an exporter give its URL, such as http://127.0.0.1:9464",
    # the address that Prometheus has
    "http://127.0.0.1:9/metrics": "cannot reach an exporter at http://127.0.0.1:9: connection refused",
    "--from http://127.0.0.1:9": "cannot reach an exporter at http://127.0.0.1:9",
    "127.0.0.1:9": "cannot reach an exporter at http://127.0.0.1:9",
    f"--from {CRASH} --query nobody": "no query 'nobody' in",
    f"--from {CRASH} --at yesterday": "--at yesterday: not a time",
    f"--from {CRASH} --at 2020-01-01": f"no streaming query in {CRASH} before 2020-01-01",
    f"--from {CRASH} --fail-on terrible": "argument --fail-on: invalid choice",
}


@pytest.mark.parametrize(("arguments", "said"), CANNOT_LOOK.items(), ids=CANNOT_LOOK)
def test_could_not_look_is_two_and_one_line(refusal, arguments, said):
    assert said in refusal("diagnose", *arguments.split())


def test_a_file_that_is_no_recording_is_named_with_its_line(tmp_path, refusal):
    (tmp_path / "notes.jsonl").write_text("hello\nworld\n")
    assert "notes.jsonl:1: not a recording line" in refusal("diagnose", "--from", "notes.jsonl")


def handler(mute="", freshness="", served=CRASH):
    """An exporter that serves a recording and has settings, as its headers give them."""

    class Handler(Quiet):
        def do_GET(self):
            known = self.path == "/recording"
            given = {name: value for name, value in ((MUTE_HEADER, mute), (FRESHNESS_HEADER, freshness)) if value}
            self.reply(200 if known else 404, Path(served).read_bytes() if known else b"", given)

    return Handler


def test_what_a_running_exporter_mutes_is_muted_in_the_terminal_too(diagnose):
    with Background(handler("query-failed:crashes,of-tomorrow")) as server:
        [query] = diagnose(server.url, "--query", "crashes", "--json").document["queries"]
    assert [each["rule"] for each in query["muted"]] == ["query-failed"]
    assert "query-failed" not in [each["rule"] for each in query["findings"]]


def test_a_running_exporter_is_asked_for_its_recording_and_another_address_is_said(diagnose, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Background(handler()) as server:
        told, elsewhere = diagnose("--from", server.url, "--json"), diagnose("--from", f"{server.url}/elsewhere")

    assert (told.code, told.document["source"]) == (1, server.url)
    assert elsewhere.code == 2
    assert "answers 404" in elsewhere.err


def test_the_trigger_interval_of_an_event_log_is_given_on_the_command_line(diagnose):
    def interval(*more):
        told = diagnose("--from", RECORDED / "eventlog" / "eventlog_v2_local-1", "--json", *more)
        return told.document["queries"][0]["figures"].get("trigger_interval_seconds")

    assert interval("--trigger", "7s") == 7.0 != interval()


def found_in_time(diagnose, place):
    return {each["rule"] for each in diagnose(place, "--timeline", "--json").document["timeline"]["events"]}


def test_results_are_too_old_from_the_age_in_the_settings(diagnose, monkeypatch):
    outage = recording("broker-down")
    assert "freshness-breach" not in found_in_time(diagnose, outage)
    monkeypatch.setenv("LEDGEROPS_FRESHNESS_OBJECTIVE_SECONDS", "5")
    assert "freshness-breach" in found_in_time(diagnose, outage)


@cases(
    "told, found",
    ("its own objective", "3600.0", False),
    ("an older exporter, which does not tell it", "", True),
    ("not a number", "never", True),
)
def test_the_objective_of_a_running_exporter_counts_instead(diagnose, monkeypatch, tmp_path, told, found):
    monkeypatch.setenv("LEDGEROPS_FRESHNESS_OBJECTIVE_SECONDS", "5")
    whole = tmp_path / "recording"
    seen = read_recording(recording("broker-down"))
    whole.write_bytes(b"".join(encode(each.at, each.kind, each.query, orjson.dumps(each.data)) for each in seen))

    with Background(handler(freshness=told, served=whole)) as server:
        rules = found_in_time(diagnose, server.url)
    assert "source-unreachable" in rules
    assert ("freshness-breach" in rules) is found


@pytest.fixture
def slow_sink(diagnose):
    return partial(diagnose, recording("slow-sink"))


def test_a_rule_is_muted_for_one_query(slow_sink, monkeypatch):
    assert slow_sink().code == 1
    monkeypatch.setenv("LEDGEROPS_MUTE", "slow-sink:amber_harbor")
    told = slow_sink()

    assert told.code == 0
    assert [line[:20] for line in told.lines if "slow-sink" in line] == ["  muted slow-sink: 3"]
    assert told.out.endswith(": nothing found\n")
    [query] = slow_sink("--json").document["queries"]
    assert [each["rule"] for each in query["muted"]] == ["slow-sink"]


def test_the_setting_of_another_query_mutes_nothing(slow_sink, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_MUTE", "slow-sink:payments")
    told = slow_sink()
    assert (told.code, "muted" in told.out) == (1, False)


def test_a_muted_rule_that_does_not_exist_is_one_line(slow_sink, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_MUTE", "slow-sync")
    assert slow_sink() == (2, "", "ledgerops: mute: no rule 'slow-sync'; did you mean slow-sink?\n")


def test_what_asks_exporters_and_reads_event_logs_is_not_imported_for_a_recording():
    code = "import sys; from ledgerops.cli import main; main(['diagnose', sys.argv[1]]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, CRASH], capture_output=True, text=True, check=True)

    imported = set(done.stdout.splitlines()[-1].split())
    assert "ledgerops.analysis.session" in imported
    unused = {"ssl", "urllib.request", "psutil", "logging", "ledgerops.analysis.event_log", "ledgerops.common.masking"}
    assert not imported & unused


@pytest.mark.parametrize(("runs", "asks"), [(3, False), (1, True)])
def test_an_interval_is_not_asked_for_where_runs_end_by_themselves(tmp_path, diagnose, runs, asks):
    path, lines = tmp_path / "recording.jsonl", []
    for run in range(runs):
        of_run, at = {"id": "id-1", "runId": f"run-{run}", "name": "nightly"}, T0 + 60.0 * run
        progress = spark_json(**of_run, timestamp=format_instant(at), batchId=run)
        for after, kind, data in ((0, "started", {}), (0.9, "progress", progress), (0.9, "terminated", {})):
            lines.append(encode(at + after, kind, "nightly", orjson.dumps(data or of_run)))
    path.write_bytes(b"".join(lines))

    assert ("add --trigger" in diagnose("--from", path).out) is asks


def test_a_rule_that_breaks_down_is_told_once_and_hides_no_other(diagnose, monkeypatch):
    def breaks(view):
        raise TypeError("sequence index must be integer")

    broken = [replace(rule, check=breaks) if rule.slug == "late-data" else rule for rule in RULES]
    monkeypatch.setattr("ledgerops.runtime.replay.Diagnoser", partial(Diagnoser, broken))
    told = diagnose("--query", "crashes", CRASH)
    assert (told.code, told.lines[0]) == (1, "  critical query-failed  crashes")
    assert told.err.splitlines() == [f"ledgerops: the rule late-data {BROKE_DOWN}"]
