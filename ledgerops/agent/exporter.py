"""The exporter. Every page is made from the worker's snapshot, so no request can hold up the job."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from importlib.resources import files
from itertools import pairwise
from urllib.parse import parse_qs, quote, urlsplit

import orjson

from ledgerops.agent.worker import Worker
from ledgerops.common.http_access import Access, Rules, tls_contexts
from ledgerops.common.http_handler import HTML, LINES, Answer, Request, problem
from ledgerops.common.http_server import Server
from ledgerops.config import FRESHNESS_HEADER, MUTE_HEADER, Config, web_address
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.runtime import exposition
from ledgerops.runtime.snapshot import Exported, Published, Snapshot, published
from ledgerops.runtime.status import status_document

log = logging.getLogger("ledgerops")

SHARED_SECONDS = 1.0  # for which a scrape is repeated while there is no news: it takes most of what a request costs
MAX_SCRAPERS = 16  # whose times are remembered
# for which a driver that ends waits to be scraped once more: with longer scrape intervals its end may not be seen
LAST_SCRAPE_SECONDS = 15.0
LAST_ANSWER_SECONDS = 2.0  # for the answer to that scrape
LATE_SECONDS = 2.0  # by which a scrape may be late on a busy machine; one interval may be missed
RISK = (
    "anyone who reaches the exporter reads recordings and diagnoses; set bearer_token_file, basic_auth_user or "
    "tls_client_ca"
)


class Exporter:
    """Serves one worker's snapshot. Raises OSError when the port is taken, UserError on unreadable secrets."""

    def __init__(
        self, config: Config, worker: Worker, stats: SelfStats, clock: Callable[[], float] = time.time
    ) -> None:
        self._worker, self._stats, self._clock = worker, stats, clock
        self._config = config
        self._pages: dict[str, Callable[[dict[str, str], str], Answer]] = {
            "/": lambda query, accept: Answer(files("ledgerops.agent").joinpath("live.html").read_bytes(), HTML),
            "/metrics": self._metrics, "/recording": self._recording, "/diagnosis": self._diagnosis,
            "/status": self._status, "/healthz": self._healthz,
        }  # fmt: skip
        # who says that it scrapes -> when it did, the last three times
        self._scrapes: dict[str, tuple[float, ...]] = {}
        self._scraped = threading.Condition()
        self._making = threading.Lock()  # of families: of several scrapes of a snapshot one makes them
        self._most_dropped: Mapping[str, int] = {}  # by query, the most series that were over its budget
        self._scrape: tuple[Snapshot | None, float, Answer] = None, 0.0, Answer(b"")  # the newest, and of what and when
        rules = access_rules(config)
        secure, access = tls_contexts(rules), Access(rules, RISK)
        self._server = Server((config.host, config.port), self.answer, access, stats.refuse, secure)
        self.port: int = self._server.server_address[1]
        host = "127.0.0.1" if config.host in ("0.0.0.0", "", "::") else config.host
        self.url = web_address(bool(secure), host, self.port)
        self._thread = threading.Thread(target=self._server.serve_forever, name="ledgerops-exporter", daemon=True)

    def start(self) -> None:
        """Begins to answer on a daemon thread. Call it once."""
        self._thread.start()

    def await_scrapes(self) -> None:
        """Waits until Prometheus, and whoever else says that it scrapes, has read what was published last, at most
        LAST_SCRAPE_SECONDS: that the queries ended. To Prometheus, a driver that is gone without that is lost."""
        began = time.monotonic()
        with self._scraped:
            due = {client: due for client, at in self._scrapes.items() if (due := _next_scrape(at)) > began}
            while due and (left := min(max(due.values()), began + LAST_SCRAPE_SECONDS) - time.monotonic()) > 0:
                self._scraped.wait(left)
                due = {client: at for client, at in due.items() if self._scrapes.get(client, (began,))[-1] < began}
        self._server.finish_answers(LAST_ANSWER_SECONDS)

    def close(self) -> None:
        """Stops listening. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def close_inherited(self) -> None:
        """In a forked child: closes its copies of the sockets, which the parent keeps using."""
        self._server.close_inherited()

    def families(self) -> Iterable[Published]:
        """What /metrics serves."""
        config, snapshot = self._config, self._worker.snapshot
        with self._making:
            self._count_dropped(snapshot.exported)
        return published(snapshot, self._stats.copy(), config.expected_queries, config.app)

    def _count_dropped(self, exported: Mapping[str, Exported]) -> None:
        """Of each query the most at any time: a counter must not fall."""
        most = {name: max(each.dropped, self._most_dropped.get(name, 0)) for name, each in exported.items()}
        with self._stats.lock:
            self._stats.series_dropped += sum(most[name] - self._most_dropped.get(name, 0) for name in most)
        self._most_dropped = most

    def answer(self, request: Request) -> Answer:
        """The answer to a GET; what goes wrong is an answer, too."""
        try:
            parts = urlsplit(request.target)
        except ValueError:
            return problem(HTTPStatus.BAD_REQUEST, "not an address")
        page = self._pages.get(parts.path)
        if page is None:
            return problem(HTTPStatus.NOT_FOUND, f"no page {parts.path[:80]}; the pages are {', '.join(self._pages)}")
        try:
            found = page({key: values[-1] for key, values in parse_qs(parts.query).items()}, request.accept)
        except Exception as error:
            self._stats.error("exporter")
            log.warning("cannot answer %s (%s: %.200s)", parts.path, type(error).__name__, error)
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "this page failed; see the driver's log")
        if parts.path == "/metrics" and request.scrapes:
            self._note_scrape(request.client)
        return found

    def _note_scrape(self, client: str) -> None:
        with self._scraped:
            times = self._scrapes.pop(client, ())
            self._scrapes[client] = (*times[-2:], time.monotonic())
            if len(self._scrapes) > MAX_SCRAPERS:
                del self._scrapes[next(iter(self._scrapes))]
            self._scraped.notify_all()

    def _metrics(self, query: dict[str, str], accept: str) -> Answer:
        kind, now, snapshot = exposition.accepted(accept), self._clock(), self._worker.snapshot
        shown, at, scrape = self._scrape
        if shown is snapshot and scrape.kind == kind and 0.0 <= now - at <= SHARED_SECONDS:
            return scrape
        began = time.perf_counter()
        scrape = Answer(exposition.render(self.families(), now, kind), kind)
        with self._stats.lock:
            self._stats.scrape_seconds = time.perf_counter() - began
        self._scrape = snapshot, now, scrape
        return scrape

    def _recording(self, query: dict[str, str], accept: str) -> Answer:
        try:
            since = self._clock() - float(query["since"]) if "since" in query else 0.0
            if not math.isfinite(since):
                raise ValueError(since)
        except ValueError:
            return problem(HTTPStatus.BAD_REQUEST, f"since must be seconds, not {query['since'][:40]!r}")
        name = query.get("query")
        lines = [each for each in self._worker.ring.copy() if each[0] >= since and name in (None, each[1])]
        # a plan that has left the ring, or is older than what is asked for
        known = self._worker.plan_lines(lines[0][0], sorted({of for _, of, _ in lines if of})) if lines else b""
        body = known + b"".join(line for _, _, line in lines)
        mute = ",".join(map(quote, self._config.mute))
        freshness = (FRESHNESS_HEADER, f"{self._config.freshness_objective_seconds!r}")
        return Answer(body, LINES, headers=(freshness, (MUTE_HEADER, mute)) if mute else (freshness,))

    def _diagnosis(self, query: dict[str, str], accept: str) -> Answer:
        from ledgerops.diagnosis.report import document

        snapshot, name = self._worker.snapshot, query.get("query")
        if name is not None and name not in snapshot.queries:
            return problem(
                HTTPStatus.NOT_FOUND, f"no query {name[:80]!r}; the queries are {', '.join(snapshot.queries)}"
            )
        verdicts = [verdict for verdict in snapshot.verdicts() if name in (None, verdict.query)]
        return Answer(orjson.dumps(document(verdicts, self._clock(), self.url, self._config.app)) + b"\n")

    def _status(self, query: dict[str, str], accept: str) -> Answer:
        return Answer(orjson.dumps(status_document(self._worker.snapshot, self._clock())) + b"\n")

    def _healthz(self, query: dict[str, str], accept: str) -> Answer:
        trouble = self._worker.trouble()
        if trouble is None:
            paused = self._worker.pause()  # no reason to restart a driver, so it is said with 200
            return Answer(f"ok; {paused}\n".encode() if paused else b"ok\n", "text/plain; charset=utf-8")
        return Answer(f"{trouble}\n".encode(), "text/plain; charset=utf-8", HTTPStatus.SERVICE_UNAVAILABLE)


def _next_scrape(times: tuple[float, ...]) -> float:
    """Until when the next scrape comes, unless the client is gone."""
    interval = max((later - earlier for earlier, later in pairwise(times)), default=LAST_SCRAPE_SECONDS)
    return times[-1] + interval + max(interval, LATE_SECONDS)


def access_rules(config: Config) -> Rules:
    """The settings that say who may ask the exporter."""
    return Rules(
        host=config.host, user=config.basic_auth_user, password_file=config.basic_auth_password_file,
        token_file=config.bearer_token_file, certificate=config.tls_certificate, key=config.tls_key,
        client_ca=config.tls_client_ca,
    )  # fmt: skip
