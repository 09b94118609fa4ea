"""The SQL executions of a batch: which batch Spark names for one, and which of them failed."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ledgerops.model.records import FailedStatement

# in the description of an execution; older versions of Spark wrote line breaks as tags
BATCH = re.compile(r"\bid = [0-9a-f-]+\s*(?:<br/>)?\s*runId = ([0-9a-f-]+)\s*(?:<br/>)?\s*batch = (\d+)")
MAX_ERRORS = 10  # texts of a batch that are kept, of the longest: a function may catch an exception for each row


def batch_of(description: str) -> tuple[str, int] | None:
    """Run id and batch that an execution is a part of, by its description; None of what no query ran."""
    found = BATCH.search(description)
    return None if found is None else (found[1], int(found[2]))


def failed_statements(failed: Iterable[FailedStatement]) -> tuple[FailedStatement, ...]:
    """In the order of their starts, without those that are parts of another one, by their start."""
    kept: list[FailedStatement] = []
    for each in sorted(failed, key=lambda each: (each.started, -each.ended)):
        if not is_lost(each.started, kept):
            kept.append(each)
    told = sorted(kept, key=lambda each: each.started - each.ended)[:MAX_ERRORS]
    return tuple(each if each in told else replace(each, error="") for each in kept)


def is_lost(at: float | None, failed: Sequence[FailedStatement]) -> bool:
    """Whether what began then is a part of one of these, as `failed_statements` gives them."""
    if at is None:
        return False
    place = bisect_right(failed, at, key=lambda each: each.started)
    return place > 0 and at < failed[place - 1].ended
