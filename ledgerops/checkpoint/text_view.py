"""The state documents as text for a terminal: bars of rows by partition, growth as a sparkline, top keys."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ledgerops.common.format import UNKNOWN, clean, count, counted, ratio, short_path, size
from ledgerops.common.terminal import BLUE, ORANGE, SKY, sparkline

Document = Mapping[str, Any]
MAX_PARTITIONS = 12  # shown, the largest; a state of 200 partitions would fill several screens
MIN_SKEW_RATIO = 2.0  # as in the rule source-partition-skew: one partition does twice the work of the median
PROVIDERS = {"rocksdb": "RocksDB", "hdfs": "HDFS-backed store"}
KINDS = {
    "store": "store", "side": "side of a join", "value": "value state", "list": "list state", "map": "map state",
    "timers": "timers",
}  # fmt: skip


class StateText:
    """One checkpoint's document."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines(options.max_width):
            line.truncate(options.max_width, overflow="ellipsis")
            line.no_wrap = True
            yield line

    def _lines(self, width: int) -> Iterator[Text]:
        document, kept = self.document, self.document["kept"]
        store = PROVIDERS.get(document["provider"], document["provider"])
        yield Text(clean(short_path(Path(document["checkpoint"]))), style="bold")
        yield Text(f"batch {document['batch']}; keeps batches {kept['first']} to {kept['last']}; {store}")
        for operator in document["operators"]:
            yield Text()
            yield from _operator(operator, width)


def _operator(operator: Document, width: int) -> Iterator[Text]:
    layout = "" if operator["format"] is None else f", format {operator['format']}"
    rows = "" if operator["rows"] is None else f"{operator['rows']:,} rows, "
    yield Text.assemble(
        f"operator {operator['operator']}  ",
        (clean(operator["name"]), "bold"),
        f"  {counted(operator['partitions'], 'partition')}{layout}",
    )
    yield from _files(operator, rows)
    for store in operator["stores"]:
        yield Text()
        yield from _store(store, operator, width)


def _files(operator: Document, rows: str) -> Iterator[Text]:
    """How old the snapshots are: what a restart replays."""
    ages = [file["snapshot_age"] for file in operator["files"]]
    whole, changes = (sum(file[part] for file in operator["files"]) for part in ("snapshot_bytes", "change_bytes"))
    known = [age for age in ages if age is not None]
    if not known:
        age = "no snapshot yet: a restart replays every change"
    elif len(known) < len(ages):
        age = f"{len(ages) - len(known)} of {len(ages)} stores without a snapshot yet"
    else:
        age = f"oldest snapshot {counted(max(known), 'batch', 'batches')} old"
    yield Text(f"  {rows}{size(operator['bytes'])} of files (snapshots {size(whole)}, changes {size(changes)})")
    yield Text(f"  {age}", style="dim")


def _store(store: Document, operator: Document, width: int) -> Iterator[Text]:
    kind = KINDS[store["kind"]] + (", with TTL" if store["ttl"] else "")
    keys = "" if not store["keys"] else f" of {counted(store['keys'], 'key')}"
    uneven = store["skew"] is not None and store["skew"] > MIN_SKEW_RATIO
    parts: list[str | tuple[str, str]] = ["  ", (clean(store["store"]), "bold"), f"  {kind}; "]
    parts.append(f"{counted(store['rows'], 'row')}{keys}")
    if store["skew"] is not None:
        parts += ["; skew ", (ratio(store["skew"]), f"bold {ORANGE}" if uneven else "")]
    yield Text.assemble(*parts)
    if not store["counted"] and store["kind"] == "store":
        return
    for part in ("key", "value"):
        columns = ", ".join(f"{column['name']} {column['type']}" for column in store[part])
        yield from _folded(part, clean(columns), width, "dim")
    if store["timers"]:
        yield Text(f"    first  {store['timers']['first']}   last {store['timers']['last']}")
    if store["rows"]:
        yield from _bars(store, operator, width)
    if store["growth"]:
        yield _growth(store["growth"], width)
    if store["top"]:
        yield from _top(store["top"])
    for number, row in enumerate(store["sample"] or ()):
        yield from _folded("" if number else "sample", clean(json.dumps(row, ensure_ascii=False)), width)


