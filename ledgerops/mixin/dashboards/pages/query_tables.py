"""The collapsed row of the Query page on tables, files and queues: what is unread, and what the sink's commits add."""

from ledgerops.mixin.dashboards.model import Panel, Row, Target, by, q, rate

ONE_QUERY = "app, query"
ONE_SOURCE = "app, query, source"


def _unread(unit: str) -> Target:
    return Target(by("max", ONE_SOURCE, q(f"ledgerops_source_unread_{unit}")), f"{{{{source}}}} {unit}")


TABLES = "a query that reads or writes a table"
BYTES, FILES = (by("sum", ONE_QUERY, rate(q(f"ledgerops_sink_{what}_total"))) for what in ("bytes", "files"))

ROW = Row(
    "How far is it in tables, files and queues?",
    (
        Panel(
            "Unread versions, files and rows", (_unread("versions"), _unread("files"), _unread("rows")), "short",
            "What waits in the source: versions and files by the table's own history, files and rows as the source reports them. Good: back to 0 within a few trigger intervals.",
            empty="the source reports neither versions nor files", waits=TABLES, drill="delta",
        ),
        Panel(
            "Unread bytes, and the average file of the sink",
            (_unread("bytes"), Target(f"{BYTES} / {FILES}", "file that the sink adds")), "bytes",
            "Bytes that wait in the source, and the average size of the files that the query adds to its table. Good: unread bytes back to 0, files of megabytes; many files of a few kilobytes make every reader slow.",
            empty="the source reports no bytes, and the sink is neither a Delta nor an Iceberg table", waits=TABLES,
            drill="delta",
        ),
    ),
    collapsed=True,
)  # fmt: skip
