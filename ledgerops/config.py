"""Settings: ledgerops.toml, then LEDGEROPS_* variables, then keyword arguments or flags; the later wins."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from ledgerops.errors import UserError, did_you_mean
from ledgerops.input_files import local_path, text_of

FILE = "ledgerops.toml"
PREFIX = "LEDGEROPS_"
PAGE = "https://github.com/ledgerops/ledgerops/blob/main/docs/config.md"
SITE = "render"  # a table of the same file, for `ledgerops render`
FRESHNESS_OBJECTIVE_SECONDS = 60.0  # how old results may be where nothing else is configured
MAX_NUMBER = 2**63  # in a setting: a longer one cannot be printed
MAX_SECONDS = 31_536_000.0  # threads cannot wait for much longer
# variables with the same prefix that are no settings of the observer
OTHER_VARIABLES = (
    *("CONFIG", "DATA", "POSTGRES", "JARS", "IVY_SETTINGS", "NOTIFY_SENDERS", "NOTIFY_TOKEN"),
    *("CLIENT_CERTIFICATE", "CLIENT_KEY"),
    *("REQUIRE_DATA", "REQUIRE_SERVERS"),
)
# Kubernetes gives every pod variables of a service that is named ledgerops; LEDGEROPS_PORT=tcp://... is one of them
KUBERNETES = re.compile(r"SERVICE_|PORT_\d+_")
KUBERNETES_PORT = "tcp://"
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # such as s3a://bucket/folder, and not C:/folder
# of /recording: the exporter's settings of these names, for whoever judges the same records
MUTE_HEADER = "X-Ledgerops-Mute"
FRESHNESS_HEADER = "X-Ledgerops-Freshness-Objective-Seconds"
TEXTS = tuple[str, ...]
# what is expected of a setting, by its type
WORDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    TEXTS: "a list of texts",
}
CHOICES = {"encoding": ("json", "protobuf"), "temporality": ("cumulative", "delta")}
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def setting(default: Any, doc: str) -> Any:
    """A field of a class of settings; `doc` says what it does."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting with its default; `doc` in the metadata of a field says what it does."""

    enabled: bool = setting(True, "Whether anything is observed; if not, the application runs as without ledgerops.")
    host: str = setting("127.0.0.1", "Address that the exporter binds; 0.0.0.0 opens it to the network.")
    port: int = setting(9464, "Port of the exporter; 0 takes any free one.")
    recording: str | None = setting(
        None,
        "Folder of the recording. While its file system hangs or is full, up to 8 MB wait in memory; an application "
        "that attaches while it hangs waits itself. Without it nothing is written.",
    )
    recording_segment_bytes: int = setting(
        16 * 1024 * 1024, "Size at which the recording starts a new file; at most a quarter of the whole."
    )
    recording_total_bytes: int = setting(
        256 * 1024 * 1024, "Size of the whole recording; beyond it the oldest files are deleted."
    )
    series_per_query: int = setting(500, "Maximum number of series per query; further partitions are left out.")
    series_total: int = setting(
        40_000, "Maximum number of series of all queries of a driver; those of the worst partitions are kept."
    )
    ended_totals_seconds: float = setting(
        900.0, "Seconds for which /metrics keeps the totals of a query that has ended."
    )
    exception_text: bool = setting(
        False,
        "Whether exceptions are kept unmasked. By default their long numbers, quoted values, addresses and "
        "credentials are masked before they are recorded or shown. Java's stack frames are left out in any case.",
    )
    tasks_collector: bool = setting(True, "Whether task summaries are read from Spark.")
    tables_collector: bool = setting(
        True, "Whether the history of the Delta and Iceberg tables that queries read and write is followed."
    )
    driver_code_collector: bool = setting(
        True,
        "Whether threads of the driver are looked at: of Python for the line at which a foreachBatch function is, and "
        "of the JVM for what a batch waits for that does not end.",
    )
    tasks_interval: float = setting(5.0, "Seconds between two samples of the tasks of a query.")
    host_interval: float = setting(10.0, "Seconds between two samples of the machine, its processes and the executors.")
    kafka_servers: str | None = setting(
        None, "Kafka brokers (host:port,host:port) from which backlog and retention are read."
    )
    kafka_config: str | None = setting(
        None, "Properties file with librdkafka options for these brokers, such as security."
    )
    kafka_interval: float = setting(2.0, "Seconds between two samples of the brokers' offsets.")
    commit_group: str | None = setting(
        None,
        "Consumer group to which the offsets of a query are committed after each batch, such as ledgerops.{query}.",
    )
    watchdog_interval: float = setting(1.0, "Seconds between two checks for stuck and vanished queries.")
    freshness_objective_seconds: float = setting(
        FRESHNESS_OBJECTIVE_SECONDS, "Freshness objective: maximum age of results, in seconds."
    )
    tls_certificate: str | None = setting(None, "PEM file with the exporter's certificate; turns TLS on.")
    tls_key: str | None = setting(None, "PEM file with the certificate's private key.")
    tls_client_ca: str | None = setting(
        None, "PEM file with the CA of client certificates; every request then needs one."
    )
    basic_auth_user: str | None = setting(None, "User name that every request must send.")
    basic_auth_password_file: str | None = setting(None, "File with the password of that user.")
    bearer_token_file: str | None = setting(None, "File with a bearer token that every request must send.")
    ui_url: str | None = setting(
        None, "Address of a Spark UI, to read tasks and executors there instead of in the driver."
    )
    app: str | None = setting(
        None,
        "Name of the application, the label `app` of every series, which keeps equal query names of two applications "
        "apart. By default it is spark.app.name.",
    )
    otlp_endpoint: str | None = setting(
        None,
        "Base address of an OTLP/HTTP receiver to which metrics and root causes are pushed, such as "
        "http://collector:4318; /v1/metrics and /v1/logs are added.",
    )
    otlp_headers_file: str | None = setting(
        None, "File with HTTP headers for that receiver, one `Name: value` a line, such as its API key."
    )
    otlp_interval: float = setting(30.0, "Seconds between two exports; the end of a query exports at once.")
    otlp_encoding: str = setting("json", "How exports are written: json, or protobuf, which needs the extra otlp.")
    otlp_temporality: str = setting(
        "cumulative", "Whether counters are sent as cumulative totals or as the delta since the previous export."
    )
    expected_queries: tuple[str, ...] = setting((), "Names of the queries that should run; absent ones are reported.")
    mute: tuple[str, ...] = setting(
        (),
        "Rules whose findings are listed as muted and count for nothing else: `rule:query` for one query, such as "
        "slow-sink:orders, or `rule` for all.",
    )

    @property
    def url(self) -> str:
        """Where a command on the same machine reaches the exporter. Raises UserError when the port can be any."""
        if self.port == 0:
            raise UserError("port is set to 0, any free port; give the URL of the exporter")
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return web_address(bool(self.tls_certificate), host, self.port)


