"""Query failed: the query ended with an exception, or vanished without a report of its end.

Meaning: Spark stopped the query because of an error, or its server is gone and can no longer say why. A query that was
    stopped on purpose, or that read all available rows with an `availableNow` trigger, has not failed.
Impact: the query writes no results until it is started again. Rows wait in the source for as long as it keeps them.
Diagnosis: 1. Read the finding: it has the error class, the first line of the exception, the batch and, if the exception
    names them, the file or the offset. A sink or a broker that is named is where to look first.
    2. `sum by (error_class) (increase(ledgerops_query_failures_total{query="QUERY"}[1h]))` shows how often it failed.
    More than twice means that a restart alone does not help.
    3. Read the whole stack in the log of the driver, or in a recording with `grep '"terminated"' RECORDING | tail -1`.
    If the stack ends in your own function, a row is the cause.
Mitigation: check how long the source keeps its rows, so that none are lost while you search. Repair what the exception
    names, then start the query with the same checkpoint: it repeats the batch that failed. If it fails again in the
    same batch, a row of that batch is the cause: its offsets are in the Spark log.
Evidence:
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception so far.
    failed_batch_id: the highest batchId in the progress records of all runs of the query, plus one; absent without any.
    failed_at_offset: the offset that the exception names, if any.
    seconds_without_a_sign: for a run that vanished: time from the end of its newest batch (or from its start, if it has
        none) to its recorded end.
"""

import re
from collections.abc import Iterator

from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import Ended
from ledgerops.signals.query_view import QueryView

TASK = re.compile(r"Lost task .*? executor \S+?\): ")
JAVA_FRAME = re.compile(r"^(at |\.\.\. \d+ more)")
CLASS = re.compile(r"^[A-Za-z_][\w.$]*(?:Exception|Error|Exit|Interrupt|Warning)\b")
FILE = re.compile(r"\b(?:file|s3a?|gs|abfss?|hdfs|dbfs|wasbs?):/+[^\s,;'\"\])]+")
PARTITION = re.compile(r"\b(?:partition|TopicPartition)\W{1,3}([\w.]+-\d+)\b|\b([\w.]+-\d+)\s+(?:at|offset)\b", re.I)
OFFSET = re.compile(r"\boffset\W{1,3}(?:is\s+)?(\d+)\b", re.I)
# what an exception quotes of a row: "The value 'x' of the type", "string to float: 'x'", "base 10: 'x'"
VALUE = re.compile(r"(\b(?:values?|input|string to \w+:|base \d+:) )'[^']*'", re.IGNORECASE)
MAX_LINE_CHARACTERS = 160  # of the exception's first line that are shown
CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
WRAPPER = "FOREACH_BATCH_USER_FUNCTION_ERROR"  # says where it was raised and not what
BRIDGE = "py4j.protocol.Py4JJavaError"  # Java's exception follows in the next line, after a colon
TRACEBACK = "Traceback (most recent call last):"


def check(view: QueryView) -> Iterator[Finding]:
    ended = view.history.ended
    if ended is not None and ended.lost:
        yield _vanished(view, ended)
    if ended is None or ended.exception is None:
        return
    line = first_line(ended.exception)
    kind = error_class(ended.error_class, line) or "no error class"
    batch = f" after batch {view.last.batch_id}" if view.last is not None else " before its first batch"
    failures = sum(view.history.failures.values())
    evidence = [Evidence("ledgerops_query_failures_total", float(max(1, failures)), "count", "0", ended.at)]
    known = [each.batch_id for each in view.history.batches]
    if known:
        evidence.append(Evidence("failed_batch_id", float(max(known) + 1), "count", "it is repeated", ended.at))
    path, partition, offset = place(ended.exception)
    if offset is not None:
        evidence.append(Evidence("failed_at_offset", float(offset), "offsets", "none named", ended.at))
    parts = [path, f"offset {offset}" if offset is not None else None, f"of {partition}" if partition else None]
    where = " ".join(each for each in parts if each)
    yield Finding(
        f"the query failed{batch} ({kind}): {line}" + (f"; at {where}" if where and where not in line else ""),
        Component("query", view.query, error_class(ended.error_class, line) or exception_class(ended.exception)),
        tuple(evidence),
        (
            Remedy(
                "repair what the exception names, then start the query with the same checkpoint",
                "it resumes with the batch that failed; a new checkpoint would repeat or lose rows",
                safe=False,
            ),
        ),
        confidence=1.0,
        began=ended.at,
    )


