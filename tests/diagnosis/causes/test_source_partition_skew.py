import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.source_partition_skew import CAUSE
from tests.diagnosis.conftest import stage

PINNED, EVEN = [100, 100, 1600, 100, 100], [400, 400, 400, 400, 400]
UNEVEN = [stage("scan", records=PINNED, seconds=[0.2, 0.2, 3.2, 0.2, 0.2], shuffle=False)]


def pinned(history, **more):
    told = {"seconds": [4] * 8, "read": [PINNED] * 8, "stages": [UNEVEN] * 8, "phases": [{"add_batch": 3.8}] * 8}
    return history(**{"warm": 6, "cores": 5} | told | more)


def test_a_heavy_partition_is_named_with_what_it_costs(history):
    [finding] = check(CAUSE, pinned(history))

    assert finding.summary == (
        "partition 2 of transactions got 80% of 10,000 rows; an even share would be 20%, which costs 2.4 s of a batch "
        "of 4.0 s"
    )
    assert (finding.component.name, finding.component.detail) == ("transactions-2", "transactions")
    assert finding.remedies[0].action == "repair how the producer chooses the partition"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            {"read": [EVEN] * 8, "stages": [[stage(records=EVEN, seconds=[0.7] * 5, shuffle=False)]] * 8}, id="even"
        ),
        pytest.param({"read": [EVEN] * 8}, id="one task has more rows, but not by its partition"),
        pytest.param({"read": [[2000]] * 8}, id="one partition"),
        pytest.param(
            {"stages": [[stage(records=PINNED, seconds=[0.05] * 5, shuffle=False)]] * 8}, id="it costs little"
        ),
        pytest.param({"cores": 1}, id="one core reads one partition at a time"),
        pytest.param({"cores": None}, id="cores unknown"),
        pytest.param({"stages": None}, id="tasks unknown"),
        pytest.param({"interval": 10.0}, id="the query has the time"),
    ],
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, pinned(history, **case))) == []
