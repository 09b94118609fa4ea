"""Two processes that are told to record to one folder."""

from collections import deque
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ledgerops.agent.claim import Claim
from ledgerops.model.recording import Recorder
from tests.programs import python


@pytest.fixture
def claim():
    with ExitStack() as claims:
        yield lambda folder: claims.enter_context(closing(Claim(folder)))


def test_the_second_of_two_gets_a_folder_of_its_own_until_the_first_lets_go(tmp_path, claim, caplog):
    folder = tmp_path / "recording"
    first, second = claim(folder), claim(folder)
    assert (first.folder, second.folder.parent) == (folder, folder)
    assert f"another application records to {folder}: recording to {second.folder}" in caplog.text

    third = claim(folder)
    assert len({first.folder, second.folder, third.folder}) == 3
    second.close()
    assert claim(folder).folder == second.folder, "else each restart would leave a folder behind"
    first.close()
    assert claim(folder).folder == folder


def test_the_claim_of_a_process_that_was_killed_has_ended(tmp_path, claim):
    program = "import os, pathlib, ledgerops.agent.claim as claims"
    program += f"\nclaim = claims.Claim(pathlib.Path({str(tmp_path)!r}))\nos._exit(9)"
    assert python("-c", program).returncode == 9
    assert claim(tmp_path).folder == tmp_path


def test_a_recording_goes_on_where_it_began_when_the_application_changes_its_directory(tmp_path, monkeypatch, claim):
    (tmp_path / "later").mkdir()
    monkeypatch.chdir(tmp_path)
    recorder = Recorder(claim(Path("recording")).folder)
    lines = deque([b"1\n"])
    recorder.write(lines)
    monkeypatch.chdir(tmp_path / "later")
    lines.append(b"2\n")
    renewed = recorder.write(lines)
    recorder.close()

    [segment] = (tmp_path / "recording").glob("recording-*")
    assert (segment.read_bytes(), renewed) == (b"1\n2\n", False)
    assert list((tmp_path / "later").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_left_to_who_writes_there(tmp_path, claim):
    (tmp_path / "file").write_text("")
    assert claim(tmp_path / "file" / "recording").folder == tmp_path / "file" / "recording"
