import pickle
import socket
import time

import pytest

from ledgerops.common.kafka import KafkaClient, reach, read_client, read_properties
from ledgerops.errors import UserError

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
def properties(tmp_path):
    """Writes a properties file and returns its path."""

    def write(text):
        path = tmp_path / "client.properties"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def pem(tmp_path):
    """Writes a PEM file and returns its path as text."""

    def write(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_without_options_both_clients_get_the_servers_only():
    client = KafkaClient("a:9092,b:9092")

    assert client.librdkafka() == {"bootstrap.servers": "a:9092,b:9092"}
    assert client.spark() == {"kafka.bootstrap.servers": "a:9092,b:9092"}


def test_further_options_of_one_client_come_on_top():
    assert KafkaClient("a:1").librdkafka(**{"group.id": "x"}) == {"bootstrap.servers": "a:1", "group.id": "x"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
def test_user_and_password_become_the_login_that_java_wants(mechanism, module):
    assert KafkaClient("a:1", {**SASL, "sasl.mechanism": mechanism}).spark() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f'{module} required username="ledger" password="open sesame";',
    }


def test_quotes_and_backslashes_of_a_password_stay_inside_the_login():
    options = {"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": 'a"b\\c; x="y"'}

    assert KafkaClient("a:1", options).spark() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="u" password="a\\"b\\\\c; x=\\"y\\"";',
    }


def test_certificates_and_key_become_pem_stores(pem):
    options = {
        "security.protocol": "SSL",
        "ssl.ca.location": pem("ca.pem", CERTIFICATE),
        "ssl.certificate.location": pem("cert.pem", CERTIFICATE),
        "ssl.key.location": pem("key.pem", LOCKED_KEY),
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


def test_a_password_for_a_key_that_is_open_does_not_reach_java(pem):
    options = {"ssl.key.location": pem("key.pem", KEY), "ssl.key.password": "secret"}

    assert "kafka.ssl.key.password" not in KafkaClient("a:1", options).spark()


def test_a_key_that_java_cannot_read_is_refused(pem):
    path = pem("key.pem", "-----BEGIN RSA PRIVATE KEY-----\n")

    with pytest.raises(UserError) as error:
        KafkaClient("a:1", {"ssl.key.location": path}).spark()

    assert str(error.value) == (
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
    with pytest.raises(UserError) as error:
        KafkaClient(servers)

    assert str(error.value) == f"not a list of Kafka servers: {servers!r}; write host:port,host:port"


def test_a_properties_file_is_read_with_its_comments_and_blanks(properties):
    path = properties("# a cluster\n\nsecurity.protocol = SSL\n  # more\nsasl.password=a=b # not a comment\n")

    assert read_properties(path) == {"security.protocol": "SSL", "sasl.password": "a=b # not a comment"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("client.id=x\nopen sesame\n", "2: not a line of the form name=value", id="no sign"),
        pytest.param("Client Id=x\n", "1: not a line of the form name=value", id="no name"),
        pytest.param("client.id=\n", "1: client.id has no value", id="no value"),
        pytest.param("client.id=a\nclient.id=b\n", "2: client.id is given twice", id="twice"),
        pytest.param(
            "sasl.jaas.config=x password=y;\n",
            "1: sasl.jaas.config cannot be used here: write sasl.username and sasl.password",
            id="a name of Java's",
        ),
    ],
)
def test_a_bad_line_is_named_and_not_quoted(properties, text, said):
    path = properties(text)

    with pytest.raises(UserError) as error:
        read_client("a:1", path)

    assert str(error.value) == f"cannot read {path}:{said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("foo.bar=1\n", 'cannot use {}: no such configuration property: "foo.bar"', id="unknown name"),
        pytest.param(
            "security.protocol=TLS\n",
            'cannot use {}: invalid value "TLS" for configuration property "security.protocol"',
            id="unknown value",
        ),
        pytest.param(
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n",
            "cannot use {}: failed to create admin client: sasl.username and sasl.password must be set",
            id="no user",
        ),
        pytest.param(
            "sasl.username=u\nsasl.password=p\n",
            "{}: sasl.mechanism GSSAPI does not use a user and password; these do: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
            id="a user without a mechanism",
        ),
        pytest.param(
            "security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n",
            "{}: cannot read ssl.ca.location /nowhere/ca.pem: no such file or directory",
            id="no such certificate",
        ),
    ],
)
def test_options_that_cannot_work_are_refused_before_anything_starts(properties, text, said):
    path = properties(text)

    with pytest.raises(UserError) as error:
        read_client("a:1", path)

    assert str(error.value) == said.format(path)


def test_a_good_file_is_taken(properties):
    text = "".join(f"{name}={value}\n" for name, value in SASL.items())

    assert read_client("a:1", properties(text)) == KafkaClient("a:1", SASL)


def test_without_a_file_there_are_no_options():
    assert read_client("a:1", None) == KafkaClient("a:1")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError) as error:
        read_client("a:1", tmp_path / "none")

    assert str(error.value) == f"cannot read {tmp_path / 'none'}: no such file or directory"


def test_a_refused_connection_is_told_in_time_and_without_secrets():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can take it, nobody answers
        servers = f"127.0.0.1:{free.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(UserError) as error:
            reach(KafkaClient(servers, SASL), seconds=60)

    assert str(error.value) == f"cannot reach Kafka at {servers}: connection refused"
    assert time.monotonic() - began < 50


def test_one_that_listens_and_is_silent_is_waited_for():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(UserError, match="cannot reach Kafka"):
            reach(KafkaClient(f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:1"), seconds=4)

    assert time.monotonic() - began >= 4