def _bars(store: Document, operator: Document, width: int) -> Iterator[Text]:
    """Rows of each partition; of more than a screen holds, the largest."""
    # variables and sides that share a folder share its bytes
    own = [file for file in operator["files"] if file["store"] == store["folder"] == store["store"]]
    stored = {file["partition"]: file for file in own}
    partitions = sorted(store["partitions"], key=lambda one: (-one["rows"], one["partition"]))
    shown = sorted(partitions[:MAX_PARTITIONS], key=lambda one: one["partition"])
    most = max(one["rows"] for one in partitions)
    room = max(0, min(60, width - 56))  # the texts before and after the bar
    for number, one in enumerate(shown):
        file = stored.get(one["partition"])
        tail = ""
        if file:
            age = "no snapshot" if file["snapshot_age"] is None else f"snapshot {file['snapshot_age']} old"
            tail = f"  {size(file['bytes']):>8}  {age}"
        length = round(one["rows"] / most * room) if most and room else 0
        yield Text.assemble(
            f"    {'rows' if not number else '':7}{one['partition']:>4} {one['rows']:>11,} ",
            ("█" * length, BLUE),
            "·" * (room - length),
            tail,
        )
    rest = partitions[MAX_PARTITIONS:]
    if rest:
        least, largest = rest[-1]["rows"], rest[0]["rows"]
        yield Text(f"    {'':7}{len(rest)} more with {least:,} to {largest:,} rows each", style="dim")


def _growth(grown: Document, width: int) -> Text:
    batches = grown["batches"]
    first, last = batches[0], batches[-1]
    change = last["rows"] - first["rows"]
    parts: list[str | tuple[str, str]] = ["    growth "]
    if len(batches) > 2:
        room = min(len(batches), 40, max(8, width - 70))
        spark = sparkline([float(one["rows"]) for one in batches], room)
        parts += [(spark, SKY), " "]
    span = f"{first['rows']:,} at batch {first['batch']}, {last['rows']:,} at batch {last['batch']}"
    if grown["added"] is None:
        parts.append(f"{span} ({change:+,})")
    else:
        parts.append(f"{span}: {grown['added']:,} added, {grown['removed']:,} removed")
    return Text.assemble(*parts)


def _top(keys: Sequence[Document]) -> Iterator[Text]:
    names = ", ".join(keys[0]["key"])
    texts = [", ".join(UNKNOWN if part is None else clean(part) for part in key["key"].values()) for key in keys]
    broad = min(40, max(len(text) for text in texts))
    for number, (text, key) in enumerate(zip(texts, keys, strict=True)):
        by = f"  by {names}" if not number else ""
        yield Text.assemble(
            f"    {'top' if not number else '':7}{text[:broad]:{broad}} ",
            f"{counted(key['rows'], 'row'):>14} {size(key['bytes']):>9}",
            (by, "dim"),
        )


class ListingText(StateText):
    """The document of a run: a line for each operator of each job."""

    def _lines(self, width: int) -> Iterator[Text]:
        jobs = [{**job, "job": clean(job["job"])} for job in self.document["jobs"]]  # the name of a folder
        wide = max(len(job["job"]) for job in jobs)
        named = max((len(one["name"]) for job in jobs for one in job["operators"]), default=8)
        named = max(8, min(named, width - wide - 44))
        yield Text(
            f"{'job':{wide}} {'operator':{named}} {'parts':>5} {'batch':>6} {'rows':>10} {'bytes':>8} {'snapshot':>8}",
            style="dim",
        )
        earlier = False
        for job in jobs:
            if job["error"]:
                yield Text(f"{job['job']:{wide}} {clean(job['error'])}", style=ORANGE)
            elif not job["operators"]:
                yield Text(f"{job['job']:{wide}} keeps no state", style="dim")
            for place, one in enumerate(job["operators"]):
                ages = [file["snapshot_age"] for file in one["files"]]
                age = "none" if None in ages else f"{max(ages)} old"
                operator = clean(one["name"])[:named]
                behind = one["rows"] is not None and one["rows_batch"] != job["batch"]
                earlier |= behind
                yield Text(
                    f"{job['job'] if not place else '':{wide}} {operator:{named}} {one['partitions']:>5} "
                    f"{job['batch']:>6} {count(one['rows']) + '*' * behind:>10} {size(one['bytes']):>8} {age:>8}"
                )
        if earlier:
            yield Text("* rows of an earlier batch; name the job's checkpoint to count the newest", style="dim")


def _folded(head: str, text: str, width: int, style: str = "") -> Iterator[Text]:
    """Text in as many lines as it needs, under one another."""
    room = max(20, width - 11)
    lines = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        yield Text(f"    {'' if number else head:7}{line}", style=style)
