"""What takes minutes, or kills, or needs a JVM, a broker or a browser of its own: `make e2e`, not `make test`."""

from pathlib import Path

import pytest

from tests.ledger.conftest import feed, job_session

__all__ = ["feed", "job_session"]  # the fixtures of jobs, for those whose driver is killed
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
