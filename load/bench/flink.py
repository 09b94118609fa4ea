"""Flink's SQL client with its cluster in a JVM of its own: what the ledger's engine is compared with.

Flink comes from PyPI (its libraries only) and the Kafka connector from Maven, into a folder beside the jars of the
ledger: neither is a dependency of ledgerops.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Timer

import psutil

from load.bench.usage import cpu_seconds

VERSION, CONNECTOR = "2.2.0", "5.0.0-2.2"
MAX_STATEMENT_SECONDS = 600.0
DONE = re.compile(r"\[INFO\] (Execute statement succeeded|Complete execution)")
IVY = f"""<ivy-module version="2.0">
  <info organisation="ledgerops" module="flink"/>
  <configurations><conf name="flink"/></configurations>
  <dependencies defaultconf="flink->default">
    <dependency org="org.apache.flink" name="flink-sql-connector-kafka" rev="{CONNECTOR}" transitive="false"/>
    <dependency org="org.apache.flink" name="flink-sql-gateway" rev="{VERSION}" transitive="false"/>
  </dependencies>
</ivy-module>
"""
# A batch of Spark is committed with its state, so Flink keeps its state too, about as often
CONF = """execution: {{target: local, checkpointing: {{interval: 2s, incremental: true, dir: "{checkpoints}"}}}}
parallelism: {{default: 2}}
taskmanager: {{numberOfTaskSlots: 2, memory: {{process: {{size: 2g}}}}}}
rest: {{port: 0}}
"""
OPENED = ("lang", "lang.reflect", "net", "io", "nio", "util", "util.concurrent", "time", "text")


class Flink:
    """Runs SQL statements on two task slots, one after the other. Raises RuntimeError with what Flink says of one."""

    def __init__(self, folder: Path, jars: Sequence[Path]) -> None:
        from ledgerops.servers.java import java_home

        checkpoints = (folder / "flink-checkpoints").as_uri()
        (folder / "config.yaml").write_text(CONF.format(checkpoints=checkpoints), "utf-8")
        opens = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED]
        opens.append("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
        command = [str(java_home() / "bin" / "java"), "-Xmx2g", *opens, "-cp", ":".join(map(str, jars))]
        self._process = subprocess.Popen(
            [*command, "org.apache.flink.table.client.SqlClient", "embedded"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"FLINK_CONF_DIR": str(folder)},
            text=True,
        )
        for setting in ("'table.dml-sync' = 'true'", "'table.local-time-zone' = 'UTC'"):
            self.run(f"SET {setting}")

    def run(self, statement: str) -> float:
        """Waits for the end of a statement. Returns the CPU seconds of the JVM meanwhile."""
        assert self._process.stdin and self._process.stdout
        java = psutil.Process(self._process.pid)
        before = cpu_seconds(java)
        limit = Timer(MAX_STATEMENT_SECONDS, self._process.kill)
        limit.start()
        try:
            self._process.stdin.write(" ".join(statement.split()) + ";\n")
            self._process.stdin.flush()
            said: list[str] = []
            for line in self._process.stdout:
                said.append(line)
                if DONE.search(line):
                    return cpu_seconds(java) - before
                if "[ERROR]" in line:
                    said.append(self._process.stdout.readline())
                    break
        finally:
            limit.cancel()
        raise RuntimeError(f"Flink: {''.join(said).strip()[-800:]}")

    def insert(self, table: str, query: str, backend: str) -> float:
        """Runs a query into `table`, with its state in a backend: `rocksdb` or `hashmap`. Returns as `run` does."""
        self.run(f"SET 'state.backend.type' = '{backend}'")
        return self.run(f"INSERT INTO {table} {query}")

    def close(self) -> None:
        """Ends the JVM."""
        self._process.kill()
        self._process.communicate()


def fetch() -> Sequence[Path]:
    """The jars of the SQL client, downloaded if they are not there. Raises UserError or CalledProcessError."""
    from ledgerops.servers import ivy
    from ledgerops.servers.jars import jars_folder

    folder = jars_folder().parent / f"flink-{VERSION}-{CONNECTOR}"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            work = Path(name) / "flink"
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(work)]
            subprocess.run([*pip, f"apache-flink-libraries=={VERSION}"], check=True)
            settings = os.environ.get("LEDGEROPS_IVY_SETTINGS")
            ivy.retrieve(IVY, ("flink",), work, Path(settings) if settings else None, lambda line: None)
            work.rename(folder)
    return sorted(
        [*folder.glob("pyflink/lib/*.jar"), *folder.glob("pyflink/opt/*.jar"), *folder.glob("jars/flink/*.jar")]
    )
