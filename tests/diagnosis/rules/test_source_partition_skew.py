import pytest

from ledgerops.diagnosis.rules.source_partition_skew import RULE

PINNED = [100, 100, 1600, 100, 100]
EVEN = [400, 380, 420, 410, 390]


def test_a_heavy_partition_is_named(history):
    [finding] = RULE.check(history(seconds=[1] * 6, read=[PINNED] * 6, cores=2))

    assert finding.summary == (
        "partition 2 of transactions got 80% of the 12,000 rows of the last 60 s; an even share would be 20%"
    )
    assert finding.component.name == "transactions-2"


def test_under_strain_a_quarter_of_a_minute_is_enough(history):
    view = history(warm=14, seconds=[4] * 4, read=[EVEN] * 1 + [PINNED] * 3, cores=2)
    [finding] = RULE.check(view)

    assert finding.summary.endswith("rows of the last 15 s; an even share would be 20%")


LONG = {"warm": 0, "interval": 0.0, "seconds": [8.2, 16.7, 35.2], "read": [EVEN, PINNED, PINNED], "cores": 4}


def test_of_batches_longer_than_that_one_is_enough(history):
    [finding] = RULE.check(history(**LONG))

    assert finding.summary == (
        "partition 2 of transactions got 80% of the 2,000 rows of the last 35 s; an even share would be 20%"
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"read": [EVEN, PINNED, EVEN]}, id="the newest is even"),
        pytest.param({"read": [EVEN, PINNED, [1, 1, 16, 1, 1]]}, id="a trickle"),
        pytest.param({"seconds": [1.0, 1.0, 35.2]}, id="its rows came in a second"),
        pytest.param({"seconds": [35.2], "read": [PINNED]}, id="the first of a run"),
    ],
)
def test_one_long_batch_of_another_kind_is_not(history, case):
    assert list(RULE.check(history(**(LONG | case)))) == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1] * 6, "read": [EVEN] * 6}, id="even"),
        pytest.param({"seconds": [1] * 6, "read": [[100] * 4 + [160]] * 6}, id="a hot key among many"),
        pytest.param({"seconds": [1] * 6, "read": [[0, 0, 400, 400, 400]] * 6}, id="idle partitions"),
        pytest.param({"seconds": [1] * 6, "read": [[1, 1, 16, 1, 1]] * 6}, id="a trickle"),
        pytest.param({"seconds": [1] * 6, "read": [[2000]] * 6}, id="one partition"),
        pytest.param({"seconds": [1] * 6, "read": [EVEN] * 5 + [PINNED]}, id="one batch"),
        pytest.param({"seconds": [1] * 6, "read": [[100, 300]] * 6, "cores": 1}, id="one core reads one at a time"),
        pytest.param({"seconds": [1] * 17, "read": [PINNED] * 9 + [EVEN] * 8, "cores": 2}, id="over"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[1] * 6, read=[EVEN] * 6)

    assert RULE.acquit(view) == "the largest partition of transactions got 21% of the rows of the last minute"
