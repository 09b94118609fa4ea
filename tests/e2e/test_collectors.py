"""The collector of offsets while its broker dies and returns."""

import re
import time

from ledgerops.common.kafka import reach
from ledgerops.servers.kafka import Kafka
from tests import topics
from tests.agent.brokers import Queries, closed  # noqa: F401
from tests.agent.test_kafka_heads import collector, told


def test_a_broker_that_dies_is_told_with_since_when_and_its_return_too(tmp_path, server_jars, capfd):
    with Kafka(tmp_path / "kafka") as broker:
        from confluent_kafka.admin import NewTopic

        topics.make(reach(broker.client), NewTopic("t", 1, 1))
        queries = Queries()
        queries.read("a", {"t": {"0": 0}})
        box, asking = collector(queries, broker.client)
        asking.collect()
        assert "error" not in told(box)["a"]
        broker.kill()
        before = time.time()
        asking.collect()
        after, first = time.time(), told(box)["a"]
        asking.collect()
        second = told(box)["a"]
        broker.start()
        end = time.monotonic() + 60
        while True:
            asking.collect()
            if "error" not in (back := told(box)["a"]):
                break
            assert time.monotonic() < end

    assert re.search("connection refused|connection reset|timed out|disconnected", first["error"])
    assert before <= first["unreachable_since"] == second["unreachable_since"] <= after
    assert back["latest"] == {"t": {"0": 0}} and "unreachable_since" not in back
    assert capfd.readouterr() == ("", ""), "librdkafka keeps its log to itself"
