"""Which state store a query gets."""

import pytest

from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.run.start import IN_MEMORY, PROVIDER, ROCKSDB, provider_of


@pytest.mark.parametrize(
    ("job", "chosen", "provider"),
    [
        pytest.param("dedup_transactions", {}, IN_MEMORY, id="short state in memory"),
        pytest.param("dedup_transactions", {PROVIDER: ROCKSDB}, ROCKSDB, id="the user's choice comes first"),
        pytest.param("debit_credit_pairs", {}, None, id="long state in the session's store"),
        pytest.param("debit_credit_pairs", {PROVIDER: IN_MEMORY}, IN_MEMORY, id="the user's choice, of long state"),
    ],
)
def test_a_users_choice_of_state_store_comes_before_the_jobs(job, chosen, provider):
    assert provider_of(find_job(job), chosen) == provider
