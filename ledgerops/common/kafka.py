"""How a Kafka cluster is reached: addresses and security, given once and passed to librdkafka and to Spark.

Options have librdkafka's names, as in a client.properties of kcat: `security.protocol`, `sasl.mechanism`,
`sasl.username`, `sasl.password`, `ssl.ca.location`, ... Spark's Kafka client is Java's, whose names differ;
https://kafka.apache.org/documentation/#security and librdkafka's CONFIGURATION.md are the two sources.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledgerops.errors import UserError, cannot_read
from ledgerops.input_files import read_text, text_of

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = {"PLAIN": PLAIN, "SCRAM-SHA-256": SCRAM, "SCRAM-SHA-512": SCRAM}
# what one of the two clients would refuse, or obey without the other
REFUSED = {
    "bootstrap.servers": "give it with --bootstrap-servers",
    "group.id": "Spark creates a group for each query",
    "auto.offset.reset": "use --start of the command",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "sasl.jaas.config": "write sasl.username and sasl.password",
    **dict.fromkeys(
        ("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type", "ssl.ca.pem"),
        "write ssl.ca.location with a PEM file",
    ),
    **dict.fromkeys(
        ("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
        "write ssl.certificate.location and ssl.key.location with PEM files",
    ),
    "ssl.certificate.pem": "write ssl.certificate.location with a PEM file",
    "ssl.key.pem": "write ssl.key.location with a PEM file",
    "enable.ssl.certificate.verification": "Spark's client always verifies certificates; write ssl.ca.location",
}
# how long every address may refuse before we give up: a broker takes longer than that to start
MAX_REFUSED_SECONDS = 3.0
_SERVERS = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5}(,(\[[0-9a-fA-F:]+\]|[^\s:,/]+):\d{1,5})*")


@dataclass(frozen=True)
class KafkaClient:
    """`servers` is "host:port,host:port". The options may hold secrets: repr and every error leave them out."""

    servers: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", dict(self.options))
        if not _SERVERS.fullmatch(self.servers):
            raise UserError(f"not a list of Kafka servers: {self.servers!r}; write host:port,host:port")
        for name in self.options:
            if name in REFUSED:
                raise UserError(f"the Kafka option {name} cannot be used: {REFUSED[name]}")
        mechanism = self._mechanism
        if "sasl.username" in self.options and mechanism not in LOGIN:
            raise UserError(
                f"sasl.mechanism {mechanism} does not use a user and password; these do: {', '.join(LOGIN)}"
            )

    @property
    def _mechanism(self) -> str:
        return self.options.get("sasl.mechanism") or self.options.get("sasl.mechanisms") or "GSSAPI"

    def librdkafka(self, **more: Any) -> dict[str, Any]:
        """The configuration of a confluent-kafka client; `more` are further options, as `**{"group.id": "x"}`."""
        return {"bootstrap.servers": self.servers, **self.options, **more}

    def spark(self) -> dict[str, str]:
        """The options of Spark's Kafka source and sink. Raises UserError when a key or certificate cannot be read."""
        java = {"bootstrap.servers": self.servers}
        for name, value in self.options.items():
            java.update(self._in_java(name, value))
        return {f"kafka.{name}": value for name, value in java.items()}

    def _in_java(self, name: str, value: str) -> dict[str, str]:
        match name:
            case "sasl.mechanisms":
                return {"sasl.mechanism": value}
            case "sasl.password":
                return {}
            case "sasl.username":
                password = self.options.get("sasl.password", "")
                login = f"{LOGIN[self._mechanism]} required username={_quoted(value)} password={_quoted(password)};"
                return {"sasl.jaas.config": login}
            case "ssl.ca.location":
                if value == "probe":  # librdkafka searches the machine's usual places, Java its own
                    return {}
                _pem(name, value)
                return {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
            case "ssl.certificate.location":
                return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": _pem(name, value)}
            case "ssl.key.location":
                return {"ssl.keystore.key": _private_key(value)}
            case "ssl.key.password":
                key = self.options.get("ssl.key.location")
                # Java takes a password for an open key as an error, librdkafka overlooks it
                return {name: value} if key and "ENCRYPTED" in _private_key(key) else {}
            case "ssl.endpoint.identification.algorithm":
                return {name: "" if value == "none" else value}
        return {name: value}


def read_client(servers: str, config: Path | None, check_options: bool = True) -> KafkaClient:
    """The client with the options of a properties file: `name=value` lines, comments after `#` at a line's start.

    Raises UserError with file and line, and with `check_options` when librdkafka refuses one of the options or their
    combination.
    """
    plain = KafkaClient(servers)
    if config is None:
        return plain
    options = read_properties(config)
    try:
        client = KafkaClient(servers, options)
        client.spark()
    except UserError as error:
        raise UserError(f"{config}: {error}") from None
    if check_options:
        _try(client, config)
    return client


def read_properties(path: Path) -> dict[str, str]:
    """The options in a properties file. A line that is refused is never quoted: it may hold a password."""
    options: dict[str, str] = {}
    for number, line in enumerate(text_of(path, "utf-8-sig").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, sign, value = (part.strip() for part in line.partition("="))
        where = f"cannot read {path}:{number}"
        if not sign or not re.fullmatch(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*", name):
            raise UserError(f"{where}: not a line of the form name=value")
        if not value:
            raise UserError(f"{where}: {name} has no value")
        if name in options:
            raise UserError(f"{where}: {name} is given twice")
        if name in REFUSED:
            raise UserError(f"{where}: {name} cannot be used here: {REFUSED[name]}")
        options[name] = value
    return options


def reach(client: KafkaClient, seconds: float = 8.0) -> Any:
    """A confluent-kafka AdminClient of a cluster that has answered. Raises UserError with the reason when none does
    within so many seconds, or when all refuse."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    reasons: list[str] = []
    settings = client.librdkafka(
        **{"error_cb": lambda error: reasons.append(str(error.str())), "log_level": 0, "socket.timeout.ms": 5000}
    )
    try:
        admin = AdminClient(settings)
    except KafkaException as error:
        raise UserError(f"the Kafka client rejects the options: {reason_of(client, error)}") from None
    began = time.monotonic()
    end = began + seconds
    while True:
        try:
            if admin.list_topics(timeout=max(0.1, min(1.0, end - time.monotonic()))).brokers:
                return admin
            text = "it has no broker yet"
        except KafkaException as error:
            admin.poll(0)
            text = reason_of(client, reasons[0] if reasons else error)
        nobody_listens = time.monotonic() - began >= MAX_REFUSED_SECONDS and _refused(reasons)
        if time.monotonic() >= end or _permanent(reasons) or nobody_listens:
            raise UserError(f"cannot reach Kafka at {client.servers}: {text}") from None


def _refused(reasons: list[str]) -> bool:
    """Whether all addresses have answered, by nothing but a refusal."""
    others = [reason for reason in reasons if "are down" not in reason]  # reported once none is left to try
    return len(others) < len(reasons) and all("Connection refused" in reason for reason in others)


def _permanent(reasons: list[str]) -> bool:
    return any("uthentication" in reason or "certificate" in reason for reason in reasons)


def _plain(text: str) -> str:
    """librdkafka's reason without the addresses and states around it."""
    text = re.sub(r"^\S+?/(bootstrap|\d+): ", "", text.replace("\n", " "))
    text = re.sub(r" \(after \d+ms in state .*\)$", "", text)
    text = re.sub(r"^Connect to \S+ failed: ", "", text)
    return text[:1].lower() + text[1:]


def _try(client: KafkaClient, config: Path) -> None:
    """Has librdkafka judge names and values, if it is installed; it does not connect before it is asked something."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return
    try:
        AdminClient({**client.options, "log_level": 0})
    except KafkaException as error:
        raise UserError(f"cannot use {config}: {reason_of(client, error)}") from None


def reason_of(client: KafkaClient, error: Any) -> str:
    """What a KafkaException, a KafkaError or its text says, plain and without secrets."""
    told = error.args[0] if isinstance(error, Exception) else error
    return without_secrets(client, _plain(str(told.str()) if hasattr(told, "str") else str(told)))


def without_secrets(client: KafkaClient, text: str) -> str:
    """The text with each password, user name, secret and token of the client's options replaced by ***."""
    for name, value in client.options.items():
        if "password" in name or "username" in name or "secret" in name or "token" in name:
            text = text.replace(value, "***")
    return text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pem(name: str, path: str) -> str:
    try:
        return read_text(Path(path))
    except UnicodeDecodeError:
        raise UserError(f"{name} {path} is not a PEM file") from None
    except OSError as error:
        raise cannot_read(f"{name} {path}", error) from None


def _private_key(path: str) -> str:
    text = _pem("ssl.key.location", path)
    if not re.search(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----", text):
        raise UserError(
            f"ssl.key.location {path} is not a PKCS#8 key, the only format that Spark's client reads; "
            "convert it: openssl pkcs8 -topk8 -in OLD -out NEW"
        )
    return text
