"""Drills that were run become a data set: whole, the same each time, and silent about their faults."""

import gzip
import json
from dataclasses import replace
from hashlib import sha256

import pytest
import zstandard
from pyarrow import parquet

from ledgerops.cli import main
from ledgerops.drills.benchmark import score
from ledgerops.drills.benchmark.export import export
from ledgerops.drills.benchmark.splits import splits
from ledgerops.drills.scoring import drawn
from ledgerops.drills.scoring.drawn_page import SEEN
from tests import tables
from tests.drills.benchmark.dataset import QUIET, SINK, drill, finding
from tests.drills.checkpoints import T0

UNSEEN = SEEN[-1] + 4
ANSWERS = {10.0: [], 50.0: [finding("slow-sink"), finding("trigger-overrun")], 55.0: [finding("slow-sink")]}
TEXT = '# HELP a b\nledgerops_lag{query="a \\"b\\"",app="x"} 1.5\nledgerops_finding{rule="slow-sink"} 1\n'
SCRAPES = [{"at": T0, "job": "ledgerops", "text": TEXT}, {"at": T0 + 1, "job": "spark", "error": "timed out"}]


@pytest.fixture
def runs(tmp_path):
    drill(tmp_path / "runs", SINK, ANSWERS, SCRAPES)
    drill(tmp_path / "runs", QUIET, {10.0: [], 20.0: [finding("key-skew", "info")]})
    return tmp_path / "runs"


@pytest.fixture
def target(runs, tmp_path):
    """The data set of both drills."""
    export(tmp_path / "set", [runs])
    return tmp_path / "set"


def files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def truth_of(target, case):
    return json.loads((target / "truth" / f"{case}.json").read_text())


def test_the_data_set_has_each_case_its_truth_and_a_manifest_of_all_files(runs, tmp_path, capsys):
    code = main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs)])

    found = files(tmp_path / "set")
    manifest = json.loads(found.pop("manifest.json"))
    assert code == 0
    assert {name: held["bytes"] for name, held in manifest["files"].items()} == {
        name: len(content) for name, content in found.items()
    }
    assert manifest["seeds"] == [{"seed": 18, "split": "development" if 18 in SEEN else "test"}]
    assert {name.split("/")[1] for name in found if name.startswith("cases/")} == {"18-07", "18-08"}
    assert {"README.md", "score.py", "causes.json", "truth/18-07.json", "answers/ledgerops.jsonl"} <= set(found)
    assert capsys.readouterr().out == f"wrote {tmp_path / 'set'}\n"


def test_metrics_are_those_that_were_scraped_without_our_verdicts(target):
    rows = parquet.read_table(target / "cases" / "18-07" / "metrics.parquet").to_pylist()
    labels = '{"app": "x", "instance": "driver", "job": "ledgerops", "query": "a \\"b\\""}'

    assert rows == [
        {"time": T0, "metric": "ledgerops_lag", "labels": labels, "value": 1.5},
        {"time": T0, "metric": "up", "labels": '{"instance": "driver", "job": "ledgerops"}', "value": 1.0},
        {"time": T0 + 1, "metric": "up", "labels": '{"instance": "driver", "job": "spark"}', "value": 0.0},
    ]


def test_the_truth_says_what_was_done_and_when_it_began_to_do_harm(target):
    fault, healthy = truth_of(target, "18-07"), truth_of(target, "18-08")
    known = {
        "kind": "slow-sink", "fault_at": T0 + 40, "harm_at": T0 + 45, "accepted": ["slow-sink"], "due": "warning",
        "void": "", "strength": "clear", "onset": "later", "healthy": False,
        "place": {"query": "orders", "component": "sink", "name": "foreachBatch"},
        "done": {
            "options": {"rate": 100}, "conf": {}, "control": {}, "changes": [[40.0, {"sink": 3.6}]], "actions": [],
        },
        "verified": "by construction: a fixed time after the onset",
    }  # fmt: skip

    assert {key: fault[key] for key in known} == known
    assert (healthy["healthy"], healthy["harm"], healthy["accepted"], healthy["place"]) == (True, "", [], {})
    assert (healthy["fault_at"], healthy["harm_at"], healthy["onset"], healthy["strength"]) == (None, None, "", "")


