import time

import pytest

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker
from ledgerops.errors import UserError
from ledgerops.ledger.sources.kafka import heads

PLAN = "seed: 1\nstart: now\nphases: [{shape: constant, rate: 100}]\npartitions: {count: 2}\n"


@pytest.fixture
def injector(tmp_path):
    drill = Drill(name="none", id="F0", kind="fault", summary="none", start=lambda app: None)
    made = Injector(tmp_path, drill, {"main": "query"}, 1)
    yield made
    made.close()


def sent(broker):
    return sum(heads(broker.kafka.client, {"t": 2}).values())


def until(holds):
    limit = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_a_drill_without_a_broker_is_told_so(injector):
    with pytest.raises(UserError, match="drill none has no broker"):
        broker_of(injector)


@pytest.mark.spark
def test_a_load_is_sent_past_the_proxy_until_it_is_stopped_and_what_was_read_or_not_can_be_deleted(
    server_jars, injector
):
    settings = open_broker(injector, {"t": 2}, {"retention.ms": "60000"}, {"t": PLAN})
    broker = broker_of(injector)
    assert settings["kafka"] == f"127.0.0.1:{broker.proxy.port}" == broker.through.servers

    broker.proxy.set(down=True)
    before = sent(broker)
    until(lambda: sent(broker) > before + 50)
    broker.producers["t"].stop()
    count = sent(broker)
    left = broker.delete_read_and_unread("t")
    assert sum(left.values()) == count

    broker.proxy.heal()
    broker.produce("t", PLAN, proxied=True)
    until(lambda: sent(broker) > count + 50)
    assert list(broker.producers) == ["t", "t 1"]
