"""`ledgerops load` while its broker is away."""

import time

from ledgerops.ledger.plan.plan import load_plan
from ledgerops.ledger.plan.record_stream import PlanStream
from ledgerops.load.generator.kafka import KafkaTarget
from ledgerops.load.generator.pacer import produce
from ledgerops.servers.kafka import Kafka
from tests.cli.test_load import ORIGIN, make, plan  # noqa: F401  `plan` is a fixture
from tests.load.generator.expected import expected_records
from tests.topics import read


def test_a_load_waits_for_a_broker_that_is_away(server_jars, tmp_path, plan):  # noqa: F811
    said = []
    with Kafka(tmp_path / "kafka") as broker:
        topic = make(broker, "")
        stream = PlanStream(load_plan(plan, 0.05), ORIGIN)  # 1000 a second
        target = KafkaTarget(broker.client, topic, 5, say=said.append)
        first = broker.pid

        def wait(seconds):
            if broker.pid == first and target.acknowledged >= 1000:
                broker.kill()
            if broker.pid is None and said:
                broker.start()
            time.sleep(seconds)
            return len(said) == 2

        sent = produce(stream, target, records=None, at_once=False, wait=wait)
        target.close()
        expected = expected_records(stream.plan, ORIGIN, sent.records)

        assert said == [f"no broker answers at {broker.servers}; waiting for it", "the broker is back"]
        assert (target.acknowledged, target.refused) == (sent.produced, 0)
        assert {p: each for p, each in expected.items() if each} == read(broker.servers, topic)
