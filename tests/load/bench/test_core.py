"""What a measured command is given."""

from load.bench.core import installed


def test_a_measured_command_keeps_its_compiled_modules_as_an_installed_one_does(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("LEDGEROPS_QUERY", "kept")

    found = installed()
    assert "PYTHONDONTWRITEBYTECODE" not in found
    assert found["LEDGEROPS_QUERY"] == "kept"