def web_address(secure: bool, host: str, port: int) -> str:
    """http://127.0.0.1:9464, https://[::1]:9464"""
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def load(file: Path | str | None = None, environ: Mapping[str, str] | None = None, /, **overrides: object) -> Config:
    """The configuration. Raises UserError that names the file, variable or argument and its key.

    `file` defaults to ledgerops.toml in the working directory, which may be absent; a named file must exist. An
    override of None counts as not given.
    """
    environ = os.environ if environ is None else environ
    path = Path(file) if file is not None else settings_file(environ)
    known: dict[str, Field[Any]] = {each.name: each for each in fields(Config)}
    values: dict[str, object] = {}
    if path is not None:
        for key, value in read_toml(path).items():
            if key == SITE and isinstance(value, dict):
                continue
            values[key] = typed(Config, key, value, str(path))
    values |= _variables(known, environ)
    for key, given in overrides.items():
        if given is not None or key not in known:
            values[key] = typed(Config, key, given, "arguments")
    return _checked(Config(**values))  # type: ignore[arg-type]


def settings_file(environ: Mapping[str, str]) -> Path | None:
    """The file that LEDGEROPS_CONFIG names, which must exist, else ledgerops.toml in the working directory, if any."""
    named = environ.get("LEDGEROPS_CONFIG")
    return Path(named) if named else Path(FILE) if Path(FILE).is_file() else None


def switched_off() -> bool:
    """Whether the file or a variable has `enabled` off. False for settings that are wrong: `attach` says so."""
    try:
        return not load().enabled
    except UserError:
        return False


def check_variables(environ: Mapping[str, str]) -> list[str]:
    """A line for each LEDGEROPS_ variable that nothing reads. Raises UserError for one with an impossible value."""
    known = {each.name: each for each in fields(Config)}
    _variables(known, environ)
    names = [*map(str.upper, known), *OTHER_VARIABLES]
    lines = []
    for name in sorted(environ):
        key = name.removeprefix(PREFIX).upper()
        if name.startswith(PREFIX) and key not in names and not KUBERNETES.match(key):
            near = get_close_matches(key, names, n=1)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else f"{PAGE} lists the settings"
            lines.append(f"variable {name} is unknown and ignored; {hint}")
    return lines


