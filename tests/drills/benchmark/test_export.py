"""Drills that were run become a data set: whole, the same each time, and silent about their faults."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256

import pytest
import zstandard
from pyarrow import parquet

from ledgerops.cli import main
from ledgerops.drills.benchmark import score
from ledgerops.drills.benchmark.export import export
from ledgerops.drills.scoring import drawn
from ledgerops.drills.scoring.drawn_page import SEEN
from tests.drills.benchmark.dataset import QUIET, SINK, T0, drill, finding

ANSWERS = {10.0: [], 50.0: [finding("slow-sink"), finding("trigger-overrun")], 55.0: [finding("slow-sink")]}
SCRAPES = [
    {
        "at": T0,
        "job": "ledgerops",
        "text": '# HELP a b\nledgerops_lag{query="a \\"b\\"",app="x"} 1.5\nledgerops_finding{rule="slow-sink"} 1\n',
    },
    {"at": T0 + 1, "job": "spark", "error": "timed out"},
]


@pytest.fixture
def runs(tmp_path):
    drill(tmp_path / "runs", SINK, ANSWERS, SCRAPES)
    drill(tmp_path / "runs", QUIET, {10.0: [], 20.0: [finding("key-skew", "info")]})
    return tmp_path / "runs"


def files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_the_data_set_has_each_case_its_truth_and_a_manifest_of_all_files(runs, tmp_path, capsys):
    code = main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs)])

    found = files(tmp_path / "set")
    manifest = json.loads(found.pop("manifest.json"))
    assert code == 0
    assert set(manifest["files"]) == set(found)
    assert {name: held["bytes"] for name, held in manifest["files"].items()} == {
        name: len(content) for name, content in found.items()
    }
    assert manifest["seeds"] == [{"seed": 18, "split": "development" if 18 in SEEN else "test"}]
    assert {name.split("/")[1] for name in found if name.startswith("cases/")} == {"18-07", "18-08"}
    assert {"README.md", "score.py", "causes.json", "truth/18-07.json", "answers/ledgerops.jsonl"} <= set(found)
    assert capsys.readouterr().out == f"wrote {tmp_path / 'set'}\n"


def test_metrics_are_those_that_were_scraped_without_our_verdicts(runs, tmp_path):
    export(tmp_path / "set", [runs])

    rows = parquet.read_table(tmp_path / "set" / "cases" / "18-07" / "metrics.parquet").to_pylist()
    labels = '{"app": "x", "instance": "driver", "job": "ledgerops", "query": "a \\"b\\""}'.replace(
        '\\"b\\"', '\\"b\\"'
    )
    assert rows == [
        {"time": T0, "metric": "ledgerops_lag", "labels": labels, "value": 1.5},
        {"time": T0, "metric": "up", "labels": '{"instance": "driver", "job": "ledgerops"}', "value": 1.0},
        {"time": T0 + 1, "metric": "up", "labels": '{"instance": "driver", "job": "spark"}', "value": 0.0},
    ]


def test_the_truth_says_what_was_done_and_when_it_began_to_do_harm(runs, tmp_path):
    export(tmp_path / "set", [runs])

    truth = json.loads((tmp_path / "set" / "truth" / "18-07.json").read_text())
    assert (truth["kind"], truth["fault_at"], truth["harm_at"]) == ("slow-sink", T0 + 40, T0 + 45)
    assert (truth["accepted"], truth["due"], truth["void"]) == (["slow-sink"], "warning", "")
    assert truth["done"]["changes"] == [[40.0, {"sink": 3.6}]]
    assert truth["verified"] == "by construction: a fixed time after the onset"
    healthy = json.loads((tmp_path / "set" / "truth" / "18-08.json").read_text())
    assert (healthy["healthy"], healthy["harm_at"], healthy["accepted"], healthy["harm"]) == (True, None, [], "")


def test_the_same_drills_give_the_same_bytes(runs, tmp_path):
    one, two = sorted((runs / "seed-18").iterdir())
    export(tmp_path / "one", [one, two])
    export(tmp_path / "two", [two, one, runs])
    export(tmp_path / "two", [two, one, runs])  # in place of itself

    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_nothing_in_a_case_tells_its_fault_or_its_machine(runs, tmp_path):
    export(tmp_path / "set", [runs])

    cases = files(tmp_path / "set" / "cases")
    for name, content in cases.items():
        if name.endswith((".zst", ".zstd")):
            content = zstandard.ZstdDecompressor().decompress(content)
        for told in (
            b"slow-sink",
            b"slow_sink",
            b"bursts",
            b"/mnt/runs",
            b"10.9.8.7",
            b"healthy",
            b"seed",
            b"injected",
        ):
            assert told not in content, name
        assert not any(word in name for word in ("slow", "sink", "burst"))
    assert any(b"/drill/input" in zstandard.decompress(content) for name, content in cases.items() if "events" in name)


def test_the_scorer_agrees_with_the_score_of_the_drill(runs, tmp_path):
    export(tmp_path / "set", [runs])

    found = score.report(tmp_path / "set", tmp_path / "set" / "answers" / "ledgerops.jsonl")["figures"]["all"]
    live = drawn.judge(runs / "seed-18" / SINK.name).ways["live"]
    quiet = drawn.judge(runs / "seed-18" / QUIET.name).ways["live"]
    assert (found["recall"]["count"], found["AC@1"]["count"], found["time"]) == (1, 1, 5.0)
    assert (live.seconds, live.cause_first, quiet.alarms) == (5.0, True, ())
    assert found["silent"]["share"] == 1.0


def test_seeds_that_are_held_back_are_named_by_their_hash_only(runs, tmp_path, capsys):
    secret = tmp_path / "secret"
    secret.write_text("18 pepper\n19 salt\n")
    assert main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs), "--held-back", str(secret)]) == 2
    assert "seed 18 is held back" in capsys.readouterr().err

    secret.write_text("19 salt\n")
    export(tmp_path / "set", [runs], secret)
    text = (tmp_path / "set" / "manifest.json").read_text()
    assert json.loads(text)["held_back"] == [{"sha256": sha256(b"19 salt").hexdigest()}]
    assert "salt" not in text


def test_a_drill_that_cannot_be_exported_is_left_out_and_named(runs, tmp_path, capsys):
    broken = drill(tmp_path / "more", QUIET, {})
    (broken / "scrapes.jsonl.gz").unlink()
    code = main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs / "seed-18" / SINK.name), str(broken)])

    assert code == 2
    assert f"{broken} was left out: cannot read {broken}/scrapes.jsonl.gz" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "set" / "cases").iterdir()] == ["18-07"]


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        pytest.param("scrapes.jsonl.gz", gzip.compress(b"[1]\n"), "not a scrape", id="another record"),
        pytest.param("scrapes.jsonl.gz", b"no gzip", "not a gzipped file", id="no gzip"),
        pytest.param(
            "scrapes.jsonl.gz",
            gzip.compress(b'{"at": 1, "job": "spark", "text": "a{b=} c"}'),
            "not a scrape",
            id="no text of Prometheus",
        ),
        pytest.param("live.jsonl", b'{"at": 1, "diagnosis": {"que', "live.jsonl:1: not an answer", id="cut off"),
        pytest.param("live.jsonl", b"[]", "live.jsonl:1: not an answer", id="a list"),
    ],
)
def test_a_drill_with_a_damaged_file_is_left_out_and_the_file_named(runs, tmp_path, capsys, file, content, problem):
    broken = drill(tmp_path / "more", QUIET, {})
    (broken / file).write_bytes(content)

    assert main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs / "seed-18" / SINK.name), str(broken)])
    out = capsys.readouterr().out
    assert f"{broken} was left out: cannot read {broken}/{file}" in out and problem in out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param([], "--export needs --score with the folders of drills that were run", id="no results"),
        pytest.param(["--score", "nowhere"], "no drawn drill in nowhere; run ledgerops drill", id="no folder"),
        pytest.param(
            ["--score", "RUNS", "--held-back", "nowhere"], "cannot read nowhere: no such file", id="no secret"
        ),
    ],
)
def test_what_cannot_be_exported_is_one_line(runs, tmp_path, monkeypatch, capsys, words, problem):
    monkeypatch.chdir(tmp_path)
    words = [str(runs) if word == "RUNS" else word for word in words]

    assert main(["drill", "--export", "set", *words]) == 2
    error = capsys.readouterr().err
    assert problem in error and error.count("\n") == 1
    assert not (tmp_path / "set").exists()


def test_other_files_are_never_replaced(runs, tmp_path, capsys):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine.txt").write_text("mine")

    assert main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs)]) == 2
    assert "contains files that do not belong to a data set" in capsys.readouterr().err
    assert files(tmp_path / "set") == {"mine.txt": b"mine"}
