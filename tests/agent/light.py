"""Run as a program: attaches to a fake session in an interpreter that has few packages, and prints what came of it.

arguments: the packages that may be imported beside the standard library, separated by commas, and modules that may not
"""

import json
import logging
import resource
import sys
import time
import types
import urllib.request
from pathlib import Path

allowed = {"ledgerops", "pyspark", "tests", *sys.argv[1].split(",")}
logged: list[str] = []


class Missing:
    """An importer for which nothing else is installed."""

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top in allowed or top.startswith("_sysconfigdata")
        if name in sys.argv[2:] or not known:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)


class Keep(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())


class Streams:
    active = ()

    def addListener(self, listener):
        self.listener = listener

    def removeListener(self, listener):
        self.listener = None


class FakeSession:
    """What attach asks of a session of Spark Connect."""

    session_id = "session"
    is_stopped = False

    def __init__(self):
        self.streams = Streams()
        self.conf = {}


FakeSession.__module__ = "pyspark.sql.connect.session"
PROGRESS = {
    "id": "id-1", "runId": "run-1", "name": "daily_counts", "timestamp": "2026-01-31T12:00:00.000Z", "batchId": 1,
    "numInputRows": 10, "durationMs": {"triggerExecution": 500, "addBatch": 400}, "stateOperators": [],
    "sources": [{"description": "rate", "numInputRows": 10}], "sink": {"description": "noop", "numOutputRows": 10},
}  # fmt: skip


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


def main() -> None:
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming", "pyspark.sql.streaming.listener"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["pyspark.sql.streaming.listener"].StreamingQueryListener = object
    sys.meta_path.insert(0, Missing())
    logging.getLogger("ledgerops").addHandler(Keep())
    before = resident_bytes()

    import ledgerops

    session = FakeSession()
    watch = ledgerops.attach(session, port=0, tasks_collector=False)
    again = ledgerops.attach(session, port=0)
    found = {"error": watch.error, "again": again.error, "url": watch.url, "port": watch.port, "logged": logged}
    found["same"] = ledgerops.instrument(session, "event_time") is session if sys.argv[2:] else None
    if watch.url:
        progress = types.SimpleNamespace(json=json.dumps(PROGRESS))
        session.streams.listener.onQueryProgress(types.SimpleNamespace(progress=progress))
        deadline = time.monotonic() + 60
        while not watch.diagnose()["queries"] and time.monotonic() < deadline:
            time.sleep(0.02)
        for page in ("/metrics", "/diagnosis", "/status", "/recording", "/"):
            with urllib.request.urlopen(watch.url + page, timeout=60) as answer:
                found[page] = answer.read().decode()
    found["queries"] = [each["query"] for each in watch.diagnose()["queries"]]
    found["statuses"] = [each["query"] for each in watch.status()["queries"]]
    found["bytes"] = resident_bytes() - before
    found["modules"] = sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)
    if watch.error:
        found["families"] = list(watch.collector().collect()) + list(watch.collector().describe())
    watch.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
