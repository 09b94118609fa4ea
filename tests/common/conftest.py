import pytest

from tests.common.served import Served


@pytest.fixture
def serve():
    running = []

    def start(*args, **options):
        running.append(Served(*args, **options))
        return running[-1]

    yield start
    for served in running:
        served.close()
