"""One OTLP/HTTP receiver: a request that ends in time, and what its answer means.

https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import gzip
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ledgerops.common.credentials import Reread
from ledgerops.common.http import check_address, fetch, opener
from ledgerops.config import Config
from ledgerops.errors import UserError
from ledgerops.input_files import text_of

REQUEST_SECONDS = 10.0  # OTLP's default
RETRIED = (429, 502, 503, 504)  # after any other status the same data would be refused again
MAX_ANSWER_BYTES = 65_536
MAX_REASON_LENGTH = 200
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*)")
REJECTED = ("rejectedDataPoints", "rejectedLogRecords")


class Refused(Exception):
    """The receiver did not take a request. `status` is None without an answer; `retry_seconds` is how long to wait at
    least, None where the same data would be refused again."""

    def __init__(self, reason: str, retry_seconds: float | None = None, status: int | None = None) -> None:
        super().__init__(reason[:MAX_REASON_LENGTH])
        self.retry_seconds, self.status = retry_seconds, status


class Encoding(NamedTuple):
    """How requests are written and answers read; both get the signal, "metrics" or "logs"."""

    content_type: str
    encode: Callable[[str, Mapping[str, Any]], bytes]
    decode: Callable[[str, bytes], Mapping[str, Any]]


class Receiver:
    """Raises UserError for settings that cannot be used."""

    def __init__(self, config: Config) -> None:
        self.endpoint = (config.otlp_endpoint or "").rstrip("/")
        check_address(self.endpoint, "otlp_headers_file")
        file = config.otlp_headers_file
        self._headers = Reread([file], lambda: read_headers(file) if file else {})
        self._encoding = protobuf_encoding() if config.otlp_encoding == "protobuf" else JSON
        self._opener = opener(self.endpoint)

    def post(self, signal: str, document: Mapping[str, Any]) -> int:
        """Sends one request. Returns how many of its items the receiver rejected. Raises Refused."""
        headers = {**self._headers.current(), "Content-Type": self._encoding.content_type, "Content-Encoding": "gzip"}
        body = gzip.compress(self._encoding.encode(signal, document), compresslevel=1)
        try:
            request = urllib.request.Request(f"{self.endpoint}/v1/{signal}", body, headers, method="POST")
            answer, received = fetch(self._opener, request, seconds=REQUEST_SECONDS, max_bytes=MAX_ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            wait = retry_after(error.headers.get("Retry-After")) if error.code in RETRIED else None
            raise Refused(f"it answers {error.code}", wait, error.code) from None
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: no thread could be started
            reason = "".join(filter(str.isprintable, str(getattr(error, "reason", None) or error))).strip()
            raise Refused(reason or "the answer is not HTTP", 0.0) from None
        if "html" in received.get("Content-Type", ""):
            raise Refused("it answers with a web page", status=200)
        return self._rejected(signal, answer)

    def _rejected(self, signal: str, answer: bytes) -> int:
        """From a partial success; an answer that cannot be read is a whole one, for its status says so."""
        try:
            part = self._encoding.decode(signal, answer).get("partialSuccess") or {}
            return max(0, *(int(part.get(key) or 0) for key in REJECTED))
        except (ValueError, TypeError, AttributeError):
            return 0


def read_headers(file: str) -> dict[str, str]:
    """Headers, one `Name: value` a line. Raises UserError without quoting what may be a secret."""
    found = {}
    for number, line in enumerate(text_of(Path(file)).splitlines(), 1):
        if line.strip():
            match = HEADER.fullmatch(line.strip())
            if match is None:
                raise UserError(f"{file}:{number} is not a header; write Name: value")
            found[match[1]] = match[2]
    return found


def retry_after(value: str | None) -> float:
    """Seconds of a Retry-After header, which may be a date; 0 without one."""
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


JSON = Encoding(
    "application/json", lambda _, document: orjson.dumps(document), lambda _, answer: orjson.loads(answer or b"{}")
)


def protobuf_encoding() -> Encoding:
    """Requests as protobuf, by the packages of the extra otlp. Raises UserError without them."""
    try:
        from google.protobuf.json_format import MessageToDict, ParseDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
    except ImportError:
        raise UserError("otlp_encoding = protobuf needs opentelemetry-proto; pip install 'ledgerops[otlp]'") from None
    requests: dict[str, Any] = {"metrics": metrics.ExportMetricsServiceRequest, "logs": logs.ExportLogsServiceRequest}
    answers: dict[str, Any] = {"metrics": metrics.ExportMetricsServiceResponse, "logs": logs.ExportLogsServiceResponse}

    def encode(signal: str, document: Mapping[str, Any]) -> bytes:
        written: bytes = ParseDict(document, requests[signal]()).SerializeToString()
        return written

    def decode(signal: str, answer: bytes) -> Mapping[str, Any]:
        message = answers[signal]()
        try:
            message.ParseFromString(answer)
        except DecodeError as error:
            raise ValueError(str(error)) from None
        found: Mapping[str, Any] = MessageToDict(message)
        return found

    return Encoding("application/x-protobuf", encode, decode)
