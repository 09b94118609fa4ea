import pytest

from ledgerops.common.format import clock, count, counted, duration, instant, ratio, size


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (0, "0"), (3.25, "3.2"), (8075, "8,075"), (117_000, "117k"), (1_204_000, "1.2M")]
)
def test_counts_are_short(value, text):
    assert count(value) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 queries"), (1, "1 query"), (1.2, "1 query"), (8075, "8,075 queries")]
)
def test_a_single_thing_is_in_the_singular(number, text):
    assert counted(number, "query", "queries") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"), (0, "0 s"),
        (0.000021, "0.021 ms"), (0.0032, "3.2 ms"),
        (0.44, "0.44 s"), (0.999, "1.0 s"), (6.42, "6.4 s"), (32, "32 s"), (99.4, "99 s"),
        (99.6, "1 min 40 s"), (158.7, "2 min 39 s"), (1020, "17 min"),
        (3599.7, "1 h"), (11_520, "3 h 12 min"), (86_378, "24 h"), (86_399 * 1.5, "36 h"), (441_900, "5 d 3 h"),
    ],
)  # fmt: skip
def test_durations_have_the_unit_in_which_people_think(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (812, "812 B"), (1_250_000, "1.2 MB"), (3e11, "300 GB")])
def test_sizes_are_in_powers_of_a_thousand(value, text):
    assert size(value) == text


def test_a_ratio_has_its_sign_and_a_clock_hours_only_when_there_are_some():
    assert (ratio(14.92), ratio(None)) == ("14.9×", "–")
    assert (clock(65), clock(7389)) == ("1:05", "2:03:09")


@pytest.mark.parametrize("told", ["2026-11-21T08:30:00.123Z", "2026-11-21T08:30:00Z"])
def test_instants_are_told_to_the_second(told):
    assert instant(told) == "2026-11-21 08:30:00 UTC"
