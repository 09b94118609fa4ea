from datetime import timedelta
from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.conflicting_transactions import JOB
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import ask, batches_of, disordered, in_time

pytestmark = pytest.mark.spark

LATENESS = timedelta(minutes=10)


def by_model(batches):
    """Row by row, with a table of what each id said first; nothing of Spark's."""
    known, found = {}, []
    for batch in batches:
        for row in sorted(in_time([batch]), key=lambda row: (row["event_time"], row["amount"])):
            content = tuple(row.values())
            first = known.setdefault(row["transaction_id"], (content, row["event_time"] + LATENESS))
            if content != first[0]:
                found.append(row)
        known = {key: first for key, first in known.items() if first[1] > batch.evict}
    return found


def test_copies_that_contradict_the_first_are_written_and_exact_ones_are_not(feed):
    case = feed(JOB)
    runs = disordered()
    seen, copies = set(), 0
    for batch in [batch for run in runs for batch in run]:
        for place, row in enumerate(batch):
            if row["transaction_id"] in seen:
                copies += 1  # of three one has another amount, one another operation
                other = [{}, {"amount": row["amount"] + 1}, {"operation": "changed"}]
                batch[place] = row | other[copies % 3]
            seen.add(row["transaction_id"])
    case.run_each(runs, lateness="10 minutes")

    expected = by_model(batches_of(runs, LATENESS))
    assert case.rows() == ask("SELECT * FROM rows ORDER BY ALL", expected)
    assert len(expected) > 5


def test_their_number_and_a_sample_of_their_hashed_ids_are_observed(feed):
    case = feed(JOB)
    first, second, *_ = case.work(
        [transaction("T1", "10:00"), transaction("T2", "10:00"), transaction("T3", "10:00")],
        [transaction("T1", "10:00"), transaction("T2", "10:00", amount=Decimal(11)), transaction("T3", "10:01")],
    )

    assert case.rows("transaction_id, amount") == [("T2", Decimal(11)), ("T3", Decimal(10))]
    assert first["observedMetrics"]["ledgerops_conflicts"]["conflicts"] == 0
    observed = second["observedMetrics"]["ledgerops_conflicts"]
    assert observed["conflicts"] == 2
    # the first twelve digits of sha256 of T2 and of T3
    assert sorted(each["item"] for each in observed["ids"]) == ["0f617ba98e6a", "5dd67f7fb9c5"]


def test_a_copy_is_known_after_a_restart_and_forgotten_once_the_watermark_has_passed_the_lateness(feed):
    case = feed(JOB)
    first = [[transaction("T1", "10:00"), transaction("T2", "10:00")]]
    then = [[transaction("T1", "10:05", amount=Decimal(1))], [transaction("x", "10:30")], [transaction("y", "10:30")]]
    case.run_each([first, then, [[transaction("T2", "10:25", amount=Decimal(1))]]], lateness="10 minutes")
    assert case.rows("transaction_id") == [("T1",)]


def test_within_a_batch_the_earlier_event_counts_as_the_first_and_what_has_no_time_as_the_last(feed):
    case = feed(JOB)
    untimed = transaction("T1", "10:00", amount=Decimal(3)) | {"event_time": None}
    case.work(
        [untimed, transaction("T1", "10:01", amount=Decimal(2)), transaction("T1", "10:00", amount=Decimal(1))],
        [transaction("alone", "10:00") | {"event_time": None}],
    )

    assert case.rows("amount") == [(Decimal(2),), (Decimal(3),)]
