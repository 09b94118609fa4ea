"""A run's folder as a perfect job would have left it, and ways to spoil it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, chunks
from ledgerops.ledger.plan.summary import Summary

PLAN = """
seed: 3
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 0.05}]
keys: {customers: 8, accounts: 9}
disorder: {late: {share: 0.1, low: 5, high: 50}}
duplicates: {share: 0.1, within: 10m}
poison: {share: 0.01}
"""
COUNT = 12_000  # records, in some three days


def rows_of(text=PLAN, count=COUNT):
    """The rows of a plan's first records, in chunks."""
    return [rows for _, rows in chunks(PlanStream(parse_plan(text), 0.0), count)]


def manifest_of(count=COUNT, text=PLAN, **changes):
    plan = parse_plan(text)
    summary = Summary.of(rows_of(text, count))
    facts = {"source": "plan", "plan": "mine", "digest": plan.digest, "table": "transactions", "topic": "transactions"}
    facts |= {"records": count, "summary": summary, "seed": 3, "origin": 0.0, "text": text}
    return Manifest(**{**facts, **changes})


def sent(once=False, count=COUNT, text=PLAN):
    """The transactions that were sent, in their order."""
    return pa.Table.from_batches([(each.where(each.first) if once else each).batch for each in rows_of(text, count)])


class Run:
    """`write` puts an output of a job there, in files named by Spark's log, with a stray one that is not."""

    def __init__(self, folder: Path, manifest=None):
        self.folder = folder
        (manifest or manifest_of()).write(folder / "manifest.json")

    def write(self, job, table, files=3):
        output = self.folder / "output" / job
        (output / "_spark_metadata").mkdir(parents=True, exist_ok=True)
        size = -(-table.num_rows // files) or 1
        for batch in range(files):
            name = f"part-{batch}.parquet"
            pq.write_table(table.slice(batch * size, size), output / name)
            entry = json.dumps({"path": f"file:///gone/{name}", "action": "add"})
            (output / "_spark_metadata" / str(batch)).write_text(f"v1\n{entry}")
        pq.write_table(table.slice(0, 5), output / "part-stray.parquet")
        return self


def without(table, *places):
    return pa.concat_tables(
        [
            table.slice(low + 1, high - low - 1)
            for low, high in zip((-1, *places), (*places, table.num_rows), strict=True)
        ]
    )


def again(table, *places):
    return pa.concat_tables([table, *(table.slice(place, 1) for place in places)])


def with_value(table, place, column, value):
    values = table[column].to_pylist()
    values[place] = value
    index = table.schema.get_field_index(column)
    return table.set_column(index, column, pa.array(values, table.schema.field(column).type))
