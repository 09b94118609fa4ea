"""Who is asked for a diagnosis, for how long, and who sees the token."""

from __future__ import annotations

import socket
import threading
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from ledgerops.notify.lookup import Lookup, promql_text
from tests.notify.build import DIAGNOSIS

KNOWN = {"version": 1, "queries": [DIAGNOSIS]}


@pytest.fixture
def dripping():
    """A driver that sends a byte of its headers every tenth of a second, without end."""
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip(connection):
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not ended.wait(0.1):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    ended.set()
    server.close()


def test_a_driver_that_drips_ends_with_the_deadline_of_the_lookup(dripping):
    began = time.monotonic()

    found = Lookup(exporters=[dripping], seconds=0.5).diagnose("daily_counts", "")

    assert time.monotonic() - began < 30
    assert (found.diagnosis, found.trouble) == (None, f"{dripping} did not answer within 0.5 s")


def test_a_driver_that_drips_hides_no_other(dripping, driver):
    driver.pages["/diagnosis"] = KNOWN

    found = Lookup(exporters=[dripping, driver.url], seconds=5.0).diagnose("daily_counts", "")

    assert (found.diagnosis, found.exporter) == (DIAGNOSIS, driver.url)


def test_a_prometheus_that_drips_hides_no_driver(dripping, driver):
    driver.pages["/diagnosis"] = KNOWN

    assert Lookup(exporters=[driver.url], prometheus=dripping, seconds=5.0).diagnose("daily_counts", "").diagnosis


def test_a_silent_driver_is_not_asked_again_at_once(dripping):
    lookup = Lookup(exporters=[dripping], seconds=0.5)
    lookup.diagnose("daily_counts", "")

    assert lookup.diagnose("daily_counts", "").trouble == f"{dripping} did not answer a moment ago"


def test_the_driver_that_runs_the_query_is_believed_before_one_that_ran_it(driver, receiver):
    for each, health in ((driver, 10), (receiver, 90)):
        each.pages["/diagnosis"] = {"queries": [{**DIAGNOSIS, "health": health}]}
    instances = [urlsplit(each.url).netloc for each in (driver, receiver)]
    driver.pages["/api/v1/query"] = {"data": {"result": [{"metric": {"instance": each}} for each in instances]}}

    assert Lookup(prometheus=driver.url).diagnose("daily_counts", "").diagnosis["health"] == 10


def test_a_job_cannot_change_the_question_to_prometheus(driver):
    driver.pages["/api/v1/query"] = {"data": {"result": []}}
    job = 'x"} or vector(1) or y{a="\n'

    Lookup(prometheus=driver.url).diagnose("daily_counts", job)

    [asked] = parse_qs(urlsplit(driver.asked[0]).query)["query"]
    assert asked == f'sort_desc(ledgerops_query_active{{query="daily_counts", job={promql_text(job)}}})'
    assert '"x\\"}' in asked


def test_the_token_goes_to_no_host_that_only_prometheus_names(driver, elsewhere):
    driver.pages["/api/v1/query"] = {"data": {"result": [{"metric": {"instance": urlsplit(elsewhere.url).netloc}}]}}
    elsewhere.pages["/diagnosis"] = KNOWN

    Lookup(prometheus=driver.url, token="secret").diagnose("daily_counts", "")

    assert elsewhere.authorization == [""]


@pytest.mark.parametrize("known", [{"token_hosts": ["127.0.0.*"]}, {"exporters": ["http://127.0.0.2:1"]}])
def test_the_token_goes_to_hosts_that_are_named(driver, elsewhere, known):
    driver.pages["/api/v1/query"] = {"data": {"result": [{"metric": {"instance": urlsplit(elsewhere.url).netloc}}]}}
    elsewhere.pages["/diagnosis"] = KNOWN

    Lookup(prometheus=driver.url, token="secret", **known).diagnose("daily_counts", "")

    assert elsewhere.authorization == ["Bearer secret"]
