"""`enabled` is off: the application runs as without ledgerops."""

import pytest

import ledgerops
from ledgerops.errors import UserError


class Session:
    """A session of which nothing may be asked but which one it is."""

    session_id = "of the test"

    def __getattr__(self, name):
        """A classic session has the same id in the JVM."""
        return self if name == "_jsparkSession" else lambda: self.session_id


class Rows:
    """A DataFrame with one column, of which nothing else may be asked."""

    columns = ("id",)


def passed(rows):
    return [
        ledgerops.instrument(rows, event_time="event_time"),
        ledgerops.book(rows, "in", amount="amount"),
        ledgerops.conflicts(rows, key="key"),
    ]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_variable_switches_everything_off(monkeypatch):
    monkeypatch.setenv("LEDGEROPS_ENABLED", "false")
    rows = Rows()

    watch = ledgerops.attach(Session())
    assert (watch.url, watch.error) == (None, "switched off by the setting enabled")
    assert watch.diagnose()["queries"] == []
    assert all(each is rows for each in passed(rows))


def test_so_does_the_file(elsewhere):
    (elsewhere / "ledgerops.toml").write_text("enabled = false\n")
    rows = Rows()
    assert ledgerops.attach(Session()).error == "switched off by the setting enabled"
    assert all(each is rows for each in passed(rows))


def test_an_argument_switches_one_session_off():
    assert ledgerops.attach(Session(), enabled=False).error == "switched off by the setting enabled"


@pytest.mark.parametrize("value", ["true", "1", "maybe"])
def test_otherwise_columns_are_looked_at(monkeypatch, value):
    monkeypatch.setenv("LEDGEROPS_ENABLED", value)
    with pytest.raises(UserError, match="no column 'event_time' to instrument"):
        passed(Rows())


def test_a_value_that_is_neither_is_said_and_the_job_goes_on(monkeypatch):
    monkeypatch.setenv("LEDGEROPS_ENABLED", "maybe")
    assert "variable LEDGEROPS_ENABLED: enabled must be true or false, not 'maybe'" in ledgerops.attach(Session()).error
