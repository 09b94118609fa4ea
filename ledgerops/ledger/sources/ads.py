"""Ad events made of transactions, and the campaigns that the ads belong to: the Yahoo streaming benchmark's tables.

Each transaction is one event of its customer on its account's page, at its time. Which ad, and what became of it, is
drawn from the transaction's id alone, so a transaction that is sent twice is the same event twice, whatever the source.
As in the benchmark (Chintapalli et al., "Benchmarking Streaming Computation Engines", IPDPSW 2016) there are 100
campaigns of ten ads each, five types of ads and three of events, all equally frequent.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.seeded_hash import hashes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CAMPAIGNS = 100
ADS = 1000
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("user_id", "page_id", "ad_id", "ad_type", "event_type")),
        ("event_time", pa.timestamp("us", tz="UTC")),
    ]
)
_SEED = 0  # no plan's: a transaction of that id is the same event whatever the source
_BYTE, _TEXT = range(2)
_WIDTH = 64  # bytes, a power of two; in a longer id a byte counts as the one 64 before it
_AD_IDS = arrow.texts([f"AD{number:04}" for number in range(1, ADS + 1)])
_AD_TYPES, _EVENT_TYPES = arrow.texts(AD_TYPES), arrow.texts(EVENT_TYPES)
_PAGE, _NOTHING = arrow.texts(["page-", ""])


def ad_events(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The ad events of a batch of transactions (columns of schemas.TRANSACTIONS), row by row, in schemas.AD_EVENTS."""
    bits = _hashed(batch.column("transaction_id"))
    low, high = bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)
    return pa.RecordBatch.from_arrays(
        [
            batch.column("customer_id"),
            pc.binary_join_element_wise(_PAGE, batch.column("account_id"), _NOTHING),
            _AD_IDS.take(arrow.integers((low % np.uint64(ADS)).astype(np.int32))),
            _AD_TYPES.take(arrow.integers((low // np.uint64(ADS) % np.uint64(len(AD_TYPES))).astype(np.int32))),
            _EVENT_TYPES.take(arrow.integers((high % np.uint64(len(EVENT_TYPES))).astype(np.int32))),
            batch.column("event_time").cast(SCHEMA.field("event_time").type),  # Spark hands it in the session's zone
        ],
        schema=SCHEMA,
    )


def campaigns(spark: SparkSession) -> DataFrame:
    """The static table of all ads, ad_id and campaign_id: ten ads of following numbers to a campaign."""
    from pyspark.sql import functions as F  # not for the workers, which only make events

    # made where it is needed: a list from Python would be carried along and converted in every batch
    number = F.col("id")
    return spark.range(ADS).select(
        F.format_string("AD%04d", number + 1).alias("ad_id"),
        F.format_string("CM%03d", F.floor(number * CAMPAIGNS / ADS) + 1).alias("campaign_id"),
    )


def _hashed(texts: pa.Array) -> NDArray[np.uint64]:
    """64 bits for each text: the sum of a random number for each of its bytes and places (Zobrist, 1970), scrambled."""
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data else np.empty(0, np.uint8)
    places = np.arange(len(content), dtype=np.int32) - np.repeat(starts, lengths)
    # a zero at the end, which belongs to no text: reduceat wants a first element even for an empty one
    numbers = np.append(_random_numbers().take((places & (_WIDTH - 1)) << 8 | content), np.uint64(0))
    sums = np.add.reduceat(numbers, starts)
    return hashes(_SEED, _TEXT, np.where(lengths > 0, sums, np.uint64(0)).view(np.int64))


@cache
def _random_numbers() -> NDArray[np.uint64]:
    """By place * 256 + byte."""
    return hashes(_SEED, _BYTE, np.arange(_WIDTH * 256, dtype=np.int64))
