from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.source_partition_skew import CAUSE
from tests.diagnosis.conftest import stage
from tests.tables import cases

PINNED, EVEN = [100, 100, 1600, 100, 100], [400, 400, 400, 400, 400]
UNEVEN = [stage("scan", records=PINNED, seconds=[0.2, 0.2, 3.2, 0.2, 0.2], shuffle=False)]


def pinned(history, **more):
    told = {"seconds": [4] * 8, "read": [PINNED] * 8, "stages": UNEVEN, "phases": {"add_batch": 3.8}}
    return history(**{"warm": 6, "cores": 5} | told | more)


def test_a_heavy_partition_is_named_with_what_it_costs(history):
    [finding] = check(CAUSE, pinned(history))

    assert finding.summary == (
        "partition 2 of transactions got 80% of 10,000 rows; an even share would be 20%, which costs 2.4 s of a batch "
        "of 4.0 s"
    )
    assert (finding.component.name, finding.component.detail) == ("transactions-2", "transactions")
    assert finding.remedies[0].action == "repair how the producer chooses the partition"


@cases(
    "case",
    ("even", {"read": [EVEN] * 8, "stages": [stage(records=EVEN, seconds=[0.7] * 5, shuffle=False)]}),
    ("one task has more rows, but not by its partition", {"read": [EVEN] * 8}),
    ("one partition", {"read": [[2000]] * 8}),
    ("it costs little", {"stages": [stage(records=PINNED, seconds=[0.05] * 5, shuffle=False)]}),
    ("one core reads one partition at a time", {"cores": 1}),
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, pinned(history, **case))) == []
