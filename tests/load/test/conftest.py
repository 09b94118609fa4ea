"""Measured runs, as the simulated system gives them."""

import pytest

from ledgerops.load.test import plans
from tests.load.test.simulated import System


@pytest.fixture
def calm():
    """Half of what the system carries, for 30 s."""
    return System().measured(plans.at_rate(12_000, 2.0))


@pytest.fixture
def overloaded():
    """A third more than it carries, for a minute."""
    return System().measured(plans.at_rate(32_000, 2.0), seconds=60.0)
