import pytest

from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import broker_of
from ledgerops.errors import UserError


@pytest.fixture
def injector(tmp_path):
    made = Injector(tmp_path, "none", {"main": "query"}, 1)
    yield made
    made.close()


def test_a_drill_without_a_broker_is_told_so(injector):
    with pytest.raises(UserError, match="drill none has no broker"):
        broker_of(injector)
