"""A broker for trying things out, which stays until it is stopped and keeps its data."""

import re
import select
import signal
import subprocess
import sys

import pytest
from confluent_kafka.admin import NewTopic

from ledgerops.common.kafka import KafkaClient, reach
from tests import topics

SLOW = 600  # seconds for what takes ten on an idle machine


@pytest.fixture
def broker(tmp_path):
    """Starts `ledgerops broker`, and gives the process and the broker's address."""
    started = []

    def start(*argv):
        command = [sys.executable, "-u", "-W", "ignore", "-m", "ledgerops", "broker", *argv]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        started.append(process)
        ready, _, _ = select.select([process.stdout], [], [], SLOW)
        assert ready, "the broker was not ready in time"
        found = re.fullmatch(r"Kafka is ready at (127\.0\.0\.1:\d+); stop with Ctrl-C\n", process.stdout.readline())
        assert found
        return process, found[1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.timeout(3 * SLOW)
@pytest.mark.spark  # a JVM, though not Spark's
def test_a_broker_stays_until_it_is_stopped_and_keeps_its_topics(broker):
    first, servers = broker("--port", "0", "--folder", "kafka")
    topics.make(reach(KafkaClient(servers), SLOW), NewTopic("t", 3, 1))
    first.send_signal(signal.SIGINT)

    assert first.wait(SLOW) == 0
    assert first.stdout.read().endswith("stopped Kafka\n")

    second, servers = broker("--port", "0", "--folder", "kafka")

    assert len(reach(KafkaClient(servers), SLOW).list_topics("t", timeout=SLOW).topics["t"].partitions) == 3
    second.send_signal(signal.SIGTERM)
    assert second.wait(SLOW) == 0
