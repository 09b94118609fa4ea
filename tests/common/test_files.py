import json
import os
import stat

import pytest

from ledgerops.common.files import part_of, replacing, write_bytes, write_json, write_text


def test_content_replaces_what_the_file_held(tmp_path):
    file = tmp_path / "note.json"
    write_text(file, "grün\n")
    write_json(file, {"at": 1.5})

    assert file.read_text("utf-8") == '{"at": 1.5}\n'
    assert [each.name for each in tmp_path.iterdir()] == ["note.json"]


def test_json_is_indented_where_a_person_reads_it(tmp_path):
    write_json(tmp_path / "run.json", {"a": [1]}, indent=1)
    assert (tmp_path / "run.json").read_text() == '{\n "a": [\n  1\n ]\n}\n'


def test_a_reader_sees_the_old_content_until_the_new_one_is_whole(tmp_path):
    file = tmp_path / "data"
    write_bytes(file, b"old")

    with replacing(file) as part:
        part.write_bytes(b"ne")
        assert file.read_bytes() == b"old"
        part.write_bytes(b"new")

    assert file.read_bytes() == b"new"


@pytest.mark.parametrize("problem", [ValueError("bad"), KeyboardInterrupt()], ids=["an error", "an interrupt"])
def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path, problem):
    file = tmp_path / "data"
    write_bytes(file, b"old")

    with pytest.raises(type(problem)), replacing(file) as part:
        part.write_bytes(b"ne")
        raise problem

    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


def test_a_document_that_json_cannot_hold_and_a_missing_folder_write_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_json(tmp_path / "note.json", {"what": object()})
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "nowhere" / "note", "x")

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_of_the_same_id_left_is_not_taken_for_content(tmp_path):
    file = tmp_path / "data"
    part_of(file).write_bytes(b"half")

    with replacing(file) as part:
        assert not part.exists()
        part.write_bytes(b"whole")

    assert file.read_bytes() == b"whole"


def test_a_file_has_the_rights_that_any_new_file_gets(tmp_path):
    umask = os.umask(0o027)
    try:
        write_json(tmp_path / "note.json", [])
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / "note.json").stat().st_mode) == 0o640
    assert json.loads((tmp_path / "note.json").read_text()) == []
