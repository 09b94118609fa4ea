import re
from functools import partial
from pathlib import Path

import numpy as np
import orjson
import pytest

from ledgerops.model.recording import encode
from ledgerops.model.spark_progress import format_instant
from tests.build import T0, spark_json

BATCHES = 40
ANSWER = {
    "question", "load_factor", "arrival_rows_per_second", "trigger_interval_seconds", "cores", "batch_rows",
    "batch_seconds", "slow_batch_seconds", "sustainable_rows_per_second", "sustainable_at_least_rows_per_second",
    "headroom_ratio", "backlog", "limited_by", "cannot_tell",
}  # fmt: skip


def write(path: Path, swings: bool = True) -> str:
    """A recording of batches that take 0.4 s and a second for each 5,000 rows, every 2 s."""
    generator = np.random.default_rng(1)
    read = 0
    lines = []
    for number in range(BATCHES):
        rows = int(generator.uniform(1000, 3000)) if swings else 2000
        seconds = (0.4 + rows / 5000) * (1 + generator.normal(0, 0.02))
        begin, read = read, read + rows
        offsets = {"startOffset": {"transactions": {"0": begin}}}
        offsets |= {name: {"transactions": {"0": read}} for name in ("endOffset", "latestOffset")}
        at = T0 + 2 * number
        data = spark_json(
            batchId=number,
            timestamp=format_instant(at),
            batchDuration=int(seconds * 1000),
            numInputRows=rows,
            durationMs={"addBatch": int(seconds * 900), "triggerExecution": int(seconds * 1000)},
            sources=[{"description": "KafkaV2[Subscribe[transactions]]", "numInputRows": rows, **offsets}],
        )
        lines.append(encode(at + seconds, "progress", "daily_counts", orjson.dumps(data)))
    path.write_bytes(b"".join(lines))
    return str(path)


@pytest.fixture
def recorded(tmp_path):
    return write(tmp_path / "recording.jsonl")


@pytest.fixture
def capacity(ledgerops):
    return partial(ledgerops, "capacity")


def test_a_table_answers_each_question_and_says_what_limits(recorded, capacity):
    told = capacity("--from", recorded, "--load", "2x", "--trigger", "1s")
    lines = told.lines

    assert told.code == 0
    assert lines[0] == "daily_counts  at 2027-01-15 08:01:18 UTC"
    assert lines[1].startswith("  trigger 2 s, ") and lines[1].endswith(" rows/s")
    assert lines[2].startswith("  batch time = 0.4") and " + rows / " in lines[2]
    assert lines[3].endswith("; Theil-Sen line, 90% interval by 400 bootstrap draws")
    assert any("o batch   . fit   - trigger interval" in line for line in lines)
    head = next(number for number, line in enumerate(lines) if line.startswith("  question"))
    asked = [line[:21].strip() for line in lines[head + 1 : head + 5]]
    assert asked == ["now", "load 2x", "trigger 1s", "load 2x, trigger 1s"]
    assert "keeps up" in lines[head + 1]
    assert any("are fixed cost" in line for line in lines[head + 5 :])


@pytest.mark.parametrize(
    ("more", "seconds"),
    [pytest.param((), 7.0, id="the setting"), pytest.param(("--freshness", "9s"), 9.0, id="what is asked for")],
)
def test_the_freshness_objective_is_that_of_the_settings(recorded, capacity, monkeypatch, more, seconds):
    monkeypatch.setenv("LEDGEROPS_FRESHNESS_OBJECTIVE_SECONDS", "7")
    [query] = capacity(recorded, "--json", *more).document["queries"]
    assert query["freshness_objective_seconds"] == seconds


def test_the_document_has_the_promised_form(recorded, capacity):
    told = capacity("--from", recorded, "--json", "--load", "3000", "--cores", "8")

    assert (told.code, *(told.document[each] for each in ("version", "source", "interval"))) == (0, 1, recorded, 0.9)
    [query] = told.document["queries"]
    fit = query["fit"]
    assert fit["overhead_seconds"]["low"] <= 0.4 <= fit["overhead_seconds"]["high"]
    assert fit["rows_per_second"]["low"] <= 5000 <= fit["rows_per_second"]["high"]
    assert len(fit["points"]) == fit["batches"] and set(fit["points"][0]) == {"rows", "seconds"}
    now, load, cores, both = query["answers"]
    assert set(now) == ANSWER
    assert set(now["backlog"]) == {"behaviour", "sure", "growth_rows_per_second", "drain_seconds", "breach_seconds"}
    assert set(now["limited_by"]) == {"what", "detail"}
    assert load["arrival_rows_per_second"] == 3000
    assert load["batch_seconds"]["value"] == pytest.approx(0.4 + 6000 / 5000, rel=0.05)
    assert cores["cannot_tell"] == ["effect of other core counts unknown: tasks were recorded for too few batches"]
    assert both["question"] == "load 3,000/s, 8 cores"


def test_batches_of_one_size_are_told_as_such(tmp_path, capacity):
    told = capacity("--from", write(tmp_path / "even.jsonl", swings=False))
    assert told.code == 0
    assert "now: capacity unknown: batches have nearly the same size (the middle 80%" in told.out
    assert re.search(r"at least 1,000 +at least 1\.\d×", told.out)


def test_a_past_moment_can_be_asked_about(recorded, capacity):
    told = capacity("--from", recorded, "--at", "2027-01-15T08:00:10Z")
    assert (told.code, "capacity unknown: " in told.out) == (0, True)


SEE = "see ledgerops capacity --help"
REFUSED = {
    "--query other": "no query 'other' in {place}; the queries are daily_counts",
    "--at noon": "--at noon: not a time; write it like 2026-11-21T08:30:00Z",
    "--at 2020-01-01T00:00:00Z": "no streaming query in {place} before 2020-01-01T00:00:00Z",
    "--load twice": f"argument --load: not a load: 'twice'; write 2x, or rows a second such as 5000; {SEE}",
    "--load 99999999x": (
        f"argument --load: 99999999x is out of range: at most 1,000x or 1,000,000,000 rows a second; {SEE}"
    ),
    "--cores 100000000000": f"argument --cores: 100000000000 cores is out of range: at most 100,000; {SEE}",
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_looked_at_is_refused(recorded, refusal, arguments, message):
    assert refusal("capacity", "--from", recorded, *arguments.split()) == message.format(place=recorded)
