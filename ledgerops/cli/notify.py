"""Receives alerts from Alertmanager, adds the diagnosis of the query's driver, and sends a message of at most twelve
lines to chat, mail or a webhook.

Point Alertmanager's webhook at http://HOST:9465/alerts, as alerts/alertmanager.yml does. Senders are apprise URLs or
http(s) webhooks. They contain secrets: pass them with `--senders FILE` (one URL per line) or in the variable
LEDGEROPS_NOTIFY_SENDERS rather than on the command line. An accepted alert is kept on disk until every sender has
delivered it or it has expired. Files with secrets and certificates are read again when they change; that of --senders
is read at the start only.

GET /metrics has deliveries, failures and the age of the oldest pending delivery, by sender. /healthz needs no
credentials.

Examples:
    ledgerops notify --senders senders.txt --prometheus http://prometheus:9090
    ledgerops notify --send https://chat.example.com/hook --exporter http://driver:9464
    ledgerops notify --senders senders.txt --exporter http://driver:9464 --test daily_counts
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.cli.arg_types import port
from ledgerops.cli.streams import print_note
from ledgerops.errors import UserError
from ledgerops.input_files import text_of

if TYPE_CHECKING:
    from ledgerops.common.credentials import Secrets
    from ledgerops.notify.lookup import Lookup
    from ledgerops.notify.senders import Sender

DEFAULT_PORT = 9465
SENDERS, TOKEN = "LEDGEROPS_NOTIFY_SENDERS", "LEDGEROPS_NOTIFY_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--send", action="append", default=[], metavar="URL", help="URL to send messages to; repeatable")
    add("--senders", type=Path, metavar="FILE", help="file with one such URL per line")
    add("--exporter", action="append", default=[], metavar="URL", help="exporter to ask for a diagnosis; repeatable")
    add("--prometheus", metavar="URL", help="Prometheus server, used to find the driver that runs a query")
    add("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add("--port", type=port, default=DEFAULT_PORT,
        help=f"port to listen on (default {DEFAULT_PORT}; 0 for any free port)")  # fmt: skip
    add("--exporter-scheme", choices=("http", "https"), default="http",
        help="scheme of drivers found through Prometheus (default http)")  # fmt: skip
    add("--token-file", metavar="FILE",
        help=f"file with the bearer token that Alertmanager must send (default: the variable {TOKEN})")  # fmt: skip
    add("--tls-certificate", metavar="FILE", help="PEM file with the server's certificate; turns TLS on")
    add("--tls-key", metavar="FILE", help="PEM file with its private key")
    add("--tls-client-ca", metavar="FILE",
        help="PEM file with the CA of client certificates, which are then required")  # fmt: skip
    for server in ("exporter", "prometheus"):
        name = "exporters" if server == "exporter" else "Prometheus"
        add(f"--{server}-token-file", metavar="FILE", help=f"file with the bearer token to send to {name}")
        add(f"--{server}-user", metavar="NAME", help=f"user name to send to {name}")
        add(f"--{server}-password-file", metavar="FILE", help="file with the password of that user")
    add("--client-certificate", metavar="FILE",
        help="PEM file with the client certificate for exporters and Prometheus")  # fmt: skip
    add("--client-key", metavar="FILE", help="PEM file with its private key")
    add(
        "--token-host",
        action="append",
        default=[],
        metavar="PATTERN",
        help="also send the exporters' credentials to hosts like this one, such as *.spark.svc; repeatable",
    )
    add("--queue", type=Path, default=Path("notify.db"), metavar="FILE", help="file of the queue (default notify.db)")
    add("--test", metavar="QUERY", help="send a test alert about this query and exit")


def run(args: argparse.Namespace) -> int:
    from ledgerops.common.http import check_address, opener
    from ledgerops.notify.lookup import Lookup
    from ledgerops.notify.senders import open_senders

    senders = open_senders([*args.send, *_listed(args.senders)])
    if not senders:
        raise UserError(f"no sender configured; give --send URL, --senders FILE or the variable {SENDERS}")
    for address in (*args.exporter, *([args.prometheus] if args.prometheus else [])):
        check_address(address, "--exporter-user or --prometheus-user with a password file")
    opener("", certificate=args.client_certificate, key=args.client_key)  # refused now, not at the first alert
    lookup = Lookup(
        exporters=args.exporter,
        prometheus=args.prometheus,
        secrets=_secrets(args, "exporter"),
        prometheus_secrets=_secrets(args, "prometheus"),
        certificate=args.client_certificate,
        key=args.client_key,
        scheme=args.exporter_scheme,
        token_hosts=args.token_host,
    )
    if args.test:
        return _test(args.test, lookup, senders)
    return _serve(args, lookup, senders)


def _secrets(args: argparse.Namespace, server: str) -> Secrets:
    """The credentials for a kind of server. Raises UserError now, and not at the first alert."""
    from ledgerops.common.credentials import Secrets

    token_file, user, password_file = (
        getattr(args, f"{server}_{part}") for part in ("token_file", "user", "password_file")
    )
    if bool(user) != bool(password_file):
        raise UserError(f"--{server}-user and --{server}-password-file belong together: give both or neither")
    secrets = Secrets(token_file=token_file, user=user, password_file=password_file)
    secrets.headers()
    return secrets


def _serve(args: argparse.Namespace, lookup: Lookup, senders: Sequence[Sender]) -> int:
    from ledgerops.common.http_access import Rules
    from ledgerops.common.shutdown import Stop
    from ledgerops.notify.service import Service
    from ledgerops.notify.spool import Spool

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if args.tls_key and not args.tls_certificate:
        raise UserError("--tls-key needs --tls-certificate")
    if args.tls_client_ca and not args.tls_certificate:
        raise UserError("--tls-client-ca needs --tls-certificate: client certificates need TLS")
    rules = Rules(
        host=args.host,
        token_file=args.token_file,
        token=None if args.token_file else os.environ.get(TOKEN) or None,
        certificate=args.tls_certificate,
        key=args.tls_key,
        client_ca=args.tls_client_ca,
    )
    spool = Spool(args.queue, [sender.name for sender in senders])
    try:
        service = Service(spool, lookup, senders, rules=rules, port=args.port)
    except UserError:
        spool.close()
        raise
    stop = Stop()
    with stop.on_signals():
        stop.calm()  # deliveries under way are finished, and noted
        service.start()
        print_note(f"listening at {service.url}/alerts; press Ctrl-C to stop")
        while not stop.asked:
            stop.wait(1.0)
    left = service.waiting()
    service.close()
    print_note(f"stopped; {left} undelivered incidents remain in {args.queue}")
    return 0


def _test(query: str, lookup: Lookup, senders: Sequence[Sender]) -> int:
    """Sends at once, past the queue, so that what fails is shown here."""
    import time

    from ledgerops.notify.incident import Firing, Incident
    from ledgerops.notify.message import compose_checked

    now = time.time()
    alert = Firing(
        "LedgerTest", "firing", "warning", "Test of ledgerops notify.", "No action is needed.",
        now, None, "test", None, None, labels={"query": query},
    )  # fmt: skip
    found = lookup.diagnose(query, "")
    incident = Incident("test", "firing", "", query, (alert,), None)
    known = {query: found.diagnosis} if found.diagnosis is not None else {}
    message, _ = compose_checked(incident, known, now, found.trouble)
    print(message.text)
    failed = 0
    for sender in senders:
        try:
            sender.send(message)
            print(f"sent: {sender.name}")
        except Exception as error:
            failed += 1
            print(f"not sent: {sender.name}: {error}")
    return 1 if failed else 0


def _listed(file: Path | None) -> list[str]:
    """The senders in a file, else those in the variable. Raises UserError."""
    lines = os.environ.get(SENDERS, "").split() if file is None else text_of(file).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
