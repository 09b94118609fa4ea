"""Ad events made of transactions, and the campaigns that the ads belong to: the Yahoo streaming benchmark's tables.

Each transaction is one event of its customer on its account's page, at its time. Which ad, and what became of it, is
drawn from the transaction's id alone, so a transaction that is sent twice is the same event twice, whatever the source.
As in the benchmark (Chintapalli et al., "Benchmarking Streaming Computation Engines", IPDPSW 2016) there are 100
campaigns of ten ads each, five types of ads and three of events, all equally frequent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ledgerops.ledger.plan import arrow, schemas
from ledgerops.ledger.plan.digest import hash_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CAMPAIGNS = 100
ADS = 1000
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")

SCHEMA = arrow.schema_of(schemas.AD_EVENTS)
_AD_IDS = arrow.texts([f"AD{number:04}" for number in range(1, ADS + 1)])
_AD_TYPES, _EVENT_TYPES = arrow.texts(AD_TYPES), arrow.texts(EVENT_TYPES)
_PAGE, _NOTHING = arrow.texts(["page-", ""])


def ad_events(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The ad events of a batch of transactions (columns of schemas.TRANSACTIONS), row by row, in schemas.AD_EVENTS."""
    bits = hash_values(batch.column("transaction_id"))
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
