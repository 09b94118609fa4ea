"""What `ledgerops.attach` returns. It imports nothing, so that a job gets one where ledgerops cannot even be loaded."""

import time
from typing import Any


class Watch:
    """One session under watch. This one is inert: `error` says why attaching failed, and everything else does nothing.
    Attributes and methods are those of `ledgerops.agent.attach.SessionWatch`."""

    def __init__(self, error: str | None = None) -> None:
        self.error = error

    @property
    def url(self) -> str | None:
        """Address of the exporter, such as http://127.0.0.1:9464; None when nothing is served."""
        return None

    @property
    def port(self) -> int | None:
        """Port of the exporter; None when nothing is served."""
        return int(self.url.rpartition(":")[2]) if self.url else None

    def diagnose(self) -> dict[str, Any]:
        """The diagnosis document, as `ledgerops diagnose --json` prints it; without queries when nothing was seen."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        return {"version": 1, "at": at, "source": "not attached", "queries": []}

    def status(self) -> dict[str, Any]:
        """The document that the exporter serves at /status; without queries when nothing was seen."""
        return {"version": 1, "at": time.time(), "queries": []}

    def collector(self) -> Any:
        """For an application that serves a prometheus_client registry of its own: register this there."""
        return _EmptyCollector()

    def close(self) -> None:
        """Detaches from the session; the exporter ends with the last one. May be called twice."""


class _EmptyCollector:
    """What prometheus_client asks of a collector."""

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> list[Any]:
        return []
