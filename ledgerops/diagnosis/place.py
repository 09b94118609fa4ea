"""Where a finding says that it is, as people would say it."""

import re
from collections.abc import Mapping
from typing import Any

from ledgerops.common.format import clean

CALL_SITE = re.compile(r"^(.*?) at \S+:\d+$")  # how Spark names a stage that nobody named
MEANINGLESS = ("NativeMethodAccessorImpl", "start")  # a call site in Python's bridge; the call that began the query
SINKS = {"ForeachBatchSink": "foreachBatch", "ForeachWriterTable": "foreach"}
WHOLE = ("host", "input", "observer")  # kinds whose names say what they are
ALL_EXECUTORS = "all"


def place(component: Mapping[str, Any]) -> str:
    """source orders · partition 3 of orders · task 1 of a stage · all executors, heap; "" for the whole query."""
    kind, name = str(component["kind"]), clean(component["name"])
    detail = clean(component["detail"]) if component["detail"] else ""
    if kind == "query":
        return ""
    if kind == "partition" and detail and name.startswith(f"{detail}-"):
        return f"partition {name.removeprefix(f'{detail}-')} of {detail}"
    if kind == "stage":
        return _stage(name, detail)
    if kind == "executor" and name == ALL_EXECUTORS:
        name, kind = "all executors", ""
    elif kind == "executor" and name.startswith("lost"):
        kind = ""
    elif kind == "sink":
        name = SINKS.get(name, name)
    elif kind in WHOLE:
        kind = ""
    return f"{kind} {name}".strip() + (f", {detail}" if detail else "")


def _stage(name: str, detail: str) -> str:
    """Without the place in Spark's own code that began it: a reader cannot look anything up by that."""
    found = CALL_SITE.match(name)
    if name in MEANINGLESS or (found and (found[1] in MEANINGLESS or MEANINGLESS[0] in name)):
        return f"{detail} of a stage" if detail.startswith("task") else "a stage"
    if name.startswith("shuffle"):
        return f"the {name}" + (f", {detail}" if detail and detail not in name else "")
    if name == "Python workers":
        return "the Python workers"
    named = found[1] if found else name
    return f"stage {named}" + (f", {detail}" if detail else "")
