"""The live view in a terminal: two or three calm lines a query, and plain lines where there is no terminal.

Reads the status document only, so it shows the queries of this process and those of a running exporter alike.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text

from ledgerops.common.format import UNKNOWN, clean, count, counted, duration, ratio, size
from ledgerops.common.terminal import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW, sparkline
from ledgerops.diagnosis.proof import cure
from ledgerops.model.finding import WAITING

Document = Mapping[str, Any]

STATUSES = {  # status -> (sign, style)
    "healthy": ("●", GREEN),
    "idle": ("○", "dim"),
    "starting": ("◌", SKY),
    "catching_up": ("◐", SKY),
    "pressured": ("▲", ORANGE),
    "falling_behind": ("▼", f"bold {RED}"),
    "stuck": ("■", f"bold {RED}"),
    "failed": ("✖", f"bold {RED}"),
    "stopped": ("□", "dim"),
    "lost": ("✖", f"bold {RED}"),
}
PHASES = {  # in the order in which they run: phase -> (glyph, colour)
    "latest_offset": ("▚", PURPLE),
    "wal_commit": ("▒", ORANGE),
    "get_batch": ("▞", YELLOW),
    "query_planning": ("▓", SKY),
    "add_batch": ("█", BLUE),
    "commit_offsets": ("░", GREEN),
}
LEGEND_LINES = 2
REDRAW_SECONDS = 1.0
PLAIN_SECONDS = 5.0  # between two reports in plain text
WIDE_COLUMNS = 119  # columns from which a query's figures fit in one line
NAME_COLUMNS = 21  # the longest of the ledger's names
MARGIN = " "
FLOW = (("in/s", 8), ("processed", 10), ("backlog", 8), ("clears", 7))  # headings and widths of columns
DETAILS = (("watermark", 10), ("state", 7), ("bytes", 8), ("skew", 6))


class LiveView:
    """The whole view as one renderable. When the terminal is too low for all queries, it shows the worst."""

    def __init__(self, document: Document, title: str) -> None:
        self.document = document
        self.title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        queries: Sequence[Document] = self.document["queries"]
        lines = [Text(f"{MARGIN}{clean(self.title)}", style="bold"), *_headings(width)]
        room = console.height - len(lines) - LEGEND_LINES
        height = 2 if width >= WIDE_COLUMNS else 3
        shown = _worst(queries, max(1, room // height))
        cards = [line for query in queries for line in _roomy(query, width, console)]
        if len(cards) > room:
            cards = [line for query in shown for line in card(query, width)]
        lines += cards
        if not queries:
            lines.append(Text(f"{MARGIN}no query yet", style="dim"))
        lines += _wrapped(_legend(len(queries) - len(shown)), width, console)[:LEGEND_LINES]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
            line.no_wrap = True
            yield line


def card(query: Document, width: int) -> list[Text]:
    """A query's lines: its figures in one (wide) or two, then the verdict beside the throughput of the last minutes."""
    sign, style = STATUSES.get(query["status"], ("?", ""))
    state, batch, interval = query["state"] or {}, query["batch"] or {}, query["trigger_interval"]
    name = Text(clean(query["query"]), style="bold")
    name.truncate(NAME_COLUMNS, overflow="ellipsis", pad=True)
    status = Text(f"{sign} {query['status'].replace('_', ' '):14}", style=style)
    flow = _columns(
        FLOW,
        count(_arriving(query)),
        count(query["rates"]["processed"]),
        count(query["backlog"]),
        _roughly(query["drain_seconds"]),
    )
    details = _columns(
        DETAILS,
        _roughly(query["watermark_lag"]),
        count(state.get("rows")),
        size(state.get("bytes")),
        ratio((query["skew"] or {}).get("ratio")),
    )
    took = Text(duration(batch.get("seconds")).rjust(7))
    if interval and batch and batch["seconds"] > interval:
        took.stylize(f"bold {ORANGE}")
    bar = phase_bar(batch, interval, _bar_width(width))
    lead = Text.assemble(MARGIN, name, " ", status, flow)
    work = Text.assemble(took, " ", bar, details)
    spark_width = min(30, width // 6)
    spark = sparkline(query["series"]["input"], spark_width)
    verdict = Text.assemble(MARGIN, "  ", _verdict(query))
    verdict.truncate(width - spark_width - 1, overflow="ellipsis", pad=True)
    last = Text.assemble(verdict, " ", Text(spark, style=SKY))
    return (
        [Text.assemble(lead, work), last] if width >= WIDE_COLUMNS else [lead, Text.assemble(MARGIN, "  ", work), last]
    )


def _roomy(query: Document, width: int, console: Console) -> list[Text]:
    """A query's lines with its whole verdict, the next step, and an empty line."""
    lines = card(query, width)
    verdict = _verdict(query)
    if lines[-1].plain.find(verdict.plain) < 0:  # it was cut to make room for the throughput
        lines[-1:] = _wrapped(verdict, width, console)
    return [*lines, *_remedy(query, width, console), Text()]


def _roughly(seconds: float | None) -> str:
    """A duration in its largest unit, which fits a column: `16 min` of 16 min 52 s."""
    return " ".join(duration(seconds).split()[:2])


def phase_bar(batch: Document, interval: float | None, width: int) -> Text:
    """A batch's phases; the full width is the trigger interval, or the batch itself when it took longer."""
    bar = Text()
    if not batch:
        return Text(" " * width)
    full = max(batch["seconds"], interval or 0.0) or 1.0
    reached, drawn = 0.0, 0
    for phase, (glyph, colour) in PHASES.items():
        reached += batch["phases"].get(phase) or 0.0
        end = min(width, round(reached / full * width))
        bar.append(glyph * (end - drawn), style=colour)
        drawn = end
    bar.append("·" * (width - drawn), style="dim")
    return bar


def plain_line(query: Document) -> str:
    """What is known of the card in one line of text without control codes."""
    batch, state, skew = query["batch"] or {}, query["state"] or {}, query["skew"] or {}
    phases = sorted((batch.get("phases") or {}).items(), key=lambda item: -(item[1] or 0.0))[:2]
    longest = f" ({', '.join(f'{phase} {duration(seconds)}' for phase, seconds in phases)})" if phases else ""
    clears = f" (clears in {duration(query['drain_seconds'])})" if query["drain_seconds"] else ""
    figures = (  # what must be known for each, and its text
        (_arriving(query), f"in {count(_arriving(query))}/s"),
        (query["rates"]["processed"], f"processed {count(query['rates']['processed'])}/s"),
        (query["backlog"], f"backlog {count(query['backlog'])}{clears}"),
        (batch.get("seconds"), f"batch {duration(batch.get('seconds'))}{longest}"),
        (query["watermark_lag"], f"watermark lag {duration(query['watermark_lag'])}"),
        (state.get("rows"), f"state {count(state.get('rows'))} rows {size(state.get('bytes'))}"),
        (skew.get("ratio"), f"skew {ratio(skew.get('ratio'))}"),
    )
    parts = [text for known, text in figures if known is not None]
    said = [_verdict(query).plain, *(f"do first: {remedy['action']}" for remedy in query["verdict"]["remedies"][:1])]
    return clean(
        f"{query['query']}: " + "; ".join(filter(None, (query["status"].replace("_", " "), *said, ", ".join(parts))))
    )


def verdict_line(query: Document) -> str:
    """A line for the end of a run: status, health and verdict."""
    health = UNKNOWN if query["health"] is None else str(query["health"])
    status = query["status"].replace("_", " ")
    return f"{query['query']:{NAME_COLUMNS}} {status:14} health {health:>3}  {_verdict(query).plain}"


def is_live(console: Console) -> bool:
    """Whether to draw: on a terminal that can, unless plain text was requested."""
    return console.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def watch(
    fetch: Callable[[], Document],
    title: Callable[[], str],
    wait: Callable[[float], bool],
    console: Console,
    contact: Callable[[], str] = str,
) -> None:
    """Shows what `fetch` gives until `wait(seconds)` says that it is over; as plain lines only what is new, and the
    `contact` when it changes: a title may have a clock."""
    if not is_live(console):
        said: set[str] = set()
        shown, known = None, contact()
        while not wait(PLAIN_SECONDS):
            if (document := fetch()) is not shown:
                said, shown = print_plain(document, console, said), document
            if contact() != known:
                known = contact()
                console.print(known, markup=False, highlight=False, soft_wrap=True)
        return
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(LiveView(fetch(), title()), refresh=True)
            if wait(REDRAW_SECONDS):
                return


def print_plain(document: Document, console: Console, said: Collection[str] = ()) -> set[str]:
    """A line for each query of which something is known, and one line for all others that are not in `said`.

    Returns the names of queries that were said to wait, those in `said` among them.
    """
    first = [query for query in document["queries"] if query["status"] == "starting" and not query["batch"]]
    waiting = [query["query"] for query in first if query["verdict"]["summary"] == WAITING]
    for query in document["queries"]:
        if query["query"] not in waiting:
            line = (
                clean(f"{query['query']}: starting; {_verdict(query).plain}") if query in first else plain_line(query)
            )
            console.out(line, highlight=False)
    if not set(waiting) <= set(said):
        console.out(clean(f"waiting for the first batch of {', '.join(waiting)}"), highlight=False)
    return {*said, *waiting}


def _headings(width: int) -> list[Text]:
    flow, details = (_columns(columns, *(name for name, _ in columns)) for columns in (FLOW, DETAILS))
    lead = f"{MARGIN}{'query':{NAME_COLUMNS}} {'status':16}{flow}"
    work = f"{'batch':>7} {'phases':{_bar_width(width)}}{details}"
    lines = [lead + work] if width >= WIDE_COLUMNS else [lead, f"{MARGIN}  {work}"]
    return [Text(line, style="dim") for line in (*lines, "─" * width)]


def _bar_width(width: int) -> int:
    taken = 2 * len(MARGIN) + NAME_COLUMNS + 26 + sum(width for _, width in (*FLOW, *DETAILS))
    return min(40, width - taken) if width >= WIDE_COLUMNS else max(4, min(24, width - 44))


def _worst(queries: Sequence[Document], room: int) -> Sequence[Document]:
    """As many queries as there is room for, those in the worst health, in their usual order."""
    if len(queries) <= room:
        return queries
    by_health = sorted(queries, key=lambda query: query["health"] if query["health"] is not None else 100)
    names = {query["query"] for query in by_health[:room]}
    return [query for query in queries if query["query"] in names]


def _remedy(query: Document, width: int, console: Console) -> list[Text]:
    remedies = query["verdict"]["remedies"]
    steps = [Text(f"do first: {clean(remedy['action'])}") for remedy in remedies[:1]]
    if (then := cure(remedies)) is not None:
        steps.append(Text(f"then: {clean(then['action'])}{'' if then['safe'] else ' [risky]'}"))
    return [line for step in steps for line in _wrapped(step, width, console)]


def _wrapped(text: Text, width: int, console: Console) -> list[Text]:
    """A text below the name of its query, in as many lines as it takes."""
    margin = Text(f"{MARGIN}  ")
    return [Text.assemble(margin, line) for line in text.wrap(console, width - len(margin))]


def _legend(hidden: int) -> Text:
    line = Text()
    if hidden > 0:
        line.append(f"{counted(hidden, 'more query', 'more queries')} not shown  ", style="bold")
    for phase, (glyph, colour) in PHASES.items():
        line.append(glyph, style=colour)
        line.append(f"={phase}  ", style="dim")
    line.append("full bar = trigger interval", style="dim")
    return line


def _verdict(query: Document) -> Text:
    verdict = query["verdict"]
    summary = clean(verdict["summary"])
    if verdict["rule"] is None:
        return Text(summary, style=Style(dim=True))
    colour = {"critical": f"bold {RED}", "warning": f"bold {ORANGE}"}.get(verdict["severity"], "bold")
    more = len(query["findings"]) - 1
    return Text.assemble((verdict["rule"], colour), f": {summary}", f" (+{more})" if more > 0 else "")


def _arriving(query: Document) -> float | None:
    """What arrives if the source reports its head, else what is read."""
    arrival: float | None = query["rates"]["arrival"]
    return arrival if arrival is not None else query["rates"]["input"]


def _columns(columns: Sequence[tuple[str, int]], *cells: str) -> str:
    return "".join(cell.rjust(width) for cell, (_, width) in zip(cells, columns, strict=True))
