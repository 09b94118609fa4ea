import pytest

from ledgerops.analysis.capacity.situation import situation
from ledgerops.model.records import Plan
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, source
from tests.tables import cases


def view(seconds: list[float], rows: list[int], left: int = 0, **plan: object) -> QueryView:
    """Batches every 2 s, or as long as they take; each leaves `left` offsets more than the one before."""
    at, start = T0, 0
    each = []
    for number, (took, read) in enumerate(zip(seconds, rows, strict=True)):
        partition = ("transactions", "0")
        end = start + read
        head = {partition: end + left * (number + 1)}
        part = source(read, {partition: start}, {partition: end}, head)
        each.append(batch(number, started=at, duration=took, rows=read, sources=(part,)))
        start, at = end, at + max(2.0, took)
    remembered = history(each)
    remembered.plan = Plan("run-1", "processing_time", 2.0, **plan)  # type: ignore[arg-type]
    return QueryView(remembered, at)


ROWS = [1000 + 137 * n % 2000 for n in range(40)]


def test_a_query_is_read_without_its_start():
    took = [30.0] + [0.4 + n / 5000 for n in ROWS[1:]]
    known = situation(view(took, ROWS, shuffle_partitions=2, keys=("account_id",)))

    assert known.fit is not None
    assert known.fit.overhead == pytest.approx(0.4) and 1 / known.fit.slope == pytest.approx(5000)
    assert len(known.fit.rows) < len(ROWS) and 30.0 not in known.fit.seconds
    assert (known.trigger, known.backlog, known.key, known.notes) == (2.0, 0.0, "account_id", ())


def test_a_cap_in_offsets_is_known():
    took = [0.4 + n / 5000 for n in ROWS]

    assert situation(view(took, ROWS, rate_limits={"maxOffsetsPerTrigger": "9000"})).cap == (
        "maxOffsetsPerTrigger", 9000.0,
    )  # fmt: skip


@cases(
    "limits",
    ("none", {}),
    ("in files", {"maxFilesPerTrigger": "10"}),
    ("in bytes", {"maxBytesPerTrigger": "10m"}),
    ("no number", {"maxOffsetsPerTrigger": "many"}),
)
def test_a_cap_that_is_not_counted_in_rows_is_not(limits):
    assert situation(view([0.4 + n / 5000 for n in ROWS], ROWS, rate_limits=limits)).cap is None


def test_a_saturated_query_whose_batches_are_of_one_size_is_known_at_that_size():
    known = situation(view([4.0, 4.1, 3.9] * 10, [8000] * 30, left=5000))
    assert known.fit is not None and known.fit.source.startswith("median of 10 saturated batches of one size")
    assert 1 / known.fit.slope == pytest.approx(2000, rel=0.03)


def test_a_query_at_ease_whose_batches_are_of_one_size_is_not():
    known = situation(view([0.5, 0.6] * 15, [1000] * 30))

    assert known.fit is None
    assert known.reason.startswith("batches have nearly the same size")
    assert known.shown == pytest.approx(500)


def test_batches_from_before_a_change_do_not_count():
    """A sink that begins to wait: 0.4 s for a batch, then 4.4 s, with the rows that come meanwhile."""
    known = situation(view([0.4] * 20 + [4.4, 4.5] * 8, [200] * 20 + [440, 460] * 8))

    assert known.shown == pytest.approx(101, abs=1)  # 450 rows in 4.45 s, and not 200 in 2 s
    [note] = known.notes
    assert note.startswith("for as many rows a batch takes 4.9 times as long as it did until 2027-01-15 08:00:")
    assert note.endswith("only batches since then count")


def test_a_hiccup_leaves_the_estimate_and_is_noted():
    took = [0.4 + n / 5000 for n in ROWS]
    known = situation(view([*took, 4.4, 4.4, 4.4], [*ROWS, 440, 440, 440]))

    assert known.fit is not None
    assert known.notes[0].endswith("these estimates are from before that")


def test_batches_that_get_slower_are_noted():
    took = [(0.4 + n / 5000) * (1 + number / 50) for number, n in enumerate(ROWS)]
    [note] = situation(view(took, ROWS)).notes

    assert (
        note.startswith("for the same number of rows the newest third of the batches takes 47%")
        and "longer than the oldest" in note
    )
