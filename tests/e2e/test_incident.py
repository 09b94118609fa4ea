"""One incident from end to end: a real query hangs, Prometheus and Alertmanager page once, the page names the cause,
and the end is told; then the driver is killed, and the page says that nothing is known, not that all is well."""

import json
import os
import signal
import sys
from contextlib import ExitStack, suppress

import psutil
import pytest

from ledgerops.common.shutdown import Stop
from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.run import application, random_names, store
from ledgerops.mixin.site import Site
from ledgerops.notify.lookup import Lookup
from ledgerops.notify.senders import open_senders
from ledgerops.notify.service import Service
from ledgerops.notify.spool import Spool
from tests.monitoring import Alertmanager, Prometheus
from tests.notify.receiver import Mailbox, Receiver
from tests.programs import needed, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
# a minute is twenty seconds, but not to the diagnosis, whose clock is the real one
SITE = Site(scrape_seconds=1.0, evaluation_seconds=1.0, time_scale=1 / 3)


@pytest.fixture(scope="module")
def incident(tmp_path_factory):
    """A driver with one query, whose sink obeys, watched and paged for by real servers."""
    needed("prometheus-alertmanager")
    folder = tmp_path_factory.mktemp("incident")
    drill, opened = BY_NAME["slow-sink"], []
    injector = Injector(folder, drill.name, random_names(drill, 1), ExitStack(), Stop())
    store(drill, injector, seed=1, lanes=1)
    try:
        with application(drill, injector):
            injector.until((folder / "ready.json").exists, 300, "the start of its query")
            exporter = json.loads((folder / "ready.json").read_text())["url"].removeprefix("http://")
            opened += [receiver := Receiver(), mailbox := Mailbox()]
            lookup = Lookup(exporters=[f"http://{exporter}"])
            opened.append(
                notify := Service(
                    Spool(folder / "queue.db", [sender.name for sender in open_senders([receiver.url, mailbox.url])]),
                    lookup,
                    open_senders([receiver.url, mailbox.url]),
                )
            )
            notify.start()
            opened.append(alertmanager := Alertmanager(folder / "am", f"{notify.url}/alerts", SITE))
            opened.append(prometheus := Prometheus(folder, exporter, SITE, alertmanager.address))
            until(lambda: prometheus.ask("ledgerops_batches_total > 12"), 180, "twelve batches")
            yield injector, prometheus, receiver, mailbox
    finally:
        for each in reversed(opened):
            each.close()


def pages(receiver):
    """What somebody is woken up for, and its end; a ticket of a busy machine is no page."""
    return [sent for sent in receiver.got if sent["title"].startswith(("CRITICAL", "RESOLVED"))]


def text(sent):
    return "\n".join(f"{each['title']}\n{each['body']}" for each in sent)


def states(prometheus, query):
    return {
        (each["metric"]["alertname"], each["metric"]["alertstate"])
        for each in prometheus.ask(f'ALERTS{{query="{query}", severity="critical"}}')
    }


def test_a_query_that_hangs_is_one_page_with_its_cause_and_one_end(incident):
    injector, prometheus, receiver, mailbox = incident
    query = injector.names["main"]
    assert pages(receiver) == []

    receiver.refuse = sys.maxsize  # until the diagnosis has found the cause: in real minutes it has by then
    injector.outside.set(block=True)
    until(lambda: ("LedgerQueryStuck", "pending") in states(prometheus, query), 90, "the pending alert")
    until(lambda: ("LedgerQueryStuck", "firing") in states(prometheus, query), 90, "the firing alert")
    found = f'ledgerops_root_cause{{query="{query}", rule="query-stuck"}} == 1'
    until(lambda: prometheus.ask(found), 90, "the cause")
    receiver.refuse = 0
    until(lambda: pages(receiver) and mailbox.got, 90, "the page")
    [first] = pages(receiver)
    assert first["title"].startswith(f"CRITICAL {query}")
    assert "cause: query-stuck" in first["body"]
    assert len(first["body"].splitlines()) <= 12
    until(lambda: any(subject.startswith(f"CRITICAL {query}") for subject in mailbox.subjects), 90, "the mail")

    injector.outside.set(block=None)
    until(lambda: any(sent["resolved"] for sent in pages(receiver)), 90, "the end")
    until(lambda: any("RESOLVED" in subject for subject in mailbox.subjects), 90, "the mail of the end")
    told = [sent for sent in pages(receiver) if query in sent["title"]]
    assert [sent["resolved"] for sent in told] == [False, True], [sent["title"] for sent in told]
    assert "now: " in told[-1]["body"]


def test_a_driver_that_is_killed_is_a_page_that_claims_nothing(incident):
    injector, prometheus, receiver, _ = incident
    before = len(receiver.got)

    for child in injector.process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # Spark's workers end with its JVM
            child.kill()
    os.kill(injector.process.pid, signal.SIGKILL)

    until(lambda: "LedgerDriverLost" in prometheus.firing(), 90, "the alert")
    until(
        lambda: f"(1): {injector.names['main']}. Nothing has taken its place" in text(receiver.got[before:]),
        90,
        "the page",
    )
    assert "healthy" not in text(receiver.got[before:])
