"""Drivers that notify asks, and a service of notify."""

import pytest

from ledgerops.notify.lookup import Lookup
from ledgerops.notify.senders import Webhook
from ledgerops.notify.service import Service
from ledgerops.notify.spool import Spool
from tests.notify.receiver import Receiver


@pytest.fixture
def elsewhere():
    """A driver on an address that is not trusted."""
    made = Receiver("127.0.0.2")
    yield made
    made.close()


@pytest.fixture
def driver():
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def spooled(tmp_path):
    """Opens the queue of a service."""
    return lambda *senders, **options: Spool(tmp_path / "queue.db", senders, **options)


@pytest.fixture
def notify(receiver, spooled):
    """Begins a service, which sends to the receiver."""
    running = []

    def begin(senders=None, lookup=None, **options):
        senders = [Webhook(receiver.url)] if senders is None else senders
        running.append(Service(spooled(*(each.name for each in senders)), lookup or Lookup(), senders, **options))
        running[-1].start()
        return running[-1]

    yield begin
    for service in running:
        service.close()
