"""The options of a load under locust, and the request that they make."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import Any

from ledgerops.cli.arg_types import factor, port, whole
from ledgerops.cli.load import LATE_BUDGET, TABLES, span
from ledgerops.errors import UserError
from ledgerops.ledger.plan.plan import PLANS
from ledgerops.load.generator.request import LoadRequest, read_request

# of the machine that locust runs on, so not shown on its web page
LOCAL_OPTIONS = ("--kafka-config", "--to", "--data", "--samples", "--manifest", "--metrics-port")


def add_options(parser: Any, **_: Any) -> None:
    """Adds the options of `ledgerops load`. The web interface sends them as text, so `read` parses them."""
    group = parser.add_argument_group("ledgerops", "what to send, and where")

    def option(name: str, help: str, **more: Any) -> None:
        action = group.add_argument(
            name, help=help, env_var=f"LEDGEROPS_{name.strip('-').replace('-', '_').upper()}", **more
        )
        # as locust's own add_argument does, which groups do not have
        action.include_in_web_ui = name not in LOCAL_OPTIONS
        action.is_secret = action.is_required = action.is_multiple = False

    option("--plan", f"a load plan's file or name ({', '.join(PLANS)}), or replay", default="default")
    option("--bootstrap-servers", "send to this Kafka cluster: HOST:PORT", default="")
    option("--kafka-config", "properties of the Kafka client (security)", default="")
    option("--topic-prefix", "prefix of the topic name", default="")
    option("--to", "write JSON lines to FOLDER/TABLE instead of Kafka", default="")
    option("--table", "what to send", choices=TABLES, default="transactions")
    option("--data", "folder of transactions.csv, for replay", default="")
    option("--records", "send the first N records of the stream", default="")
    option("--duration", "send what is due within this time: 90, 2m, 1h (or --run-time)", default="")
    option("--rate-scale", "multiply every rate by this", default="")
    option("--at-once", "send as fast as the target accepts records", action="store_true", default=False)
    option("--late-budget", "INVALID if the p99 of lateness exceeds this", default=f"{LATE_BUDGET * 1000:g}ms")
    option("--samples", "write the times of some records to this file, on each worker", default="")
    option("--sample-every", "sample every N-th record (default: about 100 per second)", default="")
    option("--manifest", "file for the manifest (default runs/manifest.json)", default="")
    option("--metrics-port", "serve the load's metrics on this port, at the address of the setting host", default="")


def read(options: Namespace) -> tuple[LoadRequest, float]:
    """The request, and the lateness budget in seconds. Raises UserError for an invalid option."""
    given = dict(vars(options))
    kinds = {"records": whole, "duration": span, "rate_scale": factor, "late_budget": span, "sample_every": whole}
    for name, kind in kinds.items():
        given[name] = _value(name, kind, given.get(name))
    for name in ("kafka_config", "to", "data", "samples"):
        given[name] = Path(given[name]) if given.get(name) else None
    given["bootstrap_servers"] = given.get("bootstrap_servers") or None
    run_time = given.get("run_time")
    if run_time:
        given["duration"] = min(float(run_time), given["duration"] or float("inf"))
    return read_request(Namespace(**given)), given["late_budget"] or LATE_BUDGET


def metrics_port(options: Namespace) -> int | None:
    """The port of --metrics-port, None where it is not given. Raises UserError for an invalid one."""
    return _value("metrics_port", port, getattr(options, "metrics_port", ""))


def _value(name: str, kind: Any, text: Any) -> Any:
    if text is None or text == "":
        return None
    try:
        return kind(str(text))
    except argparse.ArgumentTypeError as error:
        raise UserError(f"--{name.replace('_', '-')}: {error}") from None
