from contextlib import ExitStack, closing

import pytest

from tests.common.served import Served


@pytest.fixture
def serve():
    """Starts a server, which ends with the test."""
    with ExitStack() as running:
        yield lambda *args, **options: running.enter_context(closing(Served(*args, **options)))