def test_nothing_in_a_case_tells_its_fault_or_its_machine(target):
    secrets = (
        b"slow-sink", b"slow_sink", b"bursts", b"/mnt/runs", b"10.9.8.7", b"healthy", b"seed", b"injected",
    )  # fmt: skip
    cases = files(target / "cases")
    plain = {
        name: zstandard.decompress(content) if name.endswith((".zst", ".zstd")) else content
        for name, content in cases.items()
    }

    assert [(name, told) for name, content in plain.items() for told in secrets if told in content] == []
    assert [name for name in cases if any(word in name for word in ("slow", "sink", "burst"))] == []
    assert any(b"/drill/input" in content for name, content in plain.items() if "events" in name)


def test_the_scorer_agrees_with_the_score_of_the_drill(runs, target):
    found = score.report(target, target / "answers" / "ledgerops.jsonl")["figures"]["all"]
    live, quiet = (drawn.judge(runs / "seed-18" / case.name).ways["live"] for case in (SINK, QUIET))

    assert (found["recall"]["count"], found["AC@1"]["count"], found["time"]) == (1, 1, 5.0)
    assert (live.seconds, live.cause_first, quiet.alarms) == (5.0, True, ())
    assert found["silent"]["share"] == 1.0


SALT = "5f0c 9a41 77d2 e6b8"


@pytest.fixture
def three(runs):
    """Three seeds: one that the rules have seen, and two that they have not."""
    drill(runs, replace(SINK, seed=UNSEEN), ANSWERS, SCRAPES)
    drill(runs, replace(QUIET, seed=UNSEEN + 1), {10.0: []})
    return runs


def exported(target, runs, *words):
    code = main(["drill", "--export", str(target), "--score", str(runs), *map(str, words)])
    manifest = json.loads((target / "manifest.json").read_text())
    return code, manifest, (target / "README.md").read_text()


def cells(card):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in card.splitlines() if line.startswith("| ")]


def test_seeds_for_development_are_those_that_the_rules_have_seen(three, tmp_path):
    _, manifest, card = exported(tmp_path / "set", three)

    splits = [(18, "development"), (UNSEEN, "test"), (UNSEEN + 1, "test")]
    assert [(each["seed"], each["split"]) for each in manifest["seeds"]] == splits
    assert cells(card)[:3] == [
        ["split", "seeds", "cases"], ["development", "18", "2"], ["test", f"{UNSEEN}, {UNSEEN + 1}", "2"],
    ]  # fmt: skip
    assert truth_of(tmp_path / "set", f"{UNSEEN}-07")["split"] == "test"


def test_seeds_that_are_held_back_are_named_by_their_hash_only_until_they_are_revealed(three, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(f"{UNSEEN} {SALT}\n")
    sha = sha256(f"{UNSEEN} {SALT}".encode()).hexdigest()

    code, before, card = exported(tmp_path / "set", three, "--held-back", secret)
    assert (code, before["held_back"]) == (0, [{"sha256": sha}])
    assert [each["seed"] for each in before["seeds"]] == [18, UNSEEN + 1]
    assert ["held-back", "1, by their hashes in `manifest.json`", "not published yet"] in cells(card)
    told = files(tmp_path / "set")
    assert not any(SALT.encode() in content or str(UNSEEN) in name for name, content in told.items())
    assert not any(f'"{UNSEEN}-'.encode() in content for content in told.values())

    code, after, card = exported(tmp_path / "revealed", three, "--held-back", secret, "--reveal")
    assert (code, after["seeds"]) == (0, [{"seed": UNSEEN, "split": "held-back"}])
    assert after["held_back"] == [{"sha256": sha, "seed": UNSEEN, "salt": SALT}]
    assert ["held-back", str(UNSEEN), "1"] in cells(card)
    figures = score.report(tmp_path / "revealed", tmp_path / "revealed" / "answers" / "ledgerops.jsonl")["figures"]
    assert figures["split: held-back"]["recall"]["count"] == 1


def test_the_same_drills_give_the_same_bytes_wherever_they_are_and_in_whatever_order_they_are_named(three, tmp_path):
    first, *others = sorted(three.iterdir())
    lines = [f"{seed} {SALT}\n" for seed in (UNSEEN, 7_000_001, 7_000_002)]
    for number, ordered in enumerate((lines, lines[::-1])):
        (tmp_path / f"secret-{number}").write_text("".join(ordered))
    one, two = (splits(tmp_path / f"secret-{number}") for number in range(2))

    export(tmp_path / "one", [first, *others], one)
    first = first.rename(tmp_path / "z")  # behind the others
    export(tmp_path / "two", [*others, first], two)
    export(tmp_path / "two", [first, three, *others], two)  # in place of itself

    found = files(tmp_path / "one")
    assert found == files(tmp_path / "two")
    named = [json.loads(line)["case"] for line in found["answers/ledgerops.jsonl"].splitlines()]
    assert named == sorted(named) and len({*named}) == 3
    for seed in (18, UNSEEN + 1):
        assert {"place", "done", "split"} <= set(json.loads(found[f"truth/{seed}-08.json"]))


@tables.cases(
    "line, words, problem",
    ("no seed", "x", [], "secret:1: expected a seed, a space and a salt of at least 16 letters"),
    ("too many digits", f"{5000 * chr(57)} {SALT}", [], "secret:1: expected a seed, a space"),
    ("a salt to be guessed", f"{UNSEEN} pepper", [], "secret:1: expected a seed, a space and a salt"),
    ("seen", f"18 {SALT}", [], "secret:1: seed 18 is known already; hold back another one"),
    ("none was drawn", f"99 {SALT}", ["--reveal"], "no drill could be exported: not held back"),
    ("no file", None, ["--reveal"], "--reveal needs --held-back with the file of the seeds"),
)
def test_what_cannot_be_held_back_or_revealed_is_one_line(runs, tmp_path, capsys, line, words, problem):
    if line is not None:
        (tmp_path / "secret").write_text(line + "\n")
        words = [*words, "--held-back", str(tmp_path / "secret")]

    assert main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs), *words]) == 2
    assert problem in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "set").exists()


