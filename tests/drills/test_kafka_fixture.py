import pytest

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import broker_of
from ledgerops.errors import UserError


@pytest.fixture
def injector(tmp_path):
    drill = Drill(name="none", id="F0", kind="fault", summary="none", start=lambda app: None)
    made = Injector(tmp_path, drill, {"main": "query"}, 1)
    yield made
    made.close()


def test_a_drill_without_a_broker_is_told_so(injector):
    with pytest.raises(UserError, match="drill none has no broker"):
        broker_of(injector)
