from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.source_partition_skew import CAUSE
from tests.diagnosis.conftest import stage
from tests.tables import cases

PINNED, EVEN = [100, 100, 1600, 100, 100], [400, 400, 400, 400, 400]
UNEVEN = [stage("scan", records=PINNED, seconds=[0.2, 0.2, 3.2, 0.2, 0.2], shuffle=False)]
LESS = [stage("scan", records=[100, 400, 700, 300, 300], seconds=[0.2, 0.8, 3.2, 0.6, 0.6], shuffle=False)]


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


FILES = "FileStreamSource[file:/lake/orders]"


def test_of_files_the_task_that_reads_most_of_the_rows_is_named(history):
    """They have no partitions: a file that cannot be divided is one task, however large."""
    [finding] = check(CAUSE, pinned(history, source=FILES, read=None))
    assert finding.summary == (
        "a task read 80% of 2,000 rows of transactions (orders); an even share is 20%, which costs 2.4 s of a batch "
        "of 4.0 s"
    )
    assert (finding.component.kind, finding.component.detail) == ("source", "files")
    assert finding.remedies[0].action.startswith("compare the sizes of the files that a batch reads")


@cases(
    "case",
    ("even", {"read": [EVEN] * 8, "stages": [stage(records=EVEN, seconds=[0.7] * 5, shuffle=False)]}),
    ("one task has more rows, but not by its partition", {"read": [EVEN] * 8}),
    ("one partition", {"read": [[2000]] * 8}),
    ("it costs little", {"stages": [stage(records=PINNED, seconds=[0.05] * 5, shuffle=False)]}),
    ("one core reads one partition at a time", {"cores": 1}),
    ("a source that tells no partitions, and reads no files", {"source": "MySource", "read": None}),
    ("less than half in one file", {"source": FILES, "read": None, "stages": LESS}),
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, pinned(history, **case))) == []
