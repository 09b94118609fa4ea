"""`ledgerops compare`: two places, or one and the moment of the change."""

import json
import random
from functools import partial

import pytest

from ledgerops.analysis.advice import advice
from ledgerops.analysis.inputs import open_source
from ledgerops.model.spark_progress import format_instant, parse_instant
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


@pytest.fixture
def compare(ledgerops):
    return partial(ledgerops, "compare")


AT_BATCH_60 = ("--change-at", format_instant(T0 + 120))


def test_a_change_that_made_it_slower_is_told_with_the_phase_and_fails(tmp_path, compare):
    told = compare(record(tmp_path / "x.jsonl", 120, slower_from=60), *AT_BATCH_60)

    assert told.code == 1
    assert told.lines[:2] == [
        "daily_counts             worse (batch duration)",
        "  load               149 to 149 rows/s, 298 to 298 rows a batch, 45 and 60 batches",
    ]
    assert told.lines[3].startswith("  batch duration     0.60 s to 1.2 s (+98%), between +0.5")
    assert told.lines[4].startswith("    add batch        0.50 s to 1.1 s (+118%), between +0.5")
    assert told.lines[-1] == "1 query: 1 worse"


def test_two_recordings_of_the_same_are_no_effect(tmp_path, compare):
    before = record(tmp_path / "a.jsonl", 200, seed=1)
    after = record(tmp_path / "b.jsonl", 200, seed=2, began=T0 + 9000)
    told = compare(before, after)
    assert (told.code, told.lines[0]) == (0, "daily_counts             no effect")


def test_the_document_has_a_form(tmp_path, compare):
    told = compare(record(tmp_path / "x.jsonl", 120, slower_from=60, slower=0.5), *AT_BATCH_60, "--json")

    [query] = told.document["queries"]
    assert told.code == 0
    assert (query["query"], query["verdict"], query["before"]["batches"]) == ("daily_counts", "better", 45)
    assert set(query["measures"][0]) == {
        "name", "unit", "verdict", "because", "before", "after", "difference", "low", "high", "probability",
    }  # fmt: skip


def test_what_is_worse_comes_first(tmp_path, compare):
    record(tmp_path / "x.jsonl", 120, query="a_same")
    out = compare(record(tmp_path / "x.jsonl", 120, slower_from=60, query="b_worse", seed=2), *AT_BATCH_60).out
    assert out.startswith("b_worse") and out.endswith("2 queries: 1 worse, 1 no effect\n")


CANNOT_LOOK = {
    "": "give two recordings to compare, or one and the time of the change with --change-at",
    "b.jsonl --change-at 2027-01-15": "give two recordings to compare, or one and the time",
    "--change-at noon": "--change-at noon: not a time; write it like 2026-11-21T08:30:00Z",
    "--change-at 2020-01-01": "change at 2020-01-01: not between the first batch (2027-01-15T08:00:30",
    "--change-at 2027-01-15T08:01:00Z --query nobody": "no query 'nobody' to compare; there are daily_",
    "absent.jsonl": "cannot read absent.jsonl: no such file or folder",
}


@pytest.mark.parametrize(("more", "said"), CANNOT_LOOK.items(), ids=CANNOT_LOOK)
def test_could_not_look_is_two_and_one_line(tmp_path, more, said, refusal):
    assert said in refusal("compare", record(tmp_path / "x.jsonl"), *more.split())


def test_a_recording_that_is_too_short_is_said(tmp_path, refusal):
    place = record(tmp_path / "x.jsonl", 10)
    assert "ran for long enough to compare" in refusal("compare", place, place)


def test_two_places_without_a_query_in_common_cannot_be_compared(tmp_path, refusal):
    here, there = record(tmp_path / "x.jsonl"), record(tmp_path / "y.jsonl", query="renamed")
    assert refusal("compare", here, there) == (
        f"no query ran long enough on both sides: daily_counts in {here} and renamed in {there}"
    )


TOO_MANY_TASKS = RECORDED / "drills" / "too-many-tasks" / "recording"  # broken at 18:52:27, repaired at 18:53:13
WHILE_BROKEN = ("--change-at", "2026-11-21T18:53:05Z")


def test_what_was_advised_before_a_change_is_said_with_what_became_of_the_harm(compare):
    assert compare(TOO_MANY_TASKS, *WHILE_BROKEN).lines[1:4] == [
        "  harm before        too-many-tasks",
        "  advised            lower repartition(500) in the code of the query to 6, and start it again",
        "  harm after         ended: batch 0.88 s -> 0.33 s, promised 0.97 s less",
    ]

    [query] = compare(TOO_MANY_TASKS, *WHILE_BROKEN, "--json").document["queries"]
    assert query["advice"]["settings"] == [{"name": "repartition", "value": 6}]
    assert query["advice"]["ended"] and query["advice"]["still"] == []


def test_a_harm_that_lasts_is_not_ended(tmp_path, compare):
    lasting, until = tmp_path / "while-it-lasted.jsonl", parse_instant("2026-11-21T18:53:08Z")
    seen = [each for each in open_source(str(TOO_MANY_TASKS)).observations if each.at < until]
    lasting.write_bytes(b"".join(_line(each.at, each.kind, each.query, each.data) for each in seen))
    assert "  harm after         not ended" in compare(lasting, lasting).lines


def test_where_nothing_was_wrong_before_no_advice_is_told(compare):
    assert "advised" not in compare(TOO_MANY_TASKS, "--change-at", "2026-11-21T18:52:20Z").out


def test_a_harm_that_is_muted_is_none(compare, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_MUTE", "too-many-tasks")
    assert "too-many-tasks" not in compare(TOO_MANY_TASKS, *WHILE_BROKEN).out


def test_a_cause_that_took_the_place_of_the_first_is_named():
    remedy = {"action": "a", "settings": [["cores", 5]]}
    cause = {"rule": "input-overload", "saving_seconds": None, "remedies": [remedy]}
    found = advice({"q": [cause], "unseen": [cause]}, {"q": [{"rule": "trigger-overrun"}]}, ({}, {}))
    assert found["q"]["ended"] and found["q"]["still"] == ["trigger-overrun"]
    assert "unseen" not in found


def test_a_step_that_is_only_a_look_is_not_told():
    cause = {"rule": "slow-sink", "saving_seconds": 2.0, "remedies": [{"action": "time one write", "settings": []}]}
    assert advice({"q": [cause]}, {"q": []}, ({}, {})) == {}
