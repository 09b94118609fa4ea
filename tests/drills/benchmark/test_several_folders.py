"""Drawn drills of several seeds are scored together; scripted ones are in one folder."""

from ledgerops.cli import main
from tests.drills.benchmark.dataset import QUIET, SINK, drill, finding


def test_drawn_drills_of_several_folders_are_scored_together(tmp_path, capsys):
    drill(tmp_path / "one", SINK, {50.0: [finding("slow-sink")]})
    drill(tmp_path / "two", QUIET, {10.0: []})

    main(["drill", "--score", str(tmp_path / "one"), str(tmp_path / "two")])
    printed = capsys.readouterr().out
    assert "| 18-07-slow-sink |" in printed and "| 18-08-bursts " in printed


def test_scripted_drills_are_in_one_folder(tmp_path, capsys):
    assert main(["drill", "--score", str(tmp_path), str(tmp_path)]) == 2
    assert "--score cannot be several folders, except of drawn drills" in capsys.readouterr().err
