"""What the jobs of a run ask besides Spark, opened before they start: given by URL, or a local one of our own."""

import socket
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from ledgerops.common.http_access import is_loopback
from ledgerops.errors import UserError, os_reason
from ledgerops.ledger.jobs.account_lookup import TABLE
from ledgerops.ledger.jobs.databases import check_table, sqlite_path
from ledgerops.ledger.plan.generate import account_ids
from ledgerops.ledger.run.cluster import is_remote
from ledgerops.ledger.run.source import RunSource
from ledgerops.ledger.sources.accounts import url_of, write_accounts
from ledgerops.ledger.sources.csv_file import DATA, data_folder
from ledgerops.ledger.sources.customers import generate_accounts, read_accounts
from ledgerops.servers.risk import RiskService

CONNECT_SECONDS = 5.0


def open_services(
    wanted: Collection[str], given: Mapping[str, str], work_dir: Path, source: RunSource, opened: ExitStack,
    master: str | None = None,
) -> dict[str, str]:  # fmt: skip
    """The URLs of the wanted services: those `given`, for the others an SQLite file of accounts, a risk service.

    Accounts are the bank's when its files are replayed, else invented ones for all that the plan may name; the file is
    made in `work_dir`. A risk service ends with `opened`. Local services can be reached from this machine only: for
    executors elsewhere, give URLs. Raises UserError when one does not answer or cannot be made.
    """
    urls: dict[str, str] = {}
    if "accounts" in wanted:
        urls["accounts"] = (
            _given_accounts(given["accounts"]) if "accounts" in given else _local_accounts(work_dir, source)
        )
    if "risk" in wanted and "risk" in given:
        _check_risk(given["risk"])
        urls["risk"] = given["risk"]
    elif "risk" in wanted and is_remote(master) and not _is_here(urlsplit(master or "").hostname or ""):
        raise UserError(f"executors of {master} cannot reach a risk service of this machine: give --risk-url")
    elif "risk" in wanted:
        urls["risk"] = opened.enter_context(RiskService()).url
    return urls


def _is_here(host: str) -> bool:
    return is_loopback(host) or host in (socket.gethostname().lower(), socket.getfqdn().lower())


def _given_accounts(url: str) -> str:
    if path := sqlite_path(url):
        url = url_of(Path(path))  # workers have a working directory of their own
    check_table(url, TABLE)
    return url


def _local_accounts(work_dir: Path, source: RunSource) -> str:
    data = source.data or (data_folder() if source.plan is None else None)
    if data is not None:
        accounts = read_accounts(data, work_dir)
    elif source.plan is not None:
        accounts = generate_accounts(account_ids(source.plan.all_keys), source.plan.seed)
    else:
        raise UserError(
            f"no accounts to look up: give --accounts-url, or set {DATA} to the folder that holds accounts.csv"
        )
    write_accounts(accounts, file := work_dir / "accounts.sqlite")
    return url_of(file)


def _check_risk(url: str) -> None:
    try:
        address = urlsplit(url)
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        port = 0
    if not port or address.scheme not in ("http", "https") or not address.hostname:
        raise UserError("the URL of the risk service must be http://host:port or https://host:port")
    try:
        socket.create_connection((address.hostname, port), CONNECT_SECONDS).close()
    except OSError as error:
        reason = os_reason(error)
        raise UserError(
            f"cannot reach the risk service at {address.hostname}:{port}: {reason}; "
            "start it, or omit --risk-url to use a local one"
        ) from None
