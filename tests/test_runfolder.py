import json

import pytest

from ledgerops.errors import UserError
from ledgerops.runfolder import Note, RunFolder

FIRST = Note("embedded", "default", "abc", 1000.0)
LATER = Note("embedded", "default", "abc", 2000.0)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def opened(root, note, fresh=False, begun=True):
    """Opens the folder, closes it, and leaves a checkpoint in it when the run is to have begun."""
    folder = RunFolder(root, "default")
    found = folder.open(note, fresh)
    if begun:
        (folder.checkpoints / "daily_counts" / "offsets").mkdir(parents=True, exist_ok=True)
        (folder.checkpoints / "daily_counts" / "offsets" / "0").touch()
    folder.close()
    return found


def test_a_new_run_keeps_its_origin(root):
    assert opened(root, FIRST) == (FIRST, False)
    assert json.loads((root / "default" / "run.json").read_text())["origin"] == 1000.0


def test_the_next_run_goes_on_with_the_clock_of_the_first(root):
    opened(root, FIRST)

    assert opened(root, LATER) == (FIRST, True)


def test_a_run_that_planned_no_batch_is_no_earlier_run(root):
    opened(root, FIRST, begun=False)

    assert opened(root, LATER) == (LATER, False)


def test_fresh_moves_the_earlier_run_aside_and_loses_nothing(root):
    opened(root, FIRST)

    assert opened(root, LATER, fresh=True) == (LATER, False)
    [aside] = root.glob("default-before-*")
    assert json.loads((aside / "run.json").read_text())["origin"] == 1000.0
    assert (aside / "checkpoints" / "daily_counts" / "offsets" / "0").exists()


def test_fresh_in_an_empty_folder_moves_nothing(root):
    opened(root, FIRST, fresh=True)

    assert [each.name for each in root.iterdir()] == ["default"]


def test_another_plan_is_refused_and_the_earlier_run_left_alone(root):
    opened(root, FIRST)
    with pytest.raises(UserError, match="holds a run of another plan"):
        opened(root, Note("embedded", "default", "changed", 2000.0))

    assert opened(root, LATER) == (FIRST, True)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"source": "embedded"}'], ids=["empty", "torn", "a list", "keys absent"]
)
def test_a_note_that_cannot_be_read_is_refused_and_fresh_helps(root, text):
    opened(root, FIRST)
    (root / "default" / "run.json").write_text(text)
    with pytest.raises(UserError, match=r"cannot read .*run\.json .*; add --fresh to begin anew"):
        opened(root, LATER)

    assert opened(root, LATER, fresh=True) == (LATER, False)


def test_two_runs_in_one_folder_are_refused(root):
    first = RunFolder(root, "default")
    first.open(FIRST, False)
    with pytest.raises(UserError, match=r"is in use by process \d+; stop that run"):
        RunFolder(root, "default").open(FIRST, False)
    first.close()

    assert opened(root, LATER)[1] is False
