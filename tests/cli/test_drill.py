"""`ledgerops drill` without running one: what it refuses, and what it never destroys."""

from __future__ import annotations

import shutil

import pytest

from ledgerops.cli import main
from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.run import run
from ledgerops.errors import UserError
from tests.paths import RECORDED

KEPT = RECORDED / "drills"


@pytest.fixture
def bundles(tmp_path):
    for name in ("crash", "quiet"):
        shutil.copytree(KEPT / name, tmp_path / name)
    return tmp_path


def test_bundles_are_scored_without_running_anything(bundles, capsys):
    assert main(["drill", "crash", "quiet", "--score", str(bundles)]) == 0

    told = capsys.readouterr().out
    assert "F14a crash: passed" in told
    assert "findings in 0 of 1 controls" in told


@pytest.mark.parametrize(
    "file,content",
    [
        pytest.param("times.json", "{", id="torn"),
        pytest.param("times.json", "[]", id="no table"),
        pytest.param("drill.json", "", id="empty"),
        pytest.param("times.json", '{"origin": 1, "injected": "x"}', id="a time in words"),
        pytest.param("times.json", '{"origin": 1, "ended": NaN}', id="a time that is no number"),
        pytest.param("times.json", '{"origin": 1, "ended": null}', id="a time that is nothing"),
        pytest.param("times.json", '{"injected": 1}', id="no origin"),
        pytest.param("drill.json", '{"drill": "crash", "seed": 1, "names": ["x"]}', id="names without roles"),
        pytest.param("drill.json", '{"drill": "crash", "seed": 1, "names": {"main": 3}}', id="a name that is none"),
        pytest.param("drill.json", '{"drill": "crash", "seed": "x", "names": {"main": "x"}}', id="a seed in words"),
        pytest.param(
            "drill.json", '{"drill": "crash", "seed": 1, "names": {"main": "x"}, "lanes": null}', id="no lanes"
        ),
    ],
)
def test_a_damaged_bundle_is_told_beside_the_scores_of_the_others(bundles, capsys, file, content):
    damaged = bundles / "crash" / file
    damaged.write_text(content)

    assert main(["drill", "crash", "quiet", "--score", str(bundles)]) == 2
    told = capsys.readouterr().out
    assert f"crash could not be run: {damaged} is damaged or not part of a drill; run the drill again" in told
    assert "quiet: passed" in told


def test_a_drill_that_was_interrupted_is_told(bundles, capsys):
    (bundles / "crash" / "times.json").write_text('{"origin": 1}')

    assert main(["drill", "crash", "--score", str(bundles)]) == 2
    assert f"crash could not be run: {bundles / 'crash'} has no 'injected'" in capsys.readouterr().out


def test_a_drill_without_its_query_is_told(bundles, capsys):
    (bundles / "crash" / "drill.json").write_text('{"drill": "crash", "seed": 1, "names": {"other": "x"}}')

    assert main(["drill", "crash", "--score", str(bundles)]) == 2
    assert f"crash could not be run: {bundles / 'crash'} has no 'main'" in capsys.readouterr().out


def test_a_damaged_recording_is_told_too(bundles, capsys):
    [recording] = (bundles / "crash" / "recording").glob("*.zst")
    recording.write_bytes(b"nothing")

    assert main(["drill", "crash", "--score", str(bundles)]) == 2
    assert f"cannot read {recording}: not zstd, or damaged" in capsys.readouterr().out


def test_recordings_that_are_scored_where_they_are_kept_are_not_lost(bundles, capsys):
    [recording] = (bundles / "crash" / "recording").glob("*.zst")
    before = recording.read_bytes()

    assert main(["drill", "crash", "--score", str(bundles), "--save", str(bundles)]) == 0
    assert recording.read_bytes() == before


def test_a_place_that_takes_no_files_is_refused_before_anything_runs(tmp_path, refusal):
    (tmp_path / "file").touch()

    line = refusal("drill", "crash", "--out", "out", "--publish", tmp_path / "file" / "page.md")
    assert line == f"cannot write to {tmp_path / 'file'}: file exists"


@pytest.mark.parametrize(
    "argv,line",
    [
        pytest.param(["crahs"], "no drill 'crahs'; did you mean crash?", id="misspelt drill"),
        pytest.param(["zzz"], "no drill 'zzz'; ledgerops drill --list names them", id="unknown drill"),
        pytest.param(
            ["--lanes", "0"],
            "argument --lanes: not a positive whole number: '0'; see ledgerops drill --help",
            id="no lane",
        ),
        pytest.param(
            ["--score", "nowhere"], "no result of a drill in nowhere; run ledgerops drill first", id="no folder"
        ),
    ],
)
def test_what_it_cannot_do_is_one_line(refusal, argv, line):
    assert refusal("drill", *argv) == line


def test_a_folder_of_somebody_else_is_not_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(UserError, match="files that do not belong to a drill; choose another folder with --out"):
        run(BY_NAME["crash"], tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
