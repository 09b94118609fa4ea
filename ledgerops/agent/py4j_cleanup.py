"""Ends the connection that py4j keeps for the thread of a query, when the query has ended.

Each Java thread that calls Python gets a socket, and a thread in Python that serves it; py4j keeps both until the
process ends (PythonClient.connections of py4j 0.10.9.9 holds what no thread needs any more). Spark tells of a query's
start on the query's own thread, so that a driver which starts a query every minute would run out of file handles within
a day. The same connection serves foreachBatch; nothing calls Python on that thread after the query's end.
"""

from __future__ import annotations

import contextlib
from typing import Any

import orjson


class Connections:
    """Of one session. What cannot be ended stays open, as it would without this: no error leaves here."""

    def __init__(self, client: Any) -> None:
        """`client`: py4j's callback client on the Java side."""
        self._client = client
        self._of_run: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._of_run)

    def began(self, started: str) -> None:
        """Remembers the connection of the thread that calls, for the run of this event."""
        with contextlib.suppress(Exception):  # a gateway without a thread for each caller shares its connections
            self._of_run[orjson.loads(started)["runId"]] = self._client.getPerThreadConnection()

    def ended(self, terminated: str) -> None:
        """Closes the connection of the run of this event."""
        with contextlib.suppress(Exception):
            self.end(orjson.loads(terminated)["runId"])

    def end(self, run_id: str) -> None:
        """Closes it, on both sides. Spark may have lost the event: any thread may call, and more than once."""
        with contextlib.suppress(Exception):
            connection = self._of_run.pop(run_id, None)
            if connection is not None:
                connection.shutdown()
                self._client.connectionStopped(connection)  # Java's side forgets it
