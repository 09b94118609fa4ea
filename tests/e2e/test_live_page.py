"""The live page in a real browser, fed with the fixture registry by a small server."""

import json
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from ledgerops.common.http_handler import POLICY
from ledgerops.runtime.status import status_document
from tests.programs import finished, needed
from tests.runtime.demo import HOSTILE, NOW, demo_fleet
from tests.serving import Background, Quiet

PAGE = files("ledgerops.agent").joinpath("live.html").read_text("utf-8")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)


class Server:
    """Serves the page at /, and at /status whatever `status` says: a document, or None for an error."""

    def __init__(self) -> None:
        self.status: dict[str, object] | None = None
        self.later: dict[str, object] | None = None  # what `status` is from the second question on
        self.asked: list[str] = []
        outer = self

        class Handler(Quiet):
            def do_GET(self):
                outer.asked.append(self.path)
                found = {"/": PAGE.encode()}
                if outer.status is not None:
                    found["/status"] = json.dumps(outer.status).encode()
                    if self.path == "/status" and outer.later is not None:
                        outer.status = outer.later
                kind = "application/json" if self.path == "/status" else "text/html"
                headers = {"Content-Type": kind, "Content-Security-Policy": POLICY}
                self.reply(200 if self.path in found else 503, found.get(self.path, b""), headers)

        self._server = Background(Handler)
        self.url = f"{self._server.url}/"

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def dom(server, tmp_path):
    """The page's text and markup after a few seconds in the browser."""
    chromium = needed("chromium", "chromium-browser", "google-chrome")

    def load(status):
        server.status = status
        own = [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--dump-dom", server.url]
        done = finished(chromium, *FLAGS, *own, timeout=250)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return load


class Text(HTMLParser):
    """The visible text of a page, and its elements by tag."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.text, self.tags, self._within = "", [], []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._within.append(tag)

    def handle_endtag(self, tag):
        if tag in self._within:
            while self._within.pop() != tag:
                pass

    def handle_data(self, data):
        if not {"script", "style", "noscript"} & set(self._within):
            self.text += data

    def of(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_each_query_is_a_card_with_status_verdict_figures_and_plots(dom):
    page = Text(dom(status_document(demo_fleet(), NOW)))

    assert len(page.of("article")) == 7
    for part in (
        *("▼ falling behind", "key-skew one task read 48,120 of 52,400 rows", "skew ratio 14.90 (expected at most 3)"),
        *("Do first: aggregate in two steps, with a salt on the key", "8,072/s", "117k", "16 min 52 s"),
        *("6.6 s, trigger 2.0 s", "● 2 healthy", "✖ 1 failed"),
    ):
        assert part in page.text
    label = "batch duration of daily_counts, last five minutes: batch now 6.6 s"
    assert any(figure.get("aria-label", "").startswith(label) for figure in page.of("figure"))
    assert all(figure["tabindex"] == "0" for figure in page.of("figure"))
    drawn = [path for path in page.of("path") if path.get("class", "").startswith("l-in") and path.get("d")]
    assert len(drawn) == 6  # all but the query that has not begun


def test_what_else_is_found_is_that_of_now(dom, server):
    """As many findings as before, of which the first is the same."""
    before, now = ({**status_document(demo_fleet(), NOW)} for _ in range(2))
    for status, rule in ((before, "late-data"), (now, "python-bound")):
        status["queries"] = [each for each in status["queries"] if each["verdict"]["rule"] == "key-skew"]
        [query] = status["queries"]
        query["findings"] = [query["findings"][0], {**query["findings"][0], "rule": rule}]
    server.later = now

    page = Text(dom(before))

    assert "python-bound" in page.text and "late-data" not in page.text


def test_a_hostile_query_name_is_text(dom):
    page = Text(dom(status_document(demo_fleet(), NOW)))
    assert page.of("img") == []
    assert HOSTILE in page.text


def test_a_healthy_fleet_shows_no_alarm(dom):
    status = status_document(demo_fleet(), NOW)
    status["queries"] = [query for query in status["queries"] if query["status"] == "healthy"]
    page = Text(dom(status))

    assert [card.get("class", "") for card in page.of("article")] == ["", ""]
    assert "Next:" not in page.text
    [away] = [attrs for attrs in page.of("p") if attrs.get("id") == "away"]
    assert "hidden" in away


def test_an_exporter_that_does_not_answer_is_said_and_asked_again(dom, server):
    page = Text(dom(None))
    assert "No answer from the exporter yet (HTTP 503); trying again every 2 s." in page.text
    assert server.asked.count("/status") >= 2


def test_no_query_yet_is_said(dom):
    assert "no query yet" in Text(dom({"version": 1, "at": NOW, "queries": []})).text
