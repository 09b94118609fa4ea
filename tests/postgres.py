"""A real Postgres: the machine's own binaries, a free port of 127.0.0.1, a database `ledger`, no password."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledgerops.errors import UserError
from ledgerops.servers.process import Process, Server, free_port

MAX_START_SECONDS = 60.0  # it takes less than one
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
    """A server with its data in `folder`, started on entering the context and ended on leaving it.

    Postgres refuses to run as root: there it runs as `postgres` or `nobody`, and where that user cannot reach `folder`
    its data are in a temporary folder that goes with the context. Raises UserError when the binaries are missing or
    the server does not start.
    """

    gentle_signal = signal.SIGINT  # its fast shutdown: it would wait for its clients otherwise

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.port = free_port()
        self.url = f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}"
        self.log = self.folder / "server.log"
        self._bin = binaries()
        self._owner = _owner()
        self._data = self.folder / "data"
        self._temporary: Path | None = None

    def __enter__(self) -> Postgres:
        self._prepare()
        self.start()
        with self._connect() as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
                connection.execute(f"CREATE DATABASE {DATABASE}")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def start(self) -> None:
        """Starts the server, again on its port and data, and returns when it takes connections."""
        if self.pid is not None:
            return
        settings = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": self.port}.items()]
        command: list[str | Path] = [self._bin / "postgres", "-D", self._data, *settings]
        self._process = Process("Postgres", command, self.log, **self._as_owner())
        self._process.wait_until(self._answers, MAX_START_SECONDS)

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._owner:
            if not all(each.stat().st_mode & 0o001 for each in (self.folder, *self.folder.parents)):
                self._temporary = Path(tempfile.mkdtemp(prefix="ledgerops-postgres-"))
                self._temporary.chmod(0o755)
                self._data = self._temporary / "data"
            self._data.mkdir(mode=0o700, exist_ok=True)
            os.chown(self._data, self._owner.pw_uid, self._owner.pw_gid)
        if (self._data / "PG_VERSION").exists():
            return
        command: list[str | Path] = [self._bin / "initdb", "-D", self._data, "-U", USER, "--auth=trust", "--no-sync"]
        command += ["--encoding=UTF8", "--no-locale", "--no-instructions"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **self._as_owner())
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise UserError(f"initdb failed: {lines[-1]}")

    def _as_owner(self) -> dict[str, Any]:
        if not self._owner:
            return {}
        return {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": [], "cwd": "/"}

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


def binaries() -> Path:
    """The folder of initdb and postgres: that on the PATH, else Debian's newest. UserError when there is none."""
    for folder in _folders():
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise UserError("no Postgres server found; install one (Debian: apt-get install postgresql)")


def _folders() -> Iterator[Path]:
    on_path = shutil.which("initdb")
    if on_path:
        yield Path(on_path).resolve().parent
    versions = [folder for folder in DEBIAN.glob("*/bin") if folder.parent.name.isdecimal()]
    yield from sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)


def _owner() -> pwd.struct_passwd | None:
    """The user that runs the server; None: the user of this process."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise UserError("Postgres refuses to run as root, and neither the user postgres nor the user nobody exists")
