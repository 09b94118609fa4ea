"""A receiver of OTLP/HTTP on a free port: what it was sent, and answers that can be chosen."""

import gzip
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.serving import Background, Quiet


class Got(NamedTuple):
    at: float
    path: str
    headers: Mapping[str, str]
    document: dict[str, Any]


class OtlpReceiver:
    """`answer` is called with the handler of each POST; by default it answers 200 and takes everything."""

    def __init__(self, answer: Callable[[Quiet], None] | None = None, port: int = 0) -> None:
        self.got: list[Got] = []
        self.answer = answer or reply()
        outer = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                is_json = self.headers["Content-Type"] == "application/json"
                document = json.loads(body) if is_json else {"protobuf": body}
                outer.got.append(Got(time.time(), self.path, dict(self.headers.items()), document))
                outer.answer(self)

        self._server = Background(Handler, port=port)
        self.port, self.url = self._server.server_port, self._server.url

    def close(self) -> None:
        self._server.close()

    def metrics(self) -> dict[str, dict[str, Any]]:
        """The newest of each metric."""
        return {
            metric["name"]: metric
            for got in self.got
            if got.path == "/v1/metrics"
            for metric in got.document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        }

    def records(self) -> list[dict[str, str]]:
        """The attributes of all log records."""
        return [
            {each["key"]: each["value"]["stringValue"] for each in record["attributes"]}
            for got in self.got
            if got.path == "/v1/logs"
            for record in got.document["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
        ]


def reply(status: int = 200, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Callable[[Quiet], None]:
    """An answer for `OtlpReceiver`."""
    return lambda handler: handler.reply(status, body, {"Content-Type": "application/json", **(headers or {})})
