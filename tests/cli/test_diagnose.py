from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from ledgerops.cli import main
from ledgerops.config import FRESHNESS_HEADER, MUTE_HEADER
from ledgerops.model.recording import encode
from ledgerops.model.recording import read as read_recording
from tests.drills.saved import recording
from tests.paths import RECORDED
from tests.serving import Quiet, serving

CRASH, OUTAGE = str(RECORDED / "spark-4.2.0.jsonl"), str(RECORDED / "source-unreachable.jsonl")
KEYS = {
    "rule",
    "severity",
    "since",
    "confidence",
    "share",
    "saving_seconds",
    "batches",
    "usual_batches",
    "component",
    "summary",
    "evidence",
    "remedies",
    "explains",
    "ruled_out",
}


def test_the_report_names_the_cause_and_sums_up(capsys):
    assert main(["diagnose", "--from", CRASH]) == 1

    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "  critical query-failed  crashes"
    [when] = [line for line in lines if line.startswith("    when:      2026-11-21 07:02:01 to ")]
    assert "ended with the run" in when
    assert len(out[: out.index("\n\n")].splitlines()) <= 8
    assert "    runbook:   ledgerops rules query-failed" in lines
    assert any(line.startswith("crashes                  failed          health   0") for line in lines)
    assert lines[-1].startswith("6 queries until 2026-11-21 07:02:23 UTC: ") and "crashes (query-failed)" in lines[-1]
    assert "\x1b" not in out


REMEDY = {"action", "why", "command", "safe", "prevents", "settings"}


def test_the_document_has_the_promised_form(capsys):
    assert main(["diagnose", "--from", CRASH, "--json"]) == 1

    document = json.loads(capsys.readouterr().out)
    assert document["version"] == 1 and document["source"] == CRASH and document["at"].endswith("Z")
    crashes = document["queries"][0]
    assert set(crashes) >= {"query", "status", "health", "root_causes", "findings", "forecast"}
    assert set(crashes["root_causes"][0]) == KEYS
    assert set(crashes["root_causes"][0]["evidence"][0]) == {"name", "value", "unit", "expected", "at"}
    assert set(crashes["root_causes"][0]["remedies"][0]) == REMEDY
    assert set(crashes["forecast"]) == {"drain_seconds", "seconds_to_slo_breach"}


