from ledgerops.diagnosis.facts.misread_time import misread
from tests.tables import cases

NOW = 1_795_440_000.0  # 2026-11-23
YEAR = 365.25 * 86_400


@cases(
    "at, question",
    ("milliseconds", NOW * 1e3, "in the year 58865: milliseconds read as seconds?"),
    ("milliseconds of 2001", 1e9 * 1e3, "in the year 33658: milliseconds read as seconds?"),
    ("microseconds", NOW * 1e6, "in the year 56897198: microseconds read as seconds?"),
    ("seconds as milliseconds", NOW / 1e3, "1970-01-21: seconds read as milliseconds?"),
    ("seconds as microseconds", NOW / 1e6, "1970-01-01: seconds read as microseconds?"),
    ("nothing", 0.0, "1970-01-01: a missing time read as 0?"),
)
def test_a_number_that_is_no_time_is_named(at, question):
    found = misread(at, NOW)
    assert found.question == question


@cases(
    "at",
    ("unknown", None),
    ("now", NOW),
    ("fifty years ago", NOW - 50 * YEAR),
    ("in a hundred years", NOW + 100 * YEAR),
    ("the year 9999, which means for ever", 253_402_300_799.0),
    ("before 1970", -1.0),
    ("a day of summer 1970", 86_400.0 * 200),
)
def test_other_times_are_times(at):
    assert misread(at, NOW) is None


def test_nothing_is_compared_with_a_clock_that_was_never_set():
    assert misread(5.0, 0.0) is None
