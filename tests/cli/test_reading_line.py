import io

import pytest

from ledgerops.cli import main
from ledgerops.cli.reading_line import followed
from ledgerops.errors import UserError
from ledgerops.model.records import Observation
from tests.build import T0
from tests.paths import RECORDED

ERASED = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def records(count, error=None):
    for number in range(count):
        yield Observation(T0 + number, "idle", None, {})
    if error is not None:
        raise error


def ticking(step):
    """A clock that goes on by so many seconds each time it is asked."""
    times = iter(range(10**6))
    return lambda: step * next(times)


def test_a_terminal_is_told_how_far_a_long_reading_is_and_the_line_is_gone_at_the_end():
    out = Terminal()

    assert list(followed(records(3), out, ticking(0.6))) == list(records(3))
    assert out.getvalue() == (
        "\rreading for 1 s: 2 records, until 2027-01-15 08:00:01 UTC\x1b[K"
        "\rreading for 2 s: 3 records, until 2027-01-15 08:00:02 UTC\x1b[K" + ERASED
    )


@pytest.mark.parametrize(
    ("stream", "step"), [(Terminal, 0.01), (io.StringIO, 1.0)], ids=["a short reading", "what is no terminal"]
)
def test_others_get_no_line(stream, step):
    out = stream()
    assert len(list(followed(records(50), out, ticking(step)))) == 50
    assert out.getvalue() == ""


def test_an_error_while_reading_finds_the_line_erased():
    out = Terminal()
    with pytest.raises(UserError):
        list(followed(records(3, UserError("torn")), out, ticking(1.0)))
    assert out.getvalue().endswith(ERASED)


def test_a_reading_that_is_left_early_finds_the_line_erased():
    out = Terminal()
    reading = followed(records(9), out, ticking(1.0))
    next(reading), next(reading)
    reading.close()

    assert out.getvalue().endswith(ERASED)


def test_diagnose_tells_a_terminal_beside_its_report(monkeypatch, capsys):
    monkeypatch.setattr("ledgerops.cli.reading_line.FIRST_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())

    main(["diagnose", "--from", str(RECORDED / "source-unreachable.jsonl")])

    assert terminal.getvalue().startswith("\rreading for 0 s: 1 records, until 2026-11-21 ")
    assert terminal.getvalue().endswith(ERASED)
    assert "reading" not in capsys.readouterr().out
