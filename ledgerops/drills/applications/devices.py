"""Reads devices through a data source written in Python, which asks a gateway for its newest reading."""

import json
import os
import time
from pathlib import Path

import outside
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

spark, opts = outside.application("devices")


def gateway():
    """The seconds that the gateway takes for an answer. The process that asks it has no module of ours."""
    try:
        return json.loads(Path(os.environ["OUTSIDE"]).read_text("utf-8")).get("gateway", 0.0)
    except (OSError, ValueError, KeyError):
        return 0.0


class Readings(DataSourceStreamReader):
    def __init__(self, rate, began):
        self.rate, self.began = int(rate), float(began)

    def initialOffset(self):
        return {"reading": 0}

    def latestOffset(self):
        time.sleep(gateway())
        return {"reading": int((time.time() - self.began) * self.rate)}

    def partitions(self, start, end):
        return [InputPartition((start["reading"], end["reading"]))]

    def read(self, partition):
        first, last = partition.value
        for number in range(first, last):
            yield (str(number), str(number % 50), float(number % 997))


class Devices(DataSource):
    @classmethod
    def name(cls):
        return "devices"

    def schema(self):
        return "id STRING, key STRING, amount DOUBLE"

    def streamReader(self, schema):
        return Readings(self.options["rate"], self.options["began"])


spark.dataSource.register(Devices)
rows = spark.readStream.format("devices").option("rate", opts.rate).option("began", repr(time.time())).load()
rows = rows.where("amount > 1")
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.foreachBatch(outside.deliver), opts))
