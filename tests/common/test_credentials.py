"""Secrets that are rotated while a program runs."""

from ledgerops.common.credentials import Reread
from ledgerops.errors import UserError


def test_a_file_is_read_again_when_it_changes_and_only_then(tmp_path):
    file, reads = tmp_path / "token", []
    file.write_text("one")

    def read():
        reads.append(file.read_text())
        return reads[-1]

    value = Reread([str(file)], read)
    assert (value.current(), value.current(), reads) == ("one", "one", ["one"])

    file.write_text("three")
    assert (value.current(), value.current(), reads) == ("three", "three", ["one", "three"])


def test_one_that_could_not_be_read_is_read_once_its_rights_are_mended(tmp_path):
    file = tmp_path / "token"
    file.write_text("old")

    def read():
        if not file.stat().st_mode & 0o004:
            raise UserError("cannot read the token")
        return file.read_text()

    file.chmod(0o644)
    value = Reread([str(file)], read)
    file.write_text("newer")
    file.chmod(0o600)
    assert value.current() == "old", "the one before stays valid"

    file.chmod(0o644)
    assert value.current() == "newer"
