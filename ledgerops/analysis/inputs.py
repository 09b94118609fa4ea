"""Where a diagnosis reads from: an exporter's /recording, a recording file or folder, a Spark event log."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from ledgerops.analysis.event_log_files import is_compacted, is_event_log, log_files
from ledgerops.config import FRESHNESS_HEADER, MUTE_HEADER
from ledgerops.errors import UserError, server_reason
from ledgerops.model import recording
from ledgerops.model.records import Observation

PAGES = ("/recording", "/metrics", "/status", "/diagnosis")


class Source(NamedTuple):
    """`now` is the exporter's clock where there is one: what was recorded ends with its last observation. `mute` and
    `freshness` are its settings `mute` and `freshness_objective_seconds`; an older exporter tells only the first."""

    name: str
    observations: Iterator[Observation]
    now: float | None
    mute: tuple[str, ...] = ()
    freshness: float | None = None


def is_exporter(place: str) -> bool:
    """Whether a place is the address of an exporter (http or https), and not a file or folder."""
    return place.startswith(("http://", "https://"))


def open_source(place: str, seconds: float | None = None) -> Source:
    """Raises UserError at once, or while it is read, when the place cannot be read. An exporter is asked for the latest
    `seconds` only, where they are given."""
    if is_exporter(place):
        return _exporter(place.rstrip("/"), seconds)
    path = Path(unquote(urlsplit(place).path) if place.startswith("file:/") else place)
    if not path.exists():
        raise UserError(f"cannot read {place}: {_missing(place)}")
    if path.is_file() and not path.stat().st_size:
        raise UserError(f"cannot read {place}: it is empty; nothing was written to it, or it was not copied whole")
    if not recording.is_packed(path) and is_event_log(path):
        from ledgerops.analysis import event_log  # a quarter of the time that all other modules take to import

        if is_compacted(log_files(path)):
            _say(f"{place} was compacted by Spark: of its beginning neither tasks nor lost executors are known")
        return Source(place, event_log.read(path), None)
    if others := recording.others_in(path):
        _say(f"other applications recorded there, too; diagnose {', '.join(map(str, others))}")
    return Source(place, recording.read(path), None)


@cache
def _say(text: str) -> None:
    """Once in a process: a place is read again and again."""
    print(f"ledgerops: {text}", file=sys.stderr)


def _missing(place: str) -> str:
    """Why there is nothing at a place that is no file, and what to give instead."""
    if "://" in place:
        return "not on this machine; copy it here first, for example with `hdfs dfs -get` or `aws s3 cp --recursive`"
    if place.rpartition(":")[2].isdecimal() or place == "localhost":
        return f"no such file; for an exporter give its URL, such as http://127.0.0.1:{place.rpartition(':')[2]}"
    return "no such file or folder; give a recording, a Spark event log or a URL"


def _exporter(url: str, seconds: float | None) -> Source:
    from ledgerops.common.http import ask  # with ssl and urllib, which a file does not need

    try:
        parts = urlsplit(url)  # as Prometheus and a browser have the address
        page = next((each for each in PAGES if parts.path.endswith(each)), "")
        parts = parts._replace(path=parts.path.removesuffix(page))
        address = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/recording"))
        url = urlunsplit(parts._replace(query=""))
        if seconds is not None:
            address += f"{'&' if urlsplit(address).query else '?'}since={seconds:.3f}"
        body, headers = ask(address)
        lines, date = body.splitlines(keepends=True), headers.get("Date")
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot reach an exporter at {url}: {server_reason(error)}; start the application, or give a recording"
        ) from None
    mute = tuple(unquote(entry) for entry in headers.get(MUTE_HEADER, "").split(",") if entry)
    freshness = _positive(headers.get(FRESHNESS_HEADER))
    return Source(url, recording.read_lines(iter(lines), address), _instant(date), mute, freshness)


def _positive(number: str | None) -> float | None:
    try:
        value = float(number or 0.0)
    except ValueError:
        return None
    return value if value > 0.0 else None


def _instant(date: str | None) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):
        return None