def _vanished(view: QueryView, ended: Ended) -> Finding:
    """The run is gone, and nobody said that it stopped or failed."""
    seen = view.history.last_progress or view.history.started_at or ended.at
    return Finding(
        f"the query vanished without a report of its end, {ended.at - seen:.0f} s after its last batch",
        Component("query", view.query, "vanished"),
        (Evidence("seconds_without_a_sign", max(0.0, ended.at - seen), "seconds", "a report of its end", ended.at),),
        (
            Remedy(
                "check whether the Spark server of the query still runs, and read the end of its log",
                "a server that is killed or runs out of memory reports nothing",
            ),
        ),
        confidence=0.8,
        began=ended.at,
    )


def first_line(exception: str) -> str:
    """The line that says what happened: without the stack, the package of the class, and a row's values in quotes."""
    lines = [line.strip() for line in exception.splitlines() if line.strip()]
    line = lines[0] if lines else exception.strip()
    lost = TASK.search(line)  # Spark 3.5 tells the real exception only after the task that it killed
    line = line[lost.end() :] if lost and line[lost.end() :] else line
    if line.endswith(TRACEBACK):
        line = _python_line(lines) or line
        lost = TASK.search(line)
        line = line[lost.end() :] if lost and line[lost.end() :] else line
    name, colon, rest = line.partition(": ")
    if colon and rest and " " not in name:
        line = f"{name.rsplit('.', 1)[-1]}: {rest}"
    line = VALUE.sub(r"\1'...'", line)
    return line if len(line) <= MAX_LINE_CHARACTERS else line[: MAX_LINE_CHARACTERS - 3] + "..."


def error_class(reported: str | None, line: str) -> str | None:
    """Spark's error class; where that is only the wrapper of `foreachBatch`, the one that the exception in it names."""
    inner = CONDITION.search(line) if reported is None or reported == WRAPPER else None
    return inner[1] if inner else reported


def exception_class(exception: str) -> str | None:
    """The class of the exception that `first_line` shows, without its package; None when the text begins with none."""
    found = CLASS.match(first_line(exception))
    return found[0].rsplit(".", 1)[-1] if found else None


def place(exception: str) -> tuple[str | None, str | None, int | None]:
    """The file, the topic partition and the offset that the exception blames, each where it names one."""
    text = "\n".join(line for line in exception.splitlines() if not JAVA_FRAME.match(line.strip()))
    path, partition, offset = FILE.search(text), PARTITION.search(text), OFFSET.search(text)
    return (
        path[0].rstrip(".:") if path else None,
        (partition[1] or partition[2]) if partition else None,
        int(offset[1]) if offset else None,
    )


def _python_line(lines: list[str]) -> str | None:
    """What Python raised: the last line that names an exception and begins no traceback, for what was raised first is
    named last."""
    raised = [n for n, line in enumerate(lines) if CLASS.match(line) and not line.endswith(TRACEBACK)]
    if not raised:
        return None
    newest, after = lines[raised[-1]], lines[raised[-1] + 1 : raised[-1] + 2]
    return after[0].removeprefix(": ") if newest.startswith(BRIDGE) and after else newest


RULE = Rule("query-failed", "critical", check, __doc__, ("freshness-breach",), linger=0.0, outlives=True, at_rest=True)
