"""Runs a Kafka broker on this machine to try things out: one process, without replicas or security.

It serves clients on 127.0.0.1 until Ctrl-C or SIGTERM. Its data stay in the folder, so the next start with that folder
has the same topics and records. Needs the jars that `ledgerops jars` fetches.

Exit code: 0 after Ctrl-C or SIGTERM, 1 when the broker stopped by itself, 2 when it could not start.

Examples:
    ledgerops broker
    ledgerops broker --port 9092 --folder runs/broker
"""

import argparse
import sys
from pathlib import Path

from ledgerops.cli.arg_types import port
from ledgerops.errors import UserError, writing_to

DEFAULT_PORT = 9092
DEFAULT_FOLDER = Path("runs/broker")
CHECK_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port, default=DEFAULT_PORT,
        help=f"port for clients (default {DEFAULT_PORT}; 0 takes any free one)")  # fmt: skip
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER",
        help=f"where the broker keeps its data and logs (default {DEFAULT_FOLDER})")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from ledgerops.common.shutdown import Stop
    from ledgerops.servers.kafka import Kafka
    from ledgerops.servers.process import port_problem

    if args.port and port_problem(args.port) is not None:
        raise UserError(f"port {args.port} is in use; give another --port, or 0 for any free one")
    stop = Stop()
    with stop.on_signals():
        print(f"starting Kafka in {args.folder} ...", file=sys.stderr, flush=True)
        with writing_to(args.folder), Kafka(args.folder, port=args.port or None) as kafka:
            stop.calm()
            print(f"Kafka is ready at {kafka.servers}; stop with Ctrl-C")
            print(f"next: ledgerops topics --bootstrap-servers {kafka.servers}", flush=True)
            while not stop.asked and kafka.pid is not None:
                stop.wait(CHECK_SECONDS)
            if not stop.asked:
                print(f"Kafka stopped by itself; see {kafka.log}", file=sys.stderr)
                return 1
            kafka.stop()
    print("stopped Kafka")
    return 0
