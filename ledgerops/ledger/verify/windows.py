"""Windows: the counts and amounts of all customers in a window add up to what happened in it.

What happened is known for each two hours (the manifest's buckets), copies included, as the jobs count them. What is
kept is a count and a sum for each window.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from ledgerops.ledger.plan.digest import whole_numbers
from ledgerops.ledger.plan.summary import BUCKET_SECONDS, Bucket, Summary, money
from ledgerops.ledger.verify import keys
from ledgerops.ledger.verify.expectations import DAY, Windowed
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import MAX_EXAMPLES, JobCheck, apart

KEY = ("window_start", "window_end", "customer_id")
COLUMNS = ("window_start", "window_end", "transactions", "amount")
Window = tuple[int, int]  # beginning and end, seconds since the epoch


def check(
    result: JobCheck, output: Output, expected: Windowed, summary: Summary, in_time: Mapping[int, Bucket] | None = None
) -> None:
    """Fills the result. Where some rows were late, `in_time` are the others: of a window only late ones may be missing,
    and it may never have too many."""
    found = _sums(output)
    result.repeated, result.examples["repeated"] = keys.repeated(output, KEY)
    last = max((end for _, end in found), default=0)
    wanted = _wanted(expected, summary.buckets, last)
    needed = wanted if in_time is None else _wanted(expected, in_time, last)
    result.lost = result.changed = 0
    cents_apart, lost, changed = 0, [], []
    for window in sorted({*found, *wanted}):
        (count, cents), (should, should_cents) = found.get(window, (0, 0)), wanted.get(window, (0, 0))
        cents_apart += cents - should_cents
        least, least_cents = needed.get(window, (0, 0))
        if least <= count <= should and least_cents <= cents <= should_cents:
            continue
        example = f"{_window_text(window)}: {count:,} of {should:,}, {money(cents)} of {money(should_cents)}"
        if count < least:
            result.lost += least - count
            lost.append(example)
        else:
            result.changed += max(1, count - should)
            changed.append(example)
    result.money = apart("amount", cents_apart) or "equal"
    result.examples |= {"lost": lost[:MAX_EXAMPLES], "changed": changed[:MAX_EXAMPLES]}
    result.notes.append(f"{len(found):,} windows were written; open windows are not included")
    if in_time is not None and cents_apart:
        result.notes.append("rows arrived after the watermark, so a window may have fewer rows than were sent")


def _sums(output: Output) -> dict[Window, tuple[int, int]]:
    found: dict[Window, tuple[int, int]] = {}
    for batch in output.batches(COLUMNS):
        start, end = (whole_numbers(batch.column(name)) // 1_000_000 for name in COLUMNS[:2])
        counts, cents = (whole_numbers(batch.column(name)) for name in COLUMNS[2:])
        windows, places = np.unique(np.stack([start, end]), axis=1, return_inverse=True)
        sums = np.zeros((2, windows.shape[1]), np.int64)
        for sum_of, figures in zip(sums, (counts, cents), strict=True):
            np.add.at(sum_of, places.reshape(-1), figures)
        for start_end, count, sum_ in zip(windows.T.tolist(), *sums.tolist(), strict=True):
            window = (start_end[0], start_end[1])
            old_count, old_sum = found.get(window, (0, 0))
            found[window] = (old_count + count, old_sum + sum_)
    return found


def _wanted(expected: Windowed, buckets: Mapping[int, Bucket], last: int) -> dict[Window, tuple[int, int]]:
    """Count and sum of each window that ends by `last` and in which something happened."""
    found: dict[Window, tuple[int, int]] = {}
    for begin, bucket in buckets.items():
        first = begin - begin % expected.slide + expected.slide  # the first end after the bucket
        longest = expected.size or DAY
        for end in range(first, min(last, begin + longest) + 1, expected.slide):
            start = end - expected.size if expected.size else (end - 1) // DAY * DAY
            if start <= begin and begin + BUCKET_SECONDS <= end:
                count, cents = found.get((start, end), (0, 0))
                found[start, end] = (count + bucket.rows, cents + bucket.cents)
    return found


def _window_text(window: Window) -> str:
    start, end = (datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H:%MZ") for each in window)
    return f"{start} to {end}"
