"""Brokers that ask for a password, and that cannot start. That data outlive their end is in test_load.py."""

import pytest

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.servers.kafka import Kafka

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_a_broker_with_passwords_lets_in_who_has_one(server_jars, tmp_path):
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ledger"}
    users = 'username="ledger" password="open \\"sesame" user_ledger="open \\"sesame";'
    properties = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        # a properties file halves the backslashes
        "listener.name.client.plain.sasl.jaas.config": f"{LOGIN} {users}".replace("\\", "\\\\"),
    }
    with Kafka(tmp_path / "kafka", properties, {**options, "sasl.password": 'open "sesame'}) as own:
        assert reach(own.client).list_topics(timeout=10).brokers
        with pytest.raises(UserError) as error:
            reach(KafkaClient(own.servers, {**options, "sasl.password": "wrong"}))

    assert str(error.value).startswith(f"cannot reach Kafka at {own.servers}: ")
    assert "uthentication failed" in str(error.value)
    assert "wrong" not in str(error.value)


def test_a_broker_that_cannot_start_says_why(server_jars, tmp_path):
    with pytest.raises(UserError) as error, Kafka(tmp_path / "kafka", {"log.dirs": "/dev/null/x"}):
        pass
    assert "failed: " in str(error.value) or "stopped while starting" in str(error.value)