def test_nothing_found_is_zero(capsys):
    assert main(["diagnose", "--from", CRASH, "--query", "idle_files"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 query until 2026-11-21 07:02:23 UTC: nothing found"


def test_a_problem_that_had_ended_is_an_incident_of_a_recording(capsys):
    assert main(["diagnose", "--from", OUTAGE]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("  critical source-unreachable  outage, source")
    assert "    when:      2026-11-21 12:35:51 to 12:36:08 UTC, 18 s, ended by itself; confidence high" in lines
    assert lines[-1].endswith(": 1 incident: outage (source-unreachable)")


def test_a_run_whose_end_nobody_recorded_is_said_to_be_as_of_the_end_of_the_source(tmp_path, capsys):
    """A driver that is killed writes no end: its last status would stand for ever."""
    cut = tmp_path / "recording.jsonl"
    cut.write_text("".join(each for each in Path(OUTAGE).read_text().splitlines(True) if '"terminated"' not in each))

    main(["diagnose", "--from", str(cut)])
    assert "the end of its run was not recorded" in capsys.readouterr().out
    main(["diagnose", "--from", OUTAGE])
    assert "not recorded" not in capsys.readouterr().out


def test_a_moment_after_it_is_judged_as_it_was_then(capsys):
    assert main(["diagnose", "--from", OUTAGE, "--at", "2026-11-21T12:37:00Z"]) == 0
    assert "source-unreachable" not in capsys.readouterr().out


def test_incidents_are_a_key_of_the_document_with_the_worst_first(capsys):
    assert main(["diagnose", "--from", CRASH, "--json"]) == 1

    incidents = json.loads(capsys.readouterr().out)["incidents"]
    assert set(incidents[0]) == KEYS | {"query", "until", "seconds", "ended"}
    assert [each["severity"] for each in incidents] == sorted(
        (each["severity"] for each in incidents), key=["critical", "warning", "info"].index
    )


def test_a_past_moment_can_be_judged(capsys):
    assert main(["diagnose", "--from", CRASH, "--at", "2026-11-21T07:02:00Z"]) == 0
    assert "critical" not in capsys.readouterr().out


def test_what_fails_and_what_is_shown_are_two_knobs(tmp_path, capsys):
    assert main(["diagnose", "--from", CRASH, "--fail-on", "critical", "--min-severity", "critical", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["queries"][0]["root_causes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "absent.jsonl"], "cannot read absent.jsonl: no such file or folder"),
        (["s3://logs/app"], "cannot read s3://logs/app: not on this machine; copy it here first"),
        (["9464"], "cannot read 9464: no such file; for an exporter give its URL, such as http://127.0.0.1:9464"),
        (["http://127.0.0.1:9/metrics"], "cannot reach an exporter at http://127.0.0.1:9: connection refused"),
        (["--from", "http://127.0.0.1:9"], "cannot reach an exporter at http://127.0.0.1:9"),
        (["127.0.0.1:9"], "cannot reach an exporter at http://127.0.0.1:9"),
        (["--from", CRASH, "--query", "nobody"], "no query 'nobody' in"),
        (["--from", CRASH, "--at", "yesterday"], "--at yesterday: not a time"),
        (["--from", CRASH, "--at", "2020-01-01"], f"no streaming query in {CRASH} before 2020-01-01"),
        (["--from", CRASH, "--fail-on", "terrible"], "argument --fail-on: invalid choice"),
    ],
    ids=[
        "no file",
        "another store",
        "only a port",
        "the address that Prometheus has",
        "no exporter",
        "no exporter by its host and port",
        "no such query",
        "no time",
        "before the first line",
        "no severity",
    ],
)
def test_could_not_look_is_two_and_one_line(arguments, said, capsys):
    assert main(["diagnose", *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_a_file_that_is_no_recording_is_named_with_its_line(tmp_path, capsys):
    path = tmp_path / "notes.jsonl"
    path.write_text("hello\nworld\n")

    assert main(["diagnose", "--from", str(path)]) == 2
    assert "notes.jsonl:1: not a recording line" in capsys.readouterr().err


def handler(mute="", freshness="", served=CRASH):
    """An exporter that serves a recording and has settings, as its headers give them."""

    class Handler(Quiet):
        def do_GET(self):
            known = self.path == "/recording"
            self.send_response(200 if known else 404)
            for name, value in ((MUTE_HEADER, mute), (FRESHNESS_HEADER, freshness)):
                if value:
                    self.send_header(name, value)
            self.end_headers()
            if known:
                self.wfile.write(Path(served).read_bytes())

    return Handler


@pytest.fixture
def exporter():
    with serving(handler()) as server:
        yield server.url


def test_what_a_running_exporter_mutes_is_muted_in_the_terminal_too(capsys):
    with serving(handler("query-failed:crashes,of-tomorrow")) as server:
        main(["diagnose", server.url, "--query", "crashes", "--json"])
    [query] = json.loads(capsys.readouterr().out)["queries"]
    assert [each["rule"] for each in query["muted"]] == ["query-failed"]
    assert "query-failed" not in [each["rule"] for each in query["findings"]]


def test_a_running_exporter_is_asked_for_its_recording(exporter, capsys, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert main(["diagnose", "--from", exporter, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["source"] == exporter


def test_an_address_that_is_no_exporter_is_said(exporter, capsys):
    assert main(["diagnose", "--from", f"{exporter}/elsewhere"]) == 2
    assert "answers 404" in capsys.readouterr().err


def test_rules_are_listed_and_their_runbooks_printed(capsys):
    assert main(["rules"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 10
    assert main(["rules", "key-skew"]) == 0
    assert "Mitigation: process a placeholder key separately" in capsys.readouterr().out
    assert main(["rules", "key-skow"]) == 2
    assert "did you mean key-skew?" in capsys.readouterr().err


def test_the_trigger_interval_of_an_event_log_is_given_on_the_command_line(capsys):
    log = str(RECORDED / "eventlog" / "eventlog_v2_local-1")

    def interval(*more):
        main(["diagnose", "--from", log, "--json", *more])
        return json.loads(capsys.readouterr().out)["queries"][0]["figures"].get("trigger_interval_seconds")

    assert interval("--trigger", "7s") == 7.0
    assert interval() != 7.0


def found_in_time(capsys, place):
    main(["diagnose", str(place), "--timeline", "--json"])
    return {each["rule"] for each in json.loads(capsys.readouterr().out)["timeline"]["events"]}


def test_results_are_too_old_from_the_age_in_the_settings(capsys, monkeypatch):
    outage = recording("broker-down")
    assert "freshness-breach" not in found_in_time(capsys, outage)

    monkeypatch.setenv("LEDGEROPS_FRESHNESS_OBJECTIVE_SECONDS", "5")
    assert "freshness-breach" in found_in_time(capsys, outage)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        pytest.param("3600.0", False, id="its own objective"),
        pytest.param("", True, id="an older exporter, which does not tell it"),
        pytest.param("never", True, id="not a number"),
    ],
)
def test_the_objective_of_a_running_exporter_counts_instead(capsys, monkeypatch, tmp_path, told, found):
    monkeypatch.setenv("LEDGEROPS_FRESHNESS_OBJECTIVE_SECONDS", "5")
    whole = tmp_path / "recording"
    seen = read_recording(recording("broker-down"))
    whole.write_bytes(b"".join(encode(each.at, each.kind, each.query, orjson.dumps(each.data)) for each in seen))

    with serving(handler(freshness=told, served=whole)) as server:
        rules = found_in_time(capsys, server.url)
    assert "source-unreachable" in rules
    assert ("freshness-breach" in rules) is found


def slow_sink(capsys, *more):
    code = main(["diagnose", str(recording("slow-sink")), *more])
    shown = capsys.readouterr()
    return code, shown.out or shown.err


def test_a_rule_is_muted_for_one_query(capsys, monkeypatch):
    assert slow_sink(capsys)[0] == 1
    monkeypatch.setenv("LEDGEROPS_MUTE", "slow-sink:amber_harbor")
    code, out = slow_sink(capsys)

    assert code == 0
    assert [line[:20] for line in out.splitlines() if "slow-sink" in line] == ["  muted slow-sink: 3"]
    assert out.endswith(": nothing found\n")
    [query] = json.loads(slow_sink(capsys, "--json")[1])["queries"]
    assert [each["rule"] for each in query["muted"]] == ["slow-sink"]


def test_the_setting_of_another_query_mutes_nothing(capsys, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_MUTE", "slow-sink:payments")
    code, out = slow_sink(capsys)
    assert code == 1
    assert "muted" not in out


def test_a_muted_rule_that_does_not_exist_is_one_line(capsys, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_MUTE", "slow-sync")
    assert slow_sink(capsys) == (2, "ledgerops: mute: no rule 'slow-sync'; did you mean slow-sink?\n")


def test_what_asks_exporters_and_reads_event_logs_is_not_imported_for_a_recording():
    code = "import sys; from ledgerops.cli import main; main(['diagnose', sys.argv[1]]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, CRASH], capture_output=True, text=True, check=True)

    imported = set(done.stdout.splitlines()[-1].split())
    assert "ledgerops.analysis.session" in imported
    unused = {"ssl", "urllib.request", "psutil", "logging", "ledgerops.analysis.event_log", "ledgerops.common.masking"}
    assert not imported & unused
