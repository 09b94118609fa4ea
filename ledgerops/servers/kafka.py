"""A real Kafka broker: one process, KRaft, free ports of 127.0.0.1, from the jars that `ledgerops jars` fetched."""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.servers.jars import broker_jars
from ledgerops.servers.java import java_home, options_in
from ledgerops.servers.process import Process, Server, free_port

HEAP = "-Xmx512m"
MAX_START_SECONDS = 60.0  # it takes 3 s on an idle machine
MAX_TOOL_SECONDS = 60.0
_LOGGING = """<Configuration status="ERROR">
  <Appenders>
    <RollingFile name="file" fileName="{log}" filePattern="{log}.%i">
      <PatternLayout pattern="%d{{ISO8601}} %p %c{{1}}: %m%n"/>
      <SizeBasedTriggeringPolicy size="20MB"/>
      <DefaultRolloverStrategy max="2"/>
    </RollingFile>
  </Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="file"/></Root></Loggers>
</Configuration>
"""


class Kafka(Server):
    """A broker with its data in `folder`, started on entering the context and ended on leaving it.

    It listens on `port` of 127.0.0.1, or on any free one. A folder with data of an earlier broker is used again. The
    variable KAFKA_OPTS has further options for its JVM, as for Kafka's own scripts.

    `properties` are added to its server.properties or replace what is there; the listener for clients is called
    CLIENT. `options` are the client's (see `KafkaClient`), for a broker that is configured to ask for a password. With
    `proxied` it has a second listener on the port `behind`, whose clients are sent to the port `proxied`: a proxy there
    has all of their traffic, and the traffic of others is not touched.
    Raises UserError when jars or Java are missing, when KAFKA_OPTS cannot be read, or when the broker does not start.
    """

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        proxied: int | None = None,
        port: int | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.port, self._controller = port or free_port(), free_port()
        self.behind = None if proxied is None else free_port()
        self._proxied = proxied
        self.servers = f"127.0.0.1:{self.port}"
        self.client = KafkaClient(self.servers, options or {})
        self.log = self.folder / "server.log"
        self._properties = {**self._defaults(), **(properties or {})}

    def __enter__(self) -> Kafka:
        self._prepare()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        # the data are not read again, so a clean shutdown gains nothing
        self.kill()

    def start(self) -> None:
        """Starts the broker, again on its port and data, and returns when it serves clients."""
        if self.pid is not None:
            return
        options = [HEAP, "-Xms128m", f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}"]
        options += options_in("KAFKA_OPTS")
        command = self._java("kafka.Kafka", self.folder / "server.properties", options=options)
        process = Process("Kafka", command, self.folder / "out.log", self.log, cwd=self.folder)
        self._process = process

        def ready() -> bool:
            try:
                reach(self.client, 0.5)
            except UserError:
                return False
            return True

        process.wait_until(ready, MAX_START_SECONDS)

    def tool(self, name: str, *args: str) -> str:
        """What one of Kafka's own command line tools prints, given by its class. Raises UserError when the tool fails.
        For example "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"."""
        command = self._java(name, *args, options=["-Xmx256m", "-XX:TieredStopAtLevel=1"])
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAX_TOOL_SECONDS,
            cwd=self.folder, check=False,
        )  # fmt: skip
        if done.returncode:
            lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
            raise UserError(
                f"{name.rpartition('.')[2]} failed: {lines[0] if lines else f'exit code {done.returncode}'}"
            )
        return done.stdout

    def _java(self, main: str, *args: str | Path, options: list[str]) -> list[str | Path]:
        path = ":".join(map(str, broker_jars()))
        return [java_home() / "bin" / "java", *options, "-cp", path, main, *args]

    def _prepare(self) -> None:
        """Writes the configuration and, in a new folder, formats the storage."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.xml").write_text(_LOGGING.format(log=self.log), "utf-8")
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties.items()), "utf-8")
        properties.chmod(0o600)  # it may hold passwords
        if not (self.folder / "data" / "meta.properties").exists():
            cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            # StorageTool reads a leading - as an option
            self.tool("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties))

    def _defaults(self) -> dict[str, Any]:
        ports = () if self._proxied is None else (self.behind, self._proxied)
        behind, proxied = [f",PROXIED://127.0.0.1:{port}" for port in ports] or ("", "")
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CLIENT://{self.servers}{behind},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"CLIENT://{self.servers}{proxied}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
            "log.dirs": "data",  # in its working folder, whose name Java would read as Latin-1
            "auto.create.topics.enable": "false",
            # one broker: no second one for a replica, and no member of a group worth waiting for
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # a killed broker may come back only when its lease is over, by default after 9 s
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "500",
            # the default buffer is a quarter of this heap
            "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        }
