"""Creates the ledger's topics on a Kafka broker, and loads customers and accounts into Kafka and Postgres.

Safe to run at any time: existing topics are left alone, and loading again gives the same content. Reference data come
from customers.csv and accounts.csv in a folder, or are generated for the ids of a load plan.

Exit code: 0 all topics exist, 1 --check found a missing topic, 2 a topic has the wrong settings or the command failed.

Examples:
    ledgerops topics --bootstrap-servers 127.0.0.1:9092
    ledgerops topics --bootstrap-servers kafka:9093 --kafka-config client.properties --check
    ledgerops topics --bootstrap-servers 127.0.0.1:9092 --plan default --postgres postgresql://ledger@127.0.0.1/ledger
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.cli.arg_types import whole
from ledgerops.common.format import counted
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from ledgerops.common.kafka import KafkaClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--bootstrap-servers", required=True, metavar="HOST:PORT", help="Kafka brokers, comma-separated")
    add("--kafka-config", type=Path, metavar="FILE", help="properties file of the Kafka client (security)")
    add("--prefix", default="", help="prefix of every topic name")
    add("--replication", type=whole, default=-1, metavar="N",
        help="replication factor of new topics (default: the broker's)")  # fmt: skip
    add("--postgres", metavar="URL", help="also load the tables customers and accounts of this database")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="FOLDER",
        help="load customers.csv and accounts.csv from this folder (default $LEDGEROPS_DATA)")  # fmt: skip
    source.add_argument("--plan", metavar="NAME|PATH", help="load generated customers and accounts for this load plan")
    add("--check", action="store_true", help="only report which topics exist; create and load nothing")


def run(args: argparse.Namespace) -> int:
    from ledgerops.common.kafka import read_client
    from ledgerops.ledger.postgres import describe_url
    from ledgerops.ledger.sources import topics
    from ledgerops.ledger.sources.csv_file import data_folder

    client = read_client(args.bootstrap_servers, args.kafka_config)
    if args.check:
        return _check(client, args.prefix)
    data = args.data or (None if args.plan else data_folder())
    if args.postgres and not (data or args.plan):
        raise UserError("nothing to load into Postgres; give --data FOLDER or --plan PLAN")
    tables = _tables(data, args.plan) if data or args.plan else {}
    if args.postgres:
        describe_url(args.postgres)  # a bad URL is refused before anything is made
    made = topics.create(client, args.prefix, args.replication)
    there = len(topics.TOPICS) - len(made)
    print(f"topics at {client.servers}: {len(made)} created, {there} already present")
    if tables:
        _load(client, args.prefix, args.postgres, tables)
    return 0


def _check(client: KafkaClient, prefix: str) -> int:
    from ledgerops.ledger.sources import topics

    missing = topics.missing_topics(client, prefix)
    for name, topic in topics.named(prefix).items():
        state = "missing" if name in missing else "present"
        print(f"{state:8} {name}  {counted(topic.partitions, 'partition')}, {topic.holds}")
    return 1 if missing else 0


def _tables(data: Path | None, plan: str | None) -> dict[str, Any]:
    from ledgerops.ledger.plan.plan import load_plan
    from ledgerops.ledger.sources import reference_load
    from ledgerops.ledger.sources.csv_file import rejected

    if data is None:
        assert plan is not None
        return reference_load.generate_tables(load_plan(plan))
    with tempfile.TemporaryDirectory() as work:
        tables = reference_load.read_tables(data, Path(work))
        refused = rejected(Path(work))
    for each in refused[:3]:
        print(f"rejected {data / str(each['file'])}:{each['line']}: {each['reason']}", file=sys.stderr)
    if len(refused) > 3:
        print(f"rejected {counted(len(refused) - 3, 'more row')}", file=sys.stderr)
    return tables


def _load(client: KafkaClient, prefix: str, postgres: str | None, tables: dict[str, Any]) -> None:
    from rich.progress import MofNCompleteColumn

    from ledgerops.cli.progress import bar
    from ledgerops.ledger.postgres import describe_url
    from ledgerops.ledger.sources import reference_load

    what = " and ".join(f"{table.num_rows:,} {name}" for name, table in tables.items())
    total = sum(table.num_rows for table in tables.values())
    with bar(MofNCompleteColumn()) as shown:
        task = shown.add_task("loading into Kafka", total=total)
        reference_load.to_kafka(client, prefix, tables, lambda rows: shown.advance(task, rows))
    print(f"loaded {what} into {client.servers}")
    if postgres:
        with bar(MofNCompleteColumn()) as shown:
            task = shown.add_task("loading into Postgres", total=total)
            reference_load.to_postgres(postgres, tables, lambda rows: shown.advance(task, rows))
        print(f"loaded {what} into {describe_url(postgres)}")