@tables.cases(
    "file, content, problem",
    ("no file", "scrapes.jsonl.gz", None, "no such file"),
    ("another record", "scrapes.jsonl.gz", gzip.compress(b"[1]\n"), "not a scrape"),
    ("no gzip", "scrapes.jsonl.gz", b"no gzip", "not a gzipped file"),
    (
        "no text of Prometheus",
        "scrapes.jsonl.gz",
        gzip.compress(b'{"at": 1, "job": "spark", "text": "a{b=} c"}'),
        "not a scrape",
    ),
    ("cut off", "live.jsonl", b'{"at": 1, "diagnosis": {"que', "live.jsonl:1: not an answer"),
    ("a list", "live.jsonl", b"[]", "live.jsonl:1: not an answer"),
)
def test_a_drill_with_a_damaged_file_is_left_out_and_the_file_named(runs, tmp_path, capsys, file, content, problem):
    broken = drill(tmp_path / "more", QUIET, {})
    (broken / file).unlink() if content is None else (broken / file).write_bytes(content)
    code = main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs / "seed-18" / SINK.name), str(broken)])

    out = capsys.readouterr().out
    assert f"{broken} was left out: cannot read {broken}/{file}" in out and problem in out
    assert (code, [path.name for path in (tmp_path / "set" / "cases").iterdir()]) == (2, ["18-07"])


@tables.cases(
    "words, problem",
    ("no results", ["--export", "set"], "--export needs --score with the folders of drills"),
    ("no folder", ["--export", "set", "--score", "nowhere"], "no drawn drill in nowhere; run"),
    ("no secret", ["--export", "set", "--score", "runs", "--held-back", "nowhere"],
     "cannot read nowhere: no such file"),
    ("seeds held back alone", ["--out", "set", "--held-back", "secret"], "need --export"),
    ("seeds revealed alone", ["--out", "set", "--reveal"], "need --export"),
)  # fmt: skip
def test_what_cannot_be_exported_is_one_line_and_starts_no_drill(runs, tmp_path, monkeypatch, capsys, words, problem):
    monkeypatch.chdir(tmp_path)

    assert main(["drill", *words]) == 2
    error = capsys.readouterr().err
    assert problem in error and error.count("\n") == 1
    assert not (tmp_path / "set").exists()


def test_other_files_are_never_replaced(runs, tmp_path, capsys):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine.txt").write_text("mine")

    assert main(["drill", "--export", str(tmp_path / "set"), "--score", str(runs)]) == 2
    assert "contains files that do not belong to a data set" in capsys.readouterr().err
    assert files(tmp_path / "set") == {"mine.txt": b"mine"}


def test_drawn_drills_of_several_folders_are_scored_together(runs, tmp_path, capsys):
    drill(tmp_path / "more", replace(QUIET, seed=UNSEEN), {10.0: []})

    main(["drill", "--score", str(runs), str(tmp_path / "more")])
    printed = capsys.readouterr().out
    assert "| 18-07-slow-sink " in printed and f"| {UNSEEN}-08-bursts " in printed


def test_scripted_drills_are_in_one_folder(tmp_path, capsys):
    assert main(["drill", "--score", str(tmp_path), str(tmp_path)]) == 2
    assert "--score cannot be several folders, except of drawn drills" in capsys.readouterr().err
