import pickle
import socket
import time
from pathlib import Path

import pytest

from ledgerops.common.kafka import KafkaClient, reach, read_client, read_properties
from ledgerops.errors import UserError
from tests.refusals import refusal_of
from tests.tables import cases

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "ledger",
    "sasl.password": "open sesame",
}
KEY = "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"
LOCKED_KEY = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"


@pytest.fixture
def put(tmp_path):
    """Writes a file and returns its path as text."""

    def write(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_without_options_both_clients_get_the_servers_only_and_further_ones_of_one_client_come_on_top():
    client = KafkaClient("a:9092,b:9092")
    assert client.librdkafka() == {"bootstrap.servers": "a:9092,b:9092"}
    assert client.librdkafka(**{"group.id": "x"}) == {"bootstrap.servers": "a:9092,b:9092", "group.id": "x"}
    assert client.spark() == {"kafka.bootstrap.servers": "a:9092,b:9092"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
@cases(
    "password, written",
    ("plain", "open sesame", "open sesame"),
    ("with quotes and backslashes", 'a"b\\c; x="y"', 'a\\"b\\\\c; x=\\"y\\"'),
)
@pytest.mark.parametrize("option", ["sasl.mechanism", "sasl.mechanisms"])
def test_user_and_password_become_the_login_that_java_wants(mechanism, module, password, written, option):
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "ledger"}
    login = f'org.apache.kafka.common.security.{module} required username="ledger" password="{written}";'

    assert KafkaClient("a:1", {**options, option: mechanism, "sasl.password": password}).spark() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": login,
    }


def test_certificates_and_key_become_pem_stores(put):
    options = {
        "security.protocol": "SSL",
        "ssl.ca.location": put("ca.pem", CERTIFICATE),
        "ssl.certificate.location": put("cert.pem", CERTIFICATE),
        "ssl.key.location": put("key.pem", LOCKED_KEY),
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
        "client.id": "ledger",
    }

    assert KafkaClient("a:1", options).spark() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": options["ssl.ca.location"],
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": CERTIFICATE,
        "kafka.ssl.keystore.key": LOCKED_KEY,
        "kafka.ssl.key.password": "secret",
        "kafka.ssl.endpoint.identification.algorithm": "",
        "kafka.client.id": "ledger",
    }


def test_a_password_for_a_key_that_is_open_does_not_reach_java(put):
    options = {"ssl.key.location": put("key.pem", KEY), "ssl.key.password": "secret"}
    assert "kafka.ssl.key.password" not in KafkaClient("a:1", options).spark()


def test_a_key_that_java_cannot_read_is_refused(put):
    path = put("key.pem", "-----BEGIN RSA PRIVATE KEY-----\n")
    assert refusal_of(KafkaClient("a:1", {"ssl.key.location": path}).spark) == (
        f"ssl.key.location {path} is not a PKCS#8 key, the only format that Spark's client reads; "
        "convert it: openssl pkcs8 -topk8 -in OLD -out NEW"
    )


def test_repr_and_str_show_the_servers_only():
    assert repr(KafkaClient("a:1", SASL)) == str(KafkaClient("a:1", SASL)) == "KafkaClient(servers='a:1')"


def test_a_client_travels_to_other_processes():
    client = KafkaClient("a:1", SASL)
    assert pickle.loads(pickle.dumps(client)) == client


@pytest.mark.parametrize("servers", ["a:9092", "127.0.0.1:1,b.c:2", "[::1]:9092"])
def test_lists_of_servers_are_taken(servers):
    assert KafkaClient(servers).servers == servers


@pytest.mark.parametrize("servers", ["", "a", "a:", "a:b", "a:1,", "a:1 b:2", "http://a:1"])
def test_what_is_no_list_of_servers_is_refused(servers):
    assert refusal_of(KafkaClient, servers) == (f"not a list of Kafka servers: {servers!r}; write host:port,host:port")


def test_a_properties_file_is_read_with_its_comments_and_blanks(put):
    path = put(
        "client.properties", "# a cluster\n\nsecurity.protocol = SSL\n  # more\nsasl.password=a=b # not a comment\n"
    )
    assert read_properties(Path(path)) == {"security.protocol": "SSL", "sasl.password": "a=b # not a comment"}


REFUSED = {
    # lines that are none are named and not quoted
    "client.id=x\nopen sesame\n": "cannot read {}:2: not a line of the form name=value",
    "Client Id=x\n": "cannot read {}:1: not a line of the form name=value",
    "client.id=\n": "cannot read {}:1: client.id has no value",
    "client.id=a\nclient.id=b\n": "cannot read {}:2: client.id is given twice",
    "sasl.jaas.config=x password=y;\n": (
        "cannot read {}:1: sasl.jaas.config cannot be used here: write sasl.username and sasl.password"
    ),
    # options that cannot work are refused before anything starts
    "foo.bar=1\n": 'cannot use {}: no such configuration property: "foo.bar"',
    "security.protocol=TLS\n": 'cannot use {}: invalid value "TLS" for configuration property "security.protocol"',
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n": (
        "cannot use {}: failed to create admin client: sasl.username and sasl.password must be set"
    ),
    "sasl.username=u\nsasl.password=p\n": (
        "{}: sasl.mechanism GSSAPI does not use a user and password; these do: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    ),
    "security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n": (
        "{}: cannot read ssl.ca.location /nowhere/ca.pem: no such file or directory"
    ),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=REFUSED)
def test_a_file_that_cannot_be_used_is_refused(put, text, said):
    path = put("client.properties", text)
    assert refusal_of(read_client, "a:1", Path(path)) == said.format(path)


def test_a_good_file_is_taken_and_without_one_there_are_no_options(put):
    text = "".join(f"{name}={value}\n" for name, value in SASL.items())
    assert read_client("a:1", Path(put("client.properties", text))) == KafkaClient("a:1", SASL)
    assert read_client("a:1", None) == KafkaClient("a:1")


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert refusal_of(read_client, "a:1", tmp_path / "none") == (
        f"cannot read {tmp_path / 'none'}: no such file or directory"
    )


def test_a_refused_connection_is_told_in_time_and_without_secrets():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can take it, nobody answers
        servers = f"127.0.0.1:{free.getsockname()[1]}"
        began = time.monotonic()
        line = refusal_of(reach, KafkaClient(servers, SASL), seconds=60)

    assert line == f"cannot reach Kafka at {servers}: connection refused"
    assert time.monotonic() - began < 50


def test_one_that_listens_and_is_silent_is_waited_for():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(UserError, match="cannot reach Kafka"):
            reach(KafkaClient(f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:1"), seconds=4)

    assert time.monotonic() - began >= 4
