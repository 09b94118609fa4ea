"""What the texts of triggers, sinks and plans say that Spark prints. Pure functions; 3.5 to 4.3 print alike."""

import re
from typing import Any

TRIGGERS = {
    "ProcessingTimeTrigger": "processing_time", "AvailableNowTrigger": "available_now", "OneTimeTrigger": "once",
    "ContinuousTrigger": "continuous", "RealTimeTrigger": "real_time",
}  # fmt: skip
WATERMARK = re.compile(r"EventTimeWatermark (?:[0-9a-f-]{36}, )?([^#,\n]+)#(\d+)[^,\n]*, ([^\n]+)")
DELAY = re.compile(r"([\d.]+) (day|hour|minute|second|millisecond|microsecond)s?")
SECONDS = {"day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6}
COMPUTED = "_groupingexpression"
SHUFFLE = "hashpartitioning("
EXPRESSION_ID = re.compile(r"#\d+L?(-T\d+ms)?")
STATEFUL = re.compile(
    r"StateStore|StreamingDeduplicate|StreamingSymmetricHashJoin|MapGroups(InPandas)?WithState|TransformWithState"
)
# a function's state as the plan calls it, and as Spark's progress does
GROUPS_STATE = re.compile(r"\bFlatMapGroups(InPandas)?WithState\b[^\n]*?\b(No|ProcessingTime|EventTime)Timeout\b")
KEYED_STATE = re.compile(r"\b(StateStoreSave|StreamingDeduplicate) \[([^\n]+?)\], state info")
SAVE_MODE = re.compile(r"StateStoreSave \[.*, (Append|Update|Complete), ")
JOINED_STATE = re.compile(r"\b(StreamingSymmetricHashJoin)\b[^\n]*\bstate cleanup \[([^\]\n]+)\]")
STATE_NAMES = {
    "StateStoreSave": "stateStoreSave",
    "StreamingDeduplicate": "dedupe",
    "StreamingSymmetricHashJoin": "symmetricHashJoin",
}
EVENT_TIME = re.compile(r"-T\d+ms\b")  # of a column with a watermark, after its id
PYTHON = re.compile(r"^\W*(?:\d+\W+)?\w*(?:EvalPython|InPandas|InArrow|InPySpark|WindowPython|AggregatePython)", re.M)
# the end of a window in microseconds: its start, and so many more
WINDOW_END = re.compile(r" \+ (\d+)\), LongType, Timestamp")
NOT_SHOWN = re.compile(r"\.\.\. (\d+) more fields")  # at the end of a list that Spark cuts
GROUPS_NAMES = {"InPandas": "applyInPandasWithState", None: "flatMapGroupsWithState"}


def parse_trigger(text: str) -> tuple[str | None, float | None]:
    """`ProcessingTimeTrigger(2000)` -> ("processing_time", 2.0)."""
    name, _, rest = text.partition("(")
    kind = TRIGGERS.get(name.rsplit(".", 1)[-1].rstrip("$"))
    milliseconds = re.match(r"\d+", rest)
    return kind, int(milliseconds[0]) / 1000 if milliseconds else None


def parse_sink(text: str) -> str:
    """Without the package and the object's hash: Java names some sinks by class."""
    return re.sub(r"^[\w.]+\.(?=[A-Z])|\$?@[0-9a-f]+$", "", text)


def parse_watermarks(plan: str) -> dict[str, float]:
    """Column -> allowed lateness in seconds, from a logical plan's text; where several inputs call it alike, `ts (2)`
    is that of the second."""
    inputs: dict[str, dict[str, float]] = {}
    for column, expression_id, text in WATERMARK.findall(plan):
        if (delay := parse_seconds(text)) is not None:
            delays = inputs.setdefault(column.strip(), {})
            delays[expression_id] = max(delay, delays.get(expression_id, 0.0))  # set twice, the larger one counts
    return {
        f"{column} ({number})" if number > 1 else column: delay
        for column, delays in inputs.items()
        for number, delay in enumerate(delays.values(), start=1)
    }


def parse_seconds(text: str) -> float | None:
    """`1 minutes 30 seconds` -> 90.0; None for what is no such text."""
    parts = DELAY.findall(text)
    return sum(float(number) * SECONDS[unit] for number, unit in parts) if parts else None


def read_physical(plan: str) -> dict[str, Any]:
    """What a physical plan's text says of the fields of `Plan` of these names."""
    return {
        "keys": parse_keys(plan), "stateful": STATEFUL.search(plan) is not None, "rows_made": rows_made(plan),
        "without_timeout": without_timeout(plan), "without_event_time": without_event_time(plan),
        "python": has_python(plan), "window_seconds": longest_window(plan),
    }  # fmt: skip


def parse_keys(plan: str) -> tuple[str, ...]:
    """The columns of the widest shuffle first, without Spark's expression ids, from a physical plan's text."""
    shuffles: list[tuple[int, list[str]]] = []
    for after in plan.split(SHUFFLE)[1:]:
        *columns, width = _arguments(after)
        if width.isdecimal():
            shuffles.append((int(width), columns))
    names = _output_names(plan)
    keys: dict[str, None] = {}
    for _, columns in sorted(shuffles, key=lambda shuffle: -shuffle[0]):
        keys.update((EXPRESSION_ID.sub("", names.get(column, column)), None) for column in columns)
    return tuple(keys)


def _output_names(plan: str) -> dict[str, str]:
    """What the query calls the keys that are expressions: an aggregate puts its keys first in its output."""
    found: dict[str, str] = {}
    for line in plan.splitlines():
        if COMPUTED not in line or "Aggregate(keys=[" not in line or "output=[" not in line or "partial_" in line:
            continue
        keys = _arguments(line.split("keys=[", 1)[1])
        output = _arguments(line.split("output=[", 1)[1])
        for key, name in zip(keys, output, strict=False):
            if key.startswith(COMPUTED) and not name.startswith(COMPUTED):
                found.setdefault(key, name)
    return found


def output_mode(plan: str) -> str | None:
    """The output mode that an aggregation of a physical plan's text writes by; None without one."""
    found = SAVE_MODE.search(plan)
    return found[1].lower() if found else None


def has_python(plan: str) -> bool:
    """Whether an operator of a physical plan's text runs a function in Python workers."""
    return PYTHON.search(plan) is not None


def without_timeout(plan: str) -> tuple[str, ...]:
    """Operators of a physical plan's text whose function keeps state without a timeout, by their names in progress.
    Only where none of that name has one."""
    found: dict[str, set[str]] = {}
    for kind, timeout in GROUPS_STATE.findall(plan):
        found.setdefault(GROUPS_NAMES[kind or None], set()).add(timeout)
    return tuple(sorted(name for name, timeouts in found.items() if timeouts == {"No"}))


def without_event_time(plan: str) -> tuple[str, ...]:
    """Operators of a physical plan's text of which no watermark ever removes all rows, by their names in progress: no
    key is an event time, or a join bounds the time of only one side, or of none. Only where none of that name is
    bounded. A list of keys that Spark cuts may hold one."""
    found: dict[str, set[bool]] = {}
    for kind, keys in KEYED_STATE.findall(plan):
        found.setdefault(kind, set()).add(EVENT_TIME.search(keys) is not None or NOT_SHOWN.search(keys) is not None)
    for kind, cleanup in JOINED_STATE.findall(plan):
        found.setdefault(kind, set()).add("= null" not in cleanup)
    return tuple(sorted(STATE_NAMES[kind] for kind, bounded in found.items() if bounded == {False}))


def rows_made(plan: str) -> int:
    """How many rows a physical plan's text makes of each row, by its widest Expand: one for each window that slides
    over the row, each grouping set, or each distinct count. 1 without any."""
    most = 1
    for after in plan.split("Expand [")[1:]:
        *shown, last = _arguments(after)
        cut = NOT_SHOWN.fullmatch(last)
        most = max(most, len(shown) + (int(cut[1]) if cut else 1))
    return most


def longest_window(plan: str) -> float | None:
    """Seconds of the longest window that a physical plan's text computes; None without any. Not of session windows."""
    return max((int(length) * SECONDS["microsecond"] for length in WINDOW_END.findall(plan)), default=None)


def _arguments(text: str) -> list[str]:
    """Splits `a, f(b, c), 2) and so on` at its own commas, up to its closing parenthesis or bracket."""
    found, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]" and depth:
            depth -= 1
        elif character in ",)]" and not depth:
            found.append(text[start:index].strip())
            start = index + 1
            if character != ",":
                break
    return found or [""]
