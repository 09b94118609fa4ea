"""Which account and customer a transaction is of: the distribution of the keys."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.sections import Keys
from ledgerops.ledger.plan.seeded_hash import hashes, unit

_SHUFFLE, _OWNER = 4, 5  # purposes of hashes; the others are the generator's


class KeyTable:
    """Accounts by rank, the busiest first, and the customer of each."""

    def __init__(self, keys: Keys, seed: int) -> None:
        index = np.arange(keys.accounts, dtype=np.int64)
        # the busiest accounts must not be the first ones: an order by id would hide or fake a skew
        shuffled = np.argsort(hashes(seed, _SHUFFLE, index), kind="stable")
        extra = (unit(hashes(seed, _OWNER, index)) * keys.customers).astype(np.int64)
        owner = np.where(index < keys.customers, index, extra)[shuffled]
        self.account_ids = arrow.identifiers("A", shuffled + 1, 8)
        self.customer_ids = arrow.identifiers("C", owner + 1, 8)
        self._cumulative = _cumulative_shares(keys)
        self._rotate = keys.rotate
        # a whale goes from customer to customer: one account of each
        own = np.flatnonzero((shuffled < keys.customers) & (owner != owner[0]))
        self._turns = np.concatenate([[0], own])

    def draw(self, bits: NDArray[np.uint64], seconds: NDArray[np.float64]) -> NDArray[np.intp]:
        """The rank of the account that each hash falls on, so many seconds after these keys began to hold."""
        if self._cumulative is None:
            return (unit(bits) * len(self.account_ids)).astype(np.intp)
        rank = np.searchsorted(self._cumulative, unit(bits), side="right")
        if self._rotate is None:
            return rank
        whale = self._turns[np.floor(seconds / self._rotate).astype(np.int64) % len(self._turns)]
        # the whale and the account whose turn it is change places
        return np.where(rank == 0, whale, np.where(rank == whale, 0, rank))


def _cumulative_shares(keys: Keys) -> NDArray[np.float64] | None:
    """The exact distribution over the ranks, without the last 1; None for uniform.

    Not the usual shortcut of hashing a Zipf draw from a far larger key space: over some thousand keys its hottest key
    has a third of the share that it should have.
    """
    if keys.distribution == "uniform" or keys.accounts == 1:
        return None
    if keys.distribution == "whale":
        shares = np.full(keys.accounts, (1 - keys.share) / (keys.accounts - 1))
        shares[0] = keys.share
    else:
        shares = np.arange(1, keys.accounts + 1, dtype=np.float64) ** -keys.exponent
    total = np.cumsum(shares)
    cumulative: NDArray[np.float64] = total[:-1] / total[-1]
    return cumulative


@lru_cache(maxsize=8)
def key_table(keys: Keys, seed: int) -> KeyTable:
    """Kept for the life of a process: it is made once, not once a batch."""
    return KeyTable(keys, seed)
