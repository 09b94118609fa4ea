"""Where a job's rows go.

Jobs do not know their sink: they say which columns identify a row (`upsert`), which column names its output (`route`),
and what is to be done with a batch before it is written (`on_batch`). The column of `route` says where a row goes and
is not part of what is written there.
"""

from ledgerops.ledger.sinks.delta import DeltaSink
from ledgerops.ledger.sinks.kafka import KafkaSink
from ledgerops.ledger.sinks.parquet import ParquetSink
from ledgerops.ledger.sinks.postgres import PostgresSink
from ledgerops.ledger.sinks.sink import Sink

__all__ = ["DeltaSink", "KafkaSink", "ParquetSink", "PostgresSink", "Sink"]
