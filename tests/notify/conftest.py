"""Drivers that notify asks."""

import pytest

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
