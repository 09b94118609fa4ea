"""`ledgerops drill` without running one: what it refuses, and what it never destroys."""

import shutil

import pytest

from ledgerops.drills.catalogue import BY_NAME
from ledgerops.drills.harness.run import run
from ledgerops.errors import UserError
from tests.paths import RECORDED
from tests.tables import cases

KEPT = RECORDED / "drills"


@pytest.fixture
def bundles(tmp_path):
    for name in ("crash", "quiet"):
        shutil.copytree(KEPT / name, tmp_path / name)
    return tmp_path


def test_bundles_are_scored_without_running_anything(bundles, ledgerops):
    told = ledgerops("drill", "crash", "quiet", "--score", bundles)
    assert told.code == 0
    assert "F14a crash: passed" in told.out
    assert "findings in 0 of 1 controls" in told.out


DAMAGED = "{}/{} is damaged or not part of a drill; run the drill again"
NAMES = '{"drill": "crash", "seed": 1, "names": '


@cases(
    "file, content, why",
    ("torn", "times.json", "{", DAMAGED),
    ("no table", "times.json", "[]", DAMAGED),
    ("empty", "drill.json", "", DAMAGED),
    ("no origin", "times.json", '{"injected": 1}', "{} has no 'repaired'"),
    ("interrupted", "times.json", '{"origin": 1}', "{} has no 'injected'"),
    ("without its query", "drill.json", NAMES + '{"other": "x"}}', "{} has no 'main'"),
)
def test_a_bundle_that_cannot_be_scored_is_told_beside_the_scores_of_the_others(bundles, ledgerops, file, content, why):
    (bundles / "crash" / file).write_text(content)
    told = ledgerops("drill", "crash", "quiet", "--score", bundles)

    assert told.code == 2
    assert f"crash could not be run: {why.format(bundles / 'crash', file)}" in told.out
    assert "quiet: passed" in told.out


def test_a_damaged_recording_is_told_too(bundles, ledgerops):
    [recording] = (bundles / "crash" / "recording").glob("*.zst")
    recording.write_bytes(b"nothing")
    told = ledgerops("drill", "crash", "--score", bundles)
    assert (told.code, f"cannot read {recording}: not zstd, or damaged" in told.out) == (2, True)


def test_recordings_that_are_scored_where_they_are_kept_are_not_lost(bundles, ledgerops):
    [recording] = (bundles / "crash" / "recording").glob("*.zst")
    before = recording.read_bytes()
    assert ledgerops("drill", "crash", "--score", bundles, "--save", bundles).code == 0
    assert recording.read_bytes() == before


REFUSED = {
    "crahs": "no drill 'crahs'; did you mean crash?",
    "zzz": "no drill 'zzz'; ledgerops drill --list names them",
    "--lanes 0": "argument --lanes: not a positive whole number: '0'; see ledgerops drill --help",
    "--score nowhere": "no result of a drill in nowhere; run ledgerops drill first",
    "crash --out out --publish file/page.md": "cannot write to file: file exists",
}


@pytest.mark.parametrize(("argv", "line"), REFUSED.items(), ids=REFUSED)
def test_what_it_cannot_do_is_one_line_before_anything_runs(tmp_path, refusal, argv, line):
    (tmp_path / "file").touch()
    assert refusal("drill", *argv.split()) == line


def test_a_folder_of_somebody_else_is_not_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="files that do not belong to a drill; choose another folder with --out"):
        run(BY_NAME["crash"], tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
