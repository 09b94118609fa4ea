"""A standalone Spark cluster of processes that do not see each other's files: each worker has a mount namespace of its
own, with its work folder and its Python environment in a folder that is another one for everybody else."""

import sys
import sysconfig
from pathlib import Path
from typing import Self

import pyspark
import pytest

from ledgerops.servers.java import java_home
from ledgerops.servers.process import Process, free_port
from tests.paths import ROOT
from tests.programs import finished, needed, without_settings

START_SECONDS = 180.0  # for what takes ten on an idle machine
# ways to get a mount namespace: as root, and as an ordinary user where the kernel lets them be root in a namespace
NAMESPACES = (("--mount",), ("--map-root-user", "--mount"))
MOUNT = 'mount -t tmpfs tmpfs "$1"'
# in the namespace: an empty file system in place of the folder, a virtual environment on it, and the worker
WORKER = f"""set -e
{MOUNT}
"$2" -m venv --without-pip "$1/env"
printf '%s\\n' "$3" > "$("$1/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/cluster.pth"
exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 \\
  --cores 1 --memory 1g --work-dir "$1/work" "$4"
"""


def private_mounts(folder: Path) -> list[str]:
    """The start of a command that runs with mounts of its own. Where the kernel grants none, as in many containers, the
    test is skipped: no package brings them."""
    reason = ""
    for options in NAMESPACES:
        command = [needed("unshare"), *options, "--propagation", "private"]
        tried = finished(*command, "sh", "-c", MOUNT, "mount", folder)
        if tried.returncode == 0:
            return command
        reason = tried.stderr.strip()
    pytest.skip(f"no mount namespaces: {reason}")


class Cluster:
    """A master and two workers of one core each. `private` is a folder that each of them and the driver has alone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.private = folder, folder / "private"
        self.private.mkdir(parents=True)
        self._unshare = private_mounts(self.private)
        self.master = f"spark://127.0.0.1:{free_port()}"
        self.python = self.private / "env/bin/python"  # of the executors; the driver has none there
        home, own = Path(pyspark.__file__).parent, {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        self.env = without_settings(SPARK_HOME=str(home), JAVA_HOME=str(java_home()), **own)
        self.processes: list[Process] = []

    def __enter__(self) -> Self:
        port = self.master.rpartition(":")[2]
        spark_class = Path(self.env["SPARK_HOME"], "bin/spark-class")
        command = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
        try:
            self._start("master", [spark_class, *command], "I have been elected leader")
            for name in ("worker-1", "worker-2"):
                self.start_worker(name)
        except BaseException:
            self.close()
            raise
        return self

    def start_worker(self, name: str) -> Process:
        """A worker that has registered."""
        packages = f"{sysconfig.get_path('purelib')}\n{ROOT}"
        arguments = ["sh", "-c", WORKER, "worker", self.private, sys.executable, packages, self.master]
        return self._start(name, [*self._unshare, *arguments], "Successfully registered with master")

    def _start(self, name: str, command: list[str | Path], ready: str) -> Process:
        log = self.folder / f"{name}.log"
        process = Process(name, list(map(str, command)), log, env=self.env)
        self.processes.append(process)
        process.wait_until(lambda: ready in log.read_text("utf-8", "replace"), START_SECONDS)
        return process

    def close(self) -> None:
        """Ends all processes, the newest first."""
        for process in reversed(self.processes):
            process.kill()

    def __exit__(self, *_: object) -> None:
        self.close()
