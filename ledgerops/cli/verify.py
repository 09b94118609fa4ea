"""Checks the output of jobs against what was sent: no row lost, repeated or changed, and all amounts conserved.

The manifest of `ledgerops load` says what was sent: --manifest, else RUN/manifest.json, else the manifest of the last
load next to the run, if the run reads where that was sent. For a replay, the file itself says it. The first line names
the file. Wait until the jobs have processed everything: rows that they have not read yet count as lost. The Kafka sink
may repeat rows: this is reported, and is an error with `--strict`.

Exit code: 0 all checks pass, 1 rows were lost, repeated or changed, 2 could not check.

Examples:
    ledgerops verify runs/kafka
    ledgerops verify runs/replay --data ../shared/data --json
    ledgerops verify --manifest runs/manifest.json --postgres postgresql://me@localhost:5432/ledger
    ledgerops verify --manifest runs/manifest.json --bootstrap-servers localhost:9092 --jobs split_transactions
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.cli.arg_types import seconds
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from ledgerops.ledger.verify.check import VerifyInput
    from ledgerops.ledger.verify.locate import Found
    from ledgerops.ledger.verify.result import JobCheck


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_folder", nargs="?", type=Path, metavar="RUN", help="folder of a run, such as runs/default")
    add("--manifest", type=Path, metavar="FILE", help="manifest of the load (default: see above)")
    add("--jobs", metavar="NAMES", help="check only these jobs, comma-separated")
    add("--data", type=Path, metavar="FOLDER", help="folder with transactions.csv (default $LEDGEROPS_DATA)")
    add("--bootstrap-servers", metavar="HOST:PORT", help="check outputs in the topics of these Kafka brokers")
    add("--kafka-config", type=Path, metavar="FILE", help="properties file of the Kafka client (security)")
    add("--topic-prefix", default="", metavar="PREFIX", help="prefix of every topic name")
    add("--postgres", metavar="URL", help="check outputs in the tables of this database")
    add("--lateness", type=seconds, metavar="TIME", help="allowed lateness of the jobs (default 1m)")
    add("--strict", action="store_true", help="treat repeated rows as an error, whatever the sink guarantees")
    add("--json", action="store_true", help="print one JSON document and nothing else")


def run(args: argparse.Namespace) -> int:
    from ledgerops.ledger.sources.csv_file import data_folder
    from ledgerops.ledger.verify.check import VerifyInput
    from ledgerops.ledger.verify.expectations import LATENESS_SECONDS
    from ledgerops.ledger.verify.locate import find_manifest
    from ledgerops.ledger.verify.result import lines

    data = args.data or data_folder()
    places = _places(args)
    manifest, file = find_manifest(args.run_folder, args.manifest, data)
    results = _check(places, VerifyInput(manifest, data, args.lateness or LATENESS_SECONDS, args.strict))
    checked = [result for result in results if result.verdict != "not checked"]
    if args.json:
        document = {"version": 1, "manifest": manifest.plan, "compared_with": str(file)}
        print(json.dumps({**document, "results": [vars(result) for result in results]}))
    else:
        print(f"compared with {file}")
        print("\n".join(lines(results)))
    if not checked:
        raise UserError("no job could be checked; see the reasons above")
    return 1 if any(result.verdict == "broken" for result in checked) else 0


def _places(args: argparse.Namespace) -> list[Found]:
    from ledgerops.ledger.verify import locate

    wanted = [name.strip() for name in (args.jobs or "").split(",") if name.strip()]
    if wanted:
        from ledgerops.ledger.jobs import find_job

        for name in wanted:
            find_job(name)
    found: list[Found] = []
    if args.bootstrap_servers:
        from ledgerops.common.kafka import read_client

        client = read_client(args.bootstrap_servers, args.kafka_config)
        found += locate.in_kafka(client, args.topic_prefix, wanted)
    if args.postgres:
        found += locate.in_postgres(args.postgres, wanted)
    if args.run_folder is not None and (not found or (args.run_folder / "output").is_dir()):
        found += locate.in_folder(args.run_folder)
    elif not found:
        raise UserError("no output given; give the folder of a run, --bootstrap-servers or --postgres")
    chosen = [place for place in found if not wanted or place[0] in wanted]
    if missing := sorted(set(wanted) - {name for name, _ in chosen}):
        raise UserError(f"no output of {', '.join(missing)} found")
    return chosen


def _check(places: list[Found], case: VerifyInput) -> list[JobCheck]:
    """Shows the job that is being checked and how many of its rows are, on stderr if that is a terminal."""
    from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from ledgerops.cli.progress import bar
    from ledgerops.ledger.verify.check import check

    shown = bar(TextColumn("{task.fields[rows]:,} rows"), MofNCompleteColumn(), TimeElapsedColumn())
    task = shown.add_task("", total=len(places), rows=0)

    def count(rows: int) -> None:
        shown.update(task, rows=shown.tasks[0].fields["rows"] + rows)

    results = []
    with shown:
        for done, (job, open_output) in enumerate(places):
            shown.update(task, completed=done, description=job, rows=0)
            results.append(check(job, open_output(), case, count))
    return results
