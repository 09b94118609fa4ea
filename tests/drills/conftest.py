from contextlib import ExitStack

import pytest

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.injector import Injector


@pytest.fixture
def injector(tmp_path):
    with ExitStack() as opened:
        yield Injector(tmp_path, "none", {"main": "query"}, opened, Stop())