def _variables(known: Mapping[str, Field[Any]], environ: Mapping[str, str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, text in environ.items():
        key = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX) and key in known and not (key == "port" and text.startswith(KUBERNETES_PORT)):
            values[key] = typed(Config, key, _from_text(known[key], text), f"variable {name}")
    return values


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds. Raises UserError for a file that cannot be read or is no TOML."""
    try:
        return tomllib.loads(text_of(path))
    except RecursionError:
        raise UserError(f"cannot read {path}: nested too deeply") from None
    except ValueError as error:  # of TOML, and of numbers with thousands of digits
        raise UserError(f"cannot read {path}: {str(error)[:1].lower()}{str(error)[1:]}") from None


def _from_text(setting: Field[Any], text: str) -> object:
    kind = _types(Config)[setting.name]
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        return text
    if kind is bool:
        return text.lower() in YES if text.lower() in (*YES, *NO) else text
    if kind == TEXTS:
        return [name.strip() for name in text.split(",") if name.strip()]
    return text or None


def typed(settings: Any, key: str, value: object, where: str, table: str = "") -> object:
    """The value of a setting of a class of settings, in the type that it has there. Raises UserError that says `where`,
    with the name of the `table` and a dot before the key."""
    known, name = {each.name: each.default for each in fields(settings)}, table + key
    if key not in known:
        hint = did_you_mean(key, known, f"the settings are {', '.join(sorted(known))}")
        raise UserError(f"{where}: no setting {name!r}; {hint}")
    kind = _types(settings)[key]
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise UserError(f"{where}: {name} is too large")
    if value is None and known[key] is None:
        return None
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, str | Path):
        return str(value)
    if kind == TEXTS and isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise UserError(f"{where}: {name} must be {WORDS[kind]}, not {value!r:.60}")


@cache
def _types(settings: Any) -> dict[str, object]:
    """The type of each setting, without None."""
    hints = get_type_hints(settings)
    return {name: get_args(hint)[0] if NoneType in get_args(hint) else hint for name, hint in hints.items()}


def _checked(config: Config) -> Config:
    """Raises UserError for values of the right type that are out of range or contradict each other."""
    if not 0 <= config.port <= 65535:
        raise UserError(f"port must be between 0 and 65535, not {config.port}")
    for name in (
        "tasks_interval", "host_interval", "kafka_interval", "watchdog_interval", "freshness_objective_seconds",
        "ended_totals_seconds", "otlp_interval",
    ):  # fmt: skip
        if not getattr(config, name) > 0:
            raise UserError(f"{name} must be above 0, not {getattr(config, name):g}")
        if getattr(config, name) > MAX_SECONDS:
            raise UserError(f"{name} must be at most a year ({MAX_SECONDS:.0f}), not {getattr(config, name):g}")
    for name in ("series_per_query", "series_total", "recording_segment_bytes", "recording_total_bytes"):
        if getattr(config, name) < 1:
            raise UserError(f"{name} must be at least 1, not {getattr(config, name)}")
    if config.recording and ADDRESS.match(config.recording):
        folder = local_path(config.recording)
        if folder is None:
            named = re.sub("//.*@", "//", config.recording)  # without a user's secret
            raise UserError(
                f"recording must be a folder of this machine, not {named!r:.60}; for an object store mount "
                "it, or copy the recording afterwards"
            )
        config = replace(config, recording=str(folder))
    for name in ("kafka_config", "commit_group"):
        if getattr(config, name) and not config.kafka_servers:
            raise UserError(f"{name} needs kafka_servers")
    if config.otlp_endpoint and not config.otlp_endpoint.startswith(("http://", "https://")):
        raise UserError(f"otlp_endpoint must start with http:// or https://, not {config.otlp_endpoint!r:.60}")
    if config.otlp_headers_file and not config.otlp_endpoint:
        raise UserError("otlp_headers_file needs otlp_endpoint")
    for name, choices in CHOICES.items():
        if (given := getattr(config, f"otlp_{name}")) not in choices:
            raise UserError(f"otlp_{name} must be {' or '.join(choices)}, not {given!r:.60}")
    if config.commit_group and "{query}" not in config.commit_group:
        raise UserError(
            f"commit_group must contain {{query}}, not {config.commit_group!r:.60}: "
            "two queries in one group would overwrite each other's offsets"
        )
    if config.tls_key and not config.tls_certificate:
        raise UserError("tls_key needs tls_certificate")
    if config.tls_client_ca and not config.tls_certificate:
        raise UserError("tls_client_ca needs tls_certificate: client certificates need TLS")
    if bool(config.basic_auth_user) != bool(config.basic_auth_password_file):
        raise UserError("set both basic_auth_user and basic_auth_password_file, or neither")
    return config
