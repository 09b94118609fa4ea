"""The flags of `ledgerops run` that say where rows come from and where they go."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.cli.arg_types import whole
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from ledgerops.common.kafka import KafkaClient
    from ledgerops.ledger.run.sink import RunSink
    from ledgerops.ledger.run.source import RunSource

POSTGRES = "LEDGEROPS_POSTGRES"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--source",
        choices=("embedded", "replay", "kafka", "files"),
        help="where rows come from (default: replay of transactions.csv when LEDGEROPS_DATA is set, else embedded)",
    )
    add("--bootstrap-servers", metavar="HOST:PORT", help="Kafka brokers, for --source kafka and --sink kafka")
    add(
        "--kafka-config",
        type=Path,
        metavar="FILE",
        help="properties file of the Kafka client, such as security.protocol and sasl.password (librdkafka names)",
    )
    add("--topic-prefix", metavar="TEXT", help="prefix of every topic name")
    add("--start", metavar="WHEN",
        help="where a job without a checkpoint starts reading in Kafka: earliest (default), latest, or a record time "
        "like 2024-03-01T10:00:00Z")  # fmt: skip
    add("--allow-data-loss", action="store_true",
        help="continue when Kafka has deleted unread records; without it the query fails")  # fmt: skip
    add("--landing", type=Path, metavar="FOLDER", help="for --source files: JSON lines in FOLDER/TABLE/*.jsonl")
    add("--max-files-per-trigger", type=whole, metavar="FILES",
        help="maximum files per batch from a landing folder (default: no limit; 100 after a restart)")  # fmt: skip
    add("--sink", choices=("parquet", "delta", "kafka", "postgres"), default="parquet",
        help="where jobs write (default parquet); with delta silver (masked_transactions) reads the table of bronze "
        "(landed_transactions) and gold (daily_counts) that of silver, where they run together")  # fmt: skip
    add("--postgres", metavar="URL",
        help=f"postgresql://user:password@host:port/database for --sink postgres (default ${POSTGRES}; the "
        "variable keeps the password out of process lists)")  # fmt: skip


def endpoints(args: argparse.Namespace) -> tuple[RunSource, RunSink]:
    """What to read and where to write. Raises UserError for flags that do not fit together, or name nothing."""
    from ledgerops.ledger.run.sink import RunSink
    from ledgerops.ledger.run.source import choose_source
    from ledgerops.ledger.sinks import PostgresSink
    from ledgerops.ledger.sources.kafka import Topics, read_start
    from ledgerops.ledger.sources.topics import named

    _check(args)
    client = _client(args)
    named(args.topic_prefix or "")  # raises UserError for a prefix that no topic may begin with
    topics = None
    if client is not None and args.source == "kafka":
        start = read_start(args.start or "earliest")
        topics = Topics(client, args.topic_prefix or "", start, args.allow_data_loss)
    source = choose_source(args.source, args.plan, args.rate_scale, args.rate, os.environ, topics, args.landing)
    if args.until_caught_up and source.kind == "embedded":
        raise UserError("--until-caught-up cannot be used with the embedded source, which never ends; use --duration")
    url = ""
    if args.sink == "postgres":
        url = args.postgres or os.environ.get(POSTGRES, "")
        if not url:
            raise UserError(f"--sink postgres needs a database: add --postgres URL, or set {POSTGRES}")
        PostgresSink(url)  # raises UserError for an URL that is none
    return source, RunSink(args.sink, client if args.sink == "kafka" else None, args.topic_prefix or "", url)


def _client(args: argparse.Namespace) -> KafkaClient | None:
    from ledgerops.common.kafka import read_client

    if args.bootstrap_servers is not None:
        return read_client(args.bootstrap_servers, args.kafka_config)
    if args.sink == "kafka":
        raise UserError("--sink kafka needs --bootstrap-servers HOST:PORT")
    return None


def _check(args: argparse.Namespace) -> None:
    """Raises UserError for flags of another source or sink, which would have no effect."""
    of_kafka = (args.source == "kafka", "--source kafka")
    of_kafka_or_sink = ("kafka" in (args.source, args.sink), "--source kafka or --sink kafka")
    of_files = (args.source == "files", "--source files")
    else_rows = f"{of_files[1]}; for other sources use --max-rows-per-trigger"
    for option, value, (fits, needed) in (
        ("--bootstrap-servers", args.bootstrap_servers, of_kafka_or_sink),
        ("--kafka-config", args.kafka_config, of_kafka_or_sink),
        ("--topic-prefix", args.topic_prefix, of_kafka_or_sink),
        ("--start", args.start, of_kafka),
        ("--allow-data-loss", args.allow_data_loss or None, of_kafka),
        ("--landing", args.landing, of_files),
        ("--max-files-per-trigger", args.max_files_per_trigger, (of_files[0], else_rows)),
        ("--postgres", args.postgres, (args.sink == "postgres", "--sink postgres")),
    ):
        if value is not None and not fits:
            raise UserError(f"{option} needs {needed}")
    if args.source == "files" and args.max_rows_per_trigger is not None:
        raise UserError(
            "--max-rows-per-trigger cannot be used with --source files, whose number of rows is not known; "
            "use --max-files-per-trigger"
        )
