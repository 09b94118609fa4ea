"""Which state store a query gets."""

from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.run.start import IN_MEMORY, PROVIDER, ROCKSDB, provider_of
from tests.tables import cases


@cases(
    "job, chosen, provider",
    ("short state in memory", "dedup_transactions", {}, IN_MEMORY),
    ("the user's choice comes first", "dedup_transactions", {PROVIDER: ROCKSDB}, ROCKSDB),
    ("long state in the session's store", "daily_counts", {}, None),
    ("the user's choice, of long state", "daily_counts", {PROVIDER: IN_MEMORY}, IN_MEMORY),
)
def test_a_users_choice_of_state_store_comes_before_the_jobs(job, chosen, provider):
    assert provider_of(find_job(job), chosen) == provider
