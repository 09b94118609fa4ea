"""What the text of an exception says: the line for a person, the class, the line of the user, the place it blames."""

import re

from ledgerops.common.python_code import is_library

TASK = re.compile(r"^.*?Lost task .*? executor \S+?\): (?=.)")  # Spark 3.5 tells the real exception only after it
JAVA_FRAME = re.compile(r"\s*(at |\.\.\. \d+ (more|common))")
CLASS = re.compile(r"^[A-Za-z_][\w.$]*(?:Exception|Error|Exit|Interrupt|Warning)\b")
FILE = re.compile(r"\b(?:file|s3a?|gs|abfss?|hdfs|dbfs|wasbs?):/+[^\s,;'\"\])]+")
PARTITION = re.compile(r"\b(?:partition|TopicPartition)\W{1,3}([\w.]+-\d+)\b|\b([\w.]+-\d+)\s+(?:at|offset)\b", re.I)
OFFSET = re.compile(r"\boffset\W{1,3}(?:is\s+)?(\d+)\b", re.I)
# what an exception quotes of a row: "The value 'x' of the type", "string to float: 'x'", "base 10: 'x'"
VALUE = re.compile(r"(\b(?:values?|input|string to \w+:|base \d+:) )'[^']*'", re.IGNORECASE)
MAX_LINE_CHARACTERS = 160  # of the exception's first line that are shown, besides its error condition
CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
WRAPPER = "FOREACH_BATCH_USER_FUNCTION_ERROR"  # says where it was raised and not what
# exceptions that only say that another one was raised, and which comes after them as their cause
WRAPPERS = re.compile(
    r"\bTask failed while writing rows\b|\bWriting job aborted\b|\bJob aborted(?: due to|\.|$)|\[STREAM_FAILED\]"
    r"|\[(?:TASK_WRITE_FAILED|FAILED_EXECUTE_UDF|FOREACH_BATCH_USER_FUNCTION_ERROR|FOREACH_USER_FUNCTION_ERROR)\]"
    r"|\[FAILED_READ_FILE\.(?:NO_HINT|PARQUET_COLUMN_DATA_TYPE_MISMATCH)\]"
    r"|\bException thrown in awaitResult\b|\bFailed to (?:construct kafka|create new Kafka)"
    r"|\b(?:ExecutionException|InvocationTargetException|UndeclaredThrowableException|CompletionException)\b"
)
CAUSE = "Caused by: "
SENTENCE_END = re.compile(r"[.:;!?)\]]$|\bSQLSTATE\b")  # of a line of a message
CODE = re.compile(r'^File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?$')
TRACEBACK = "Traceback (most recent call last):"
# Python indents the frames of a traceback, and not the line after them; in Py4J's, Java's exception follows in the next
RAISED = re.compile(rf"{re.escape(TRACEBACK)}[ ]*\n(?:[ \t].*\n|\n)*(?=(?:py4j\.protocol\.Py4JJavaError.*\n: )?(\S.*))")


def first_line(exception: str) -> str:
    """The line that says what happened: without the stack, the package of the class, and a row's values in quotes."""
    lines = [line.strip() for line in exception.splitlines() if line.strip()]
    line = lines[0] if lines else exception.strip()
    line = TASK.sub("", line, count=1)
    if WRAPPERS.search(line) and not line.endswith(TRACEBACK):
        line = _cause(lines) or line
    if line.endswith(TRACEBACK):
        line = _python_line(exception) or line
        line = TASK.sub("", line, count=1)
    if "[DELTA_" in line:
        line = _sentence(line, exception)
    name, colon, rest = line.partition(": ")
    if colon and rest and " " not in name:
        line = f"{name.rsplit('.', 1)[-1]}: {rest}"
    line = VALUE.sub(r"\1'...'", line).rstrip(":")
    condition = CONDITION.search(line, 0, MAX_LINE_CHARACTERS)
    most = MAX_LINE_CHARACTERS + (len(condition[0]) if condition else 0)
    return line if len(line) <= most else line[: most - 3] + "..."


def _cause(lines: list[str]) -> str | None:
    """The outermost cause that is more than a wrapper; the innermost where all of them are."""
    causes = [line.removeprefix(CAUSE) for line in lines if line.startswith(CAUSE)]
    return next((cause for cause in causes if not WRAPPERS.search(cause)), causes[-1] if causes else None)


def _sentence(line: str, exception: str) -> str:
    """The line with those after it up to the end of its sentence: Delta breaks its messages over several."""
    for more in exception.partition(line)[2].splitlines()[1:]:
        if SENTENCE_END.search(line) or not more.strip() or JAVA_FRAME.match(more) or more.startswith(CAUSE):
            break
        line = f"{line} {more.strip()}"
    return line


def user_code(exception: str) -> str | None:
    """Where Python raised: `app.py:9 in process`, the innermost line outside Spark and the libraries."""
    frames = [found for line in exception.splitlines() if (found := CODE.match(line.strip()))]
    own = [each for each in frames if not is_library(each["file"])]
    if not own:
        return None
    file, line, function = own[-1].group("file", "line", "function")
    return f"{file}:{line}" + (f" in {function}" if function and function != "<module>" else "")


def without_frames(exception: str) -> str:
    """The exception and its causes, outermost first, without the frames of their stacks."""
    return "\n".join(line for line in exception.splitlines() if not JAVA_FRAME.match(line))


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
    text = without_frames(exception)
    path, partition, offset = FILE.search(text), PARTITION.search(text), OFFSET.search(text)
    return (
        path[0].rstrip(".:") if path else None,
        (partition[1] or partition[2]) if partition else None,
        int(offset[1]) if offset else None,
    )


def raised_at(exception: str) -> str:
    """Where it was raised, as an end of a sentence: the line of the user or the file, the offset, the partition. Empty
    where it names none of them, or `first_line` has it."""
    path, partition, offset = place(exception)
    parts = [
        user_code(exception) or path,
        f"offset {offset}" if offset is not None else None,
        f"of {partition}" if partition else None,
    ]
    where = " ".join(each for each in parts if each)
    line, name = first_line(exception), where.rpartition("/")[2]  # a name without a dot may be the number of a batch
    return f"; at {where}" if where and where not in line and ("." not in name or name not in line) else ""


def _python_line(exception: str) -> str | None:
    """What Python raised: the line after the frames of the last traceback, for what was raised first is named last."""
    raised = [line for line in RAISED.findall(exception) if not line.endswith(TRACEBACK)]
    return raised[-1].strip() if raised else None
