"""`ledgerops compare`: two places, or one and the moment of the change."""

from __future__ import annotations

import json
import random

import pytest

from ledgerops.analysis.advice import advice
from ledgerops.analysis.inputs import open_source
from ledgerops.cli import main
from ledgerops.model.spark_progress import format_instant
from tests.build import T0, spark_json
from tests.paths import RECORDED


def record(path, batches=80, slower_from=None, slower=2.0, began=T0, query="daily_counts", seed=1):
    """A recording of a batch every 2 s, some 0.6 s long; `slower` times as long from a batch on."""
    chance = random.Random(seed)
    run = f"run-of-{query}-{seed}"
    lines = [_line(began, "started", query, {"id": "i", "runId": run, "name": query})]
    for number in range(batches):
        factor = slower if slower_from is not None and number >= slower_from else 1.0
        took = round(600 * factor * chance.lognormvariate(0, 0.05))
        at = began + 2.0 * number
        data = spark_json(
            name=query,
            runId=run,
            batchId=number,
            timestamp=format_instant(at),
            batchDuration=took,
            numInputRows=chance.randint(250, 350),
            durationMs={"triggerExecution": took, "addBatch": took - 100, "walCommit": 50, "queryPlanning": 50},
        )
        lines.append(_line(at + took / 1000, "progress", query, data))
    with path.open("ab") as file:
        file.writelines(sorted(lines, key=lambda line: json.loads(line)["at"]))
    return str(path)


def _line(at, kind, query, data):
    return json.dumps({"at": format_instant(at), "kind": kind, "query": query, "data": data}).encode() + b"\n"


def test_a_change_that_made_it_slower_is_told_with_the_phase_and_fails(tmp_path, capsys):
    place = record(tmp_path / "x.jsonl", 120, slower_from=60)
    assert main(["compare", place, "--change-at", format_instant(T0 + 120)]) == 1

    out = capsys.readouterr().out.splitlines()
    assert out[0] == "daily_counts             worse (batch duration)"
    assert out[1] == "  load               149 to 149 rows/s, 298 to 298 rows a batch, 45 and 60 batches"
    assert out[3].startswith("  batch duration     0.60 s to 1.2 s (+98%), between +0.5")
    assert out[4].startswith("    add batch        0.50 s to 1.1 s (+118%), between +0.5")
    assert out[-1] == "1 query: 1 worse"


def test_two_recordings_of_the_same_are_no_effect(tmp_path, capsys):
    before = record(tmp_path / "a.jsonl", 200, seed=1)
    after = record(tmp_path / "b.jsonl", 200, seed=2, began=T0 + 9000)

    assert main(["compare", before, after]) == 0
    assert capsys.readouterr().out.startswith("daily_counts             no effect\n")


def test_the_document_has_a_form(tmp_path, capsys):
    place = record(tmp_path / "x.jsonl", 120, slower_from=60, slower=0.5)
    assert main(["compare", place, "--change-at", format_instant(T0 + 120), "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    [query] = document["queries"]
    assert (query["query"], query["verdict"], query["before"]["batches"]) == ("daily_counts", "better", 45)
    assert set(query["measures"][0]) == {
        "name", "unit", "verdict", "because", "before", "after", "difference", "low", "high", "probability",
    }  # fmt: skip


def test_what_is_worse_comes_first(tmp_path, capsys):
    record(tmp_path / "x.jsonl", 120, query="a_same")
    place = record(tmp_path / "x.jsonl", 120, slower_from=60, query="b_worse", seed=2)
    main(["compare", place, "--change-at", format_instant(T0 + 120)])

    out = capsys.readouterr().out
    assert out.startswith("b_worse") and out.endswith("2 queries: 1 worse, 1 no effect\n")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "give two recordings to compare, or one and the time of the change with --change-at"),
        (["b.jsonl", "--change-at", "2027-01-15"], "give two recordings to compare, or one and the time"),
        (["--change-at", "noon"], "--change-at noon: not a time; write it like 2026-11-21T08:30:00Z"),
        (["--change-at", "2020-01-01"], "--change-at 2020-01-01: not between the first batch (2027-01-15T08:00:30"),
        (
            ["--change-at", "2027-01-15T08:01:00Z", "--query", "nobody"],
            "no query 'nobody' to compare; there are daily_",
        ),
        (["absent.jsonl"], "cannot read absent.jsonl: no such file or folder"),
    ],
    ids=["one place", "too much", "no time", "not within", "no such query", "no file"],
)
def test_could_not_look_is_two_and_one_line(tmp_path, more, said, capsys):
    assert main(["compare", record(tmp_path / "x.jsonl"), *more]) == 2

    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_a_recording_that_is_too_short_is_said(tmp_path, capsys):
    place = record(tmp_path / "x.jsonl", 10)
    assert main(["compare", place, place]) == 2
    assert "ran for long enough to compare" in capsys.readouterr().err


