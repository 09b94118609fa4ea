"""The most frequent keys of a batch, as `ledgerops.instrument` observed them."""

from __future__ import annotations

from typing import NamedTuple

from ledgerops.model.records import Progress

OBSERVATION = "ledgerops"  # the name under which `instrument` observes


class HotKey(NamedTuple):
    """The most frequent key of a batch: hashed unless `instrument` was asked for plain keys."""

    key: str
    share: float  # of the rows that have a key, 0 to 1
    rows: int


def hottest_key(batch: Progress) -> HotKey | None:
    """The key with the largest share of the rows that a batch observed."""
    found = [
        HotKey(str(top[0].get("item")), top[0]["count"] / rows, int(top[0]["count"]))
        for name, row in batch.observed.items()
        if name.startswith(OBSERVATION)
        and isinstance(rows := row.get("rows"), int)
        and rows > 0
        and isinstance(top := row.get("hot_keys"), list)
        and top
        and isinstance(top[0], dict)
        and isinstance(top[0].get("count"), int)
    ]
    return max(found, key=lambda hot: hot.share, default=None)
