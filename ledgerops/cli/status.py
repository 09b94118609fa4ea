"""Shows a live view of a running exporter: rates, backlog, batch phases, state and diagnosis of every query.

When the output is not a terminal, prints one line per query every few seconds. Stop it with Ctrl-C.

Examples:
    ledgerops status
    ledgerops status http://driver.example:9464 --once
    ledgerops status --json | python -m json.tool
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ledgerops.analysis.inputs import is_exporter
from ledgerops.cli.input_args import add_source, place
from ledgerops.common.http import ask
from ledgerops.common.shutdown import Stop
from ledgerops.errors import UserError, server_reason
from ledgerops.model.recording import load_json

TIMEOUT_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_source(parser, "an exporter's URL or HOST:PORT")
    add("--once", action="store_true", help="show the view once and exit")
    add("--json", action="store_true", help="print the status document as JSON and exit")


def run(args: argparse.Namespace) -> int:
    url = place(args).rstrip("/")
    document = fetch(url)
    if args.json:
        print(json.dumps(document))
        return 0
    from rich.console import Console

    from ledgerops.cli import live_view

    console = Console()
    if args.once:
        with _of_an_exporter(url):
            if live_view.is_live(console):
                console.print(live_view.LiveView(document, f"ledgerops  {url}/"))
            else:
                live_view.print_plain(document, console)
        return 0
    away_since: float | None = None

    def newest() -> dict[str, Any]:
        """The newest document; while the exporter is away, the last one."""
        nonlocal document, away_since
        try:
            document, away_since = fetch(url), None
        except UserError:
            away_since = away_since or time.time()
        return document

    def title() -> str:
        if away_since is None:
            return f"ledgerops  {url}/"
        return f"ledgerops  {url}/  not reachable since {time.strftime('%H:%M:%S', time.localtime(away_since))}"

    stop = Stop()
    with stop.on_signals(), _of_an_exporter(url):
        live_view.watch(newest, title, stop.wait, console, contact=title)
    return 0


def fetch(url: str) -> dict[str, Any]:
    """The status document of an exporter. Raises UserError when there is none."""
    if not is_exporter(url):
        raise UserError(f"{url} is not the address of an exporter; for a recording, run ledgerops diagnose {url}")
    try:
        document = load_json(ask(f"{url}/status", TIMEOUT_SECONDS)[0])
    except (OSError, ValueError) as error:
        said = server_reason(error)
        raise UserError(f"cannot reach an exporter at {url}: {said}; is the application running?") from None
    if not isinstance(document, dict) or not isinstance(document.get("queries"), list):
        raise _no_exporter(url)
    return document


@contextmanager
def _of_an_exporter(url: str) -> Iterator[None]:
    """Raises UserError for a document whose parts are not what an exporter writes there."""
    try:
        yield
    except (TypeError, LookupError, AttributeError, ValueError, OverflowError) as error:
        raise _no_exporter(url) from error


def _no_exporter(url: str) -> UserError:
    return UserError(f"{url}/status did not return a status document; is this a ledgerops exporter?")