def test_two_places_without_a_query_in_common_cannot_be_compared(tmp_path, capsys):
    here, there = record(tmp_path / "x.jsonl"), record(tmp_path / "y.jsonl", query="renamed")

    assert main(["compare", here, there]) == 2
    assert capsys.readouterr().err == (
        f"ledgerops: no query ran long enough on both sides: daily_counts in {here} and renamed in {there}\n"
    )


def test_what_was_advised_before_a_change_is_said_with_what_became_of_the_harm(capsys):
    place = str(RECORDED / "drills" / "too-many-tasks" / "recording")  # repaired at 18:53:13
    main(["compare", place, "--change-at", "2026-11-21T18:53:05Z"])
    assert capsys.readouterr().out.splitlines()[1:4] == [
        "  harm before        too-many-tasks",
        "  advised            lower repartition(500) in the code of the query to 6, and start it again",
        "  harm after         ended: batch 0.88 s -> 0.33 s, promised 0.97 s less",
    ]

    main(["compare", place, "--change-at", "2026-11-21T18:53:05Z", "--json"])
    [query] = json.loads(capsys.readouterr().out)["queries"]
    assert query["advice"]["settings"] == [{"name": "repartition", "value": 6}]
    assert query["advice"]["ended"] and query["advice"]["still"] == []


def test_a_harm_that_lasts_is_not_ended(tmp_path, capsys):
    lasting = tmp_path / "while-it-lasted.jsonl"
    lasting.write_text("\n".join(_until("too-many-tasks", "2026-11-21T18:53:08Z")) + "\n", "utf-8")
    main(["compare", str(lasting), str(lasting)])
    assert "  harm after         not ended" in capsys.readouterr().out.splitlines()


def test_where_nothing_was_wrong_before_no_advice_is_told(capsys):
    place = str(RECORDED / "drills" / "too-many-tasks" / "recording")
    main(["compare", place, "--change-at", "2026-11-21T18:52:20Z"])  # broken at 18:52:27
    assert "advised" not in capsys.readouterr().out


def test_a_harm_that_is_muted_is_none(capsys, monkeypatch):
    place = str(RECORDED / "drills" / "too-many-tasks" / "recording")
    monkeypatch.setenv("LEDGEROPS_MUTE", "too-many-tasks")
    main(["compare", place, "--change-at", "2026-11-21T18:53:05Z"])
    assert "too-many-tasks" not in capsys.readouterr().out


def test_a_cause_that_took_the_place_of_the_first_is_named():
    cause = {
        "rule": "input-overload",
        "saving_seconds": None,
        "remedies": [{"action": "a", "settings": [["cores", 5]]}],
    }
    found = advice({"q": [cause], "unseen": [cause]}, {"q": [{"rule": "trigger-overrun"}]}, ({}, {}))
    assert found["q"]["ended"] and found["q"]["still"] == ["trigger-overrun"]
    assert "unseen" not in found


def test_a_step_that_is_only_a_look_is_not_told():
    cause = {"rule": "slow-sink", "saving_seconds": 2.0, "remedies": [{"action": "time one write", "settings": []}]}
    assert advice({"q": [cause]}, {"q": []}, ({}, {})) == {}


def _until(drill, until):
    for seen in open_source(str(RECORDED / "drills" / drill / "recording")).observations:
        if format_instant(seen.at) < until:
            yield json.dumps({"at": format_instant(seen.at), "kind": seen.kind, "query": seen.query, "data": seen.data})
