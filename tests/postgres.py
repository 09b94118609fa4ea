"""A real Postgres: the machine's own binaries, a free port of 127.0.0.1, a database `ledger`, no password."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ledgerops.errors import UserError
from ledgerops.servers.process import Process, Server, free_port
from tests.programs import finished

DEBIAN = Path("/usr/lib/postgresql")
DATABASE = USER = "ledger"
# no socket file (its path would be too long in a deep folder), and nothing that only an unplugged machine would need
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class Postgres(Server):
    """A server with its log in `folder`, started on entering the context and ended on leaving it.

    Postgres refuses to run as root: there it runs as `postgres` or `nobody`, who may not reach `folder`. Its data are
    in a temporary folder that goes with the context. Raises UserError when the binaries are missing.
    """

    gentle_signal = signal.SIGINT  # its fast shutdown: it would wait for its clients otherwise

    def __init__(self, folder: Path) -> None:
        self.port, self._log = free_port(), folder / "server.log"
        self.url = f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}"
        self._bin, self._as_owner = binaries(), _as_owner()
        self._place = tempfile.TemporaryDirectory(prefix="ledgerops-postgres-", ignore_cleanup_errors=True)
        self._data = Path(self._place.name) / "data"

    def __enter__(self) -> Postgres:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        Path(self._place.name).chmod(0o755)
        self._data.mkdir(mode=0o700)
        if self._as_owner:
            os.chown(self._data, self._as_owner["user"], self._as_owner["group"])
        options = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale", "--no-instructions"]
        command = [self._bin / "initdb", "-D", self._data, "-U", USER, *options]
        done = finished(*command, stdin=subprocess.DEVNULL, **self._as_owner)
        assert done.returncode == 0, done.stderr
        self.start()
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._place.cleanup()

    def start(self) -> None:
        """Starts the server, again on its port and data, and returns when it takes connections."""
        if self.pid is not None:
            return
        settings = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": self.port}.items()]
        command: list[str | Path] = [self._bin / "postgres", "-D", self._data, *settings]
        self._process = Process("Postgres", command, self._log, **self._as_owner)
        self._process.wait_until(self._answers, 60.0)  # it takes less than one second

    def _answers(self) -> bool:
        import psycopg

        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _connect(self) -> Any:
        import psycopg

        url = self.url.removesuffix(DATABASE) + "postgres"
        return psycopg.connect(url, autocommit=True, connect_timeout=5)


def asked(url: str, question: str) -> list[Any]:
    """The rows that answer a question to the database at an address."""
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(question).fetchall()


def binaries() -> Path:
    """The folder of initdb and postgres: that on the PATH, else Debian's newest. UserError when there is none."""
    versions = [folder for folder in DEBIAN.glob("*/bin") if folder.parent.name.isdecimal()]
    versions.sort(key=lambda folder: int(folder.parent.name), reverse=True)
    found = shutil.which("initdb", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, versions)]))
    if found is None:
        raise UserError("no Postgres server found; install one (Debian: apt-get install postgresql)")
    return Path(found).resolve().parent


def _as_owner() -> dict[str, Any]:
    """Options of Popen for the user that runs the server: this one, or one who is not root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            owner = pwd.getpwnam(name)
            return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": "/"}
    raise UserError("Postgres refuses to run as root, and neither the user postgres nor the user nobody exists")
