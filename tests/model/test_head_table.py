"""The table of head offsets and times: right where the data say something, None where they do not."""

import pytest

from ledgerops.model import head_table
from tests.build import T0, stream
from tests.tables import cases

PARTITION = ("transactions", "0")


def note(table, progress):
    head_table.note_heads(table, head_table.offsets_read_at(progress), progress.sources[0].latest.items())


def head_times(heads):
    """The table after batches that saw such heads, and consumed nothing."""
    table = {}
    for each in stream(heads=heads, ends=[0] * len(heads)):
        note(table, each)
    return table[PARTITION]


SEEN = ([100, 200, 300], [10.0, 20.0, 30.0])


@cases(
    "table, offset, expected",
    ("older than the table: its oldest time, a lower bound of the lag", SEEN, 50, 10.0),
    ("the oldest point", SEEN, 100, 10.0),
    ("between two points", SEEN, 150, 15.0),
    ("the newest point", SEEN, 300, 30.0),
    ("beyond the newest point: never in the future", SEEN, 900, 30.0),
    ("an empty table", ([], []), 5, None),
    ("after a quiet hour", ([100, 100, 150], [0.0, 3600.0, 3610.0]), 100, 3600.0),
)
def test_lag_comes_from_the_table_by_interpolation_and_is_clamped_outside(table, offset, expected):
    assert head_table.time_of_offset(*table, offset) == expected


@cases(
    "heads, kept, seconds",
    ("a topic that was made anew begins a new table", [500, 600, 10, 20], [10, 20], [4, 6]),
    ("of a quiet stretch both ends are kept", [100] * 5 + [150], [100, 100, 150], [0, 8, 10]),
)
def test_what_the_table_keeps(heads, kept, seconds):
    found, times = head_times(heads)
    assert (list(found), [time - T0 for time in times]) == (kept, seconds)


@cases(
    "heads",
    ("the topic was made anew", [500, 600, 10]),
    ("the table is full", list(range(1, 2 * head_table.MIN_POINTS + 1))),
)
def test_a_table_that_another_thread_reads_does_not_get_shorter(heads):
    *earlier, last = stream(heads=heads, ends=[0] * len(heads))
    table = {}
    for each in earlier:
        note(table, each)
    read = table[PARTITION]
    note(table, last)

    assert min(map(len, read)) >= len(earlier)
    assert len(table[PARTITION][0]) == len(table[PARTITION][1]) < len(earlier)


def test_a_head_is_not_in_the_table_before_its_time():
    lengths = []

    class Watched(list):
        def append(self, value):
            super().append(value)
            lengths.append((len(heads), len(times)))

    heads, times = Watched(), Watched()
    [seen] = stream(heads=[100], ends=[0])
    note({PARTITION: (heads, times)}, seen)

    assert lengths == [(0, 1), (1, 1)]


def test_of_two_observers_the_one_that_looked_earlier_changes_nothing():
    table = {}
    for at, head in [(10.0, 100), (20.0, 300), (15.0, 200), (30.0, 400)]:
        head_table.note_heads(table, at, [(PARTITION, head)])
    assert [list(column) for column in table[PARTITION]] == [[100, 300, 400], [10.0, 20.0, 30.0]]


@pytest.mark.parametrize("quiet", [1, 7], ids=["always moving", "with quiet stretches"])
def test_a_full_table_forgets_detail_and_not_the_past(quiet):
    table = {}
    seen = [(float(at), at // quiet) for at in range(5000)]
    for at, head in seen:
        head_table.note_heads(table, at, [(PARTITION, head)])

    heads, times = table[PARTITION]
    assert (times[0] <= quiet, times[-1], len(heads) <= 2 * head_table.MIN_POINTS) == (True, 4999.0, True)
    for at, head in seen[::50]:
        found = head_table.time_of_offset(heads, times, head)
        assert found == pytest.approx(at - at % quiet + quiet - 1, abs=max(30.0, 0.25 * (5000 - at)))


def test_the_longest_quiet_stretch_is_kept_where_it_begins_at_the_newest_of_the_older_points():
    table, quiet = {}, head_table.MIN_POINTS
    seen = [(float(at), min(at, quiet - 1) + max(0, at - quiet - 50)) for at in range(600)]
    for at, head in seen:
        head_table.note_heads(table, at, [(PARTITION, head)])

    assert [at for at, head in zip(table[PARTITION][1], table[PARTITION][0], strict=True) if head == quiet - 1] == [
        quiet - 1.0,
        quiet + 50.0,
    ]


def test_partitions_that_fill_up_together_are_thinned_out_a_few_at_a_time():
    table: head_table.HeadTable = {}
    shorter = []
    for at in range(10 * head_table.MIN_POINTS):
        before = {partition: len(heads) for partition, (heads, _) in table.items()}
        head_table.note_heads(table, float(at), [(("t", str(each)), at) for each in range(50)])
        shorter.append(sum(len(heads) < before.get(each, 0) for each, (heads, _) in table.items()))

    assert max(shorter) == head_table.MIN_THINNED_PARTITIONS
    assert all(len(heads) == len(times) <= 3 * head_table.MIN_POINTS for heads, times in table.values())
    assert all(times[0] == 0.0 for _, times in table.values())


@cases(
    "offsets, times, rate",
    ("a segment was deleted", [0, 0, 500, 500], [0.0, 90.0, 100.0, 200.0], 2.5),
    ("long ago", [0, 9000, 9000], [0.0, 100.0, 10_000.0], None),
    ("nothing was deleted", [0, 0], [0.0, 500.0], None),
    ("watched for too short a time", [0, 500], [0.0, 20.0], None),
    ("not watched", [], [], None),
)
def test_the_pace_of_deletion(offsets, times, rate):
    assert head_table.advance(offsets, times, times[-1] if times else 0.0) == rate
