"""Run as a program, as root, with mounts and a network of its own: the services of docker-compose.yaml without Docker.

Commands, variables, files, host names, ports and health checks are those of the file; the programs are this checkout's
environment and Debian's. Kafka and Postgres are started as their images would. argument: an empty folder. Prints a
JSON object of what came of it.
"""

import json
import os
import pwd
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import yaml

from ledgerops.servers.java import java_home
from ledgerops.servers.kafka import Kafka
from ledgerops.servers.process import Process
from tests.paths import ROOT
from tests.postgres import binaries
from tests.programs import until
from tests.serving import fetched

STACK = yaml.safe_load((ROOT / "docker-compose.yaml").read_text("utf-8"))
SERVICES: Mapping[str, Mapping[str, Any]] = STACK["services"]
JOBS = ("large_credits", "dedup_transactions")
PROGRAMS = {"prometheus": "prometheus", "alertmanager": "prometheus-alertmanager"}  # entry points of other images
# a private address and a default route, as a container has: Alertmanager does not start without. They lead nowhere
NETWORK = ("link set lo up", "address add 172.16.0.2/24 dev lo", "route add default dev lo")
SLOW = 240.0  # seconds for what takes ten on an idle machine
VARIABLE = re.compile(r"\$\{(\w+)(?::?[-?]([^}]*))?\}")


def settings() -> dict[str, str]:
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    return {**dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#"), "JOBS": " ".join(JOBS)}


def filled(text: str) -> str:
    """A text of the file as Compose reads it: with its variables, and with $ for $$."""
    return VARIABLE.sub(lambda at: settings().get(at[1], at[2] or ""), str(text)).replace("$$", "$")


def mount(*options: str | Path) -> None:
    subprocess.run(["mount", *options], check=True)


def bind(source: Path, target: Path, opened: tuple[Path, ...]) -> None:
    """Shows `source` at `target`; folders that are opened are new ones, with the entries of the old."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source in opened:
        target.mkdir(exist_ok=True)
        for each in source.iterdir():
            bind(each, target / each.name, opened)
    elif source.is_dir():
        target.mkdir()
        mount("--rbind", source, target)
    elif source.is_file():
        target.touch()
        mount("--bind", source, target)


def enter(root: Path) -> None:
    """Makes `root` this process's root: the machine's files, with the files and volumes of the services."""
    opened = (Path("/"), Path("/etc"), Path("/etc/prometheus"), Path("/etc/alertmanager"), Path("/home"), Path("/run"))
    root.mkdir()
    mount("-t", "tmpfs", "tmpfs", root)
    bind(Path("/"), root, opened)
    for name in ("hosts", "prometheus/prometheus.yml", "prometheus/rules", "alertmanager/alertmanager.yml"):
        if (root / "etc" / name).exists():
            subprocess.run(["umount", root / "etc" / name], check=True)
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()} {' '.join(SERVICES)}\n")
    (root / "home/ledger").mkdir(exist_ok=True)
    for name in PROGRAMS.keys() | {"secrets", "driver", "load", "notify", "inbox", "spark-worker"}:
        for volume in SERVICES[name].get("volumes", ()):
            if isinstance(volume, str):
                source, place, *_ = volume.split(":")
                target = root / place.removeprefix("/")
                if not source.startswith("."):
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / source).is_dir():
                    target.mkdir(exist_ok=True)
                else:
                    target.touch()
                mount("--bind", ROOT / source, target)
    os.chroot(root)
    os.chdir("/home/ledger")


def environment(name: str) -> dict[str, str]:
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("LEDGEROPS_", "SPARK_", "PY"))}
    path = f"{Path(sys.executable).parent}:{binaries()}:{os.environ['PATH']}"
    own = {key: filled(value) for key, value in SERVICES[name].get("environment", {}).items()}
    return {**bare, "PATH": path, "JAVA_HOME": str(java_home()), **own}


def start(name: str, logs: Path, number: str = "") -> Process:
    command = [filled(word) for word in SERVICES[name]["command"]]
    command = [PROGRAMS[name], *command] if name in PROGRAMS else command
    process = Process(name, command, logs / f"{name}{number}.log", env=environment(name))
    print(f"{name}{number}: {shlex.join(command)}", file=sys.stderr, flush=True)
    if "healthcheck" in SERVICES[name]:
        kind, *words = (filled(word) for word in SERVICES[name]["healthcheck"]["test"])
        test = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        process.wait_until(
            lambda: subprocess.run(test, env=environment(name), capture_output=True).returncode == 0, SLOW
        )
    return process


def ended(name: str, logs: Path) -> int:
    """The exit code of a service that ends by itself."""
    process = start(name, logs)
    until(lambda: not process.alive, SLOW, f"the end of {name}")
    return exit_code(process)


def exit_code(process: Process) -> int:
    return int(process._process.returncode)


def postgres(logs: Path) -> Process:
    """The server, as the image starts it: with the password of its file, and the database of its environment."""
    owner = pwd.getpwnam("nobody")
    home, sockets = Path("/run/postgres"), Path("/run/postgresql")
    own = environment("postgres")
    password = Path(own["POSTGRES_PASSWORD_FILE"]).read_text("utf-8")
    for folder in (home, sockets):
        folder.mkdir(exist_ok=True)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    (home / "password").write_text(password)
    as_owner: dict[str, Any] = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "cwd": "/"}
    options = ["-U", own["POSTGRES_USER"], "--auth=scram-sha-256", f"--pwfile={home / 'password'}", "--no-sync"]
    subprocess.run([binaries() / "initdb", "-D", home / "data", *options], check=True, capture_output=True, **as_owner)
    flags = ["-c", "listen_addresses=*", "-c", f"unix_socket_directories={sockets}"]
    command = [binaries() / "postgres", "-D", home / "data", *flags]
    process = Process("postgres", command, logs / "postgres.log", **as_owner)
    address = f"postgresql://{own['POSTGRES_USER']}:{password}@postgres:5432/postgres"

    def ready() -> bool:
        try:
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {own['POSTGRES_DB']}")
        except psycopg.OperationalError:
            return False
        return True

    process.wait_until(ready, SLOW)
    return process


def rows(job: str) -> int:
    url = filled(SERVICES["driver"]["environment"]["LEDGEROPS_POSTGRES"])
    try:
        with psycopg.connect(url) as connection:
            found = connection.execute(f"SELECT count(*) FROM {job}").fetchone()
    except psycopg.Error:
        return 0
    return int(found[0]) if found else 0


def scraped() -> bool:
    """Whether Prometheus has what the driver exports."""
    found = json.loads(fetched("http://prometheus:9090/api/v1/query?query=ledgerops_query_active"))
    return len(found["data"]["result"]) == len(JOBS)


def main() -> None:
    folder = Path(sys.argv[1])
    for arguments in NETWORK:
        subprocess.run(["ip", *arguments.split()], check=True)
    enter(folder / "root")
    found: dict[str, Any] = {}
    with ExitStack() as stack:

        def served(process: Process) -> Process:
            stack.callback(process.kill)
            return process

        found["secrets"] = ended("secrets", folder)
        served(postgres(folder))
        stack.enter_context(Kafka(folder / "kafka", port=9092))
        served(start("spark-master", folder))
        for number in ("-1", "-2"):
            served(start("spark-worker", folder, number))
        found["topics"] = ended("topics", folder)
        for name in ("inbox", "alertmanager", "prometheus", "notify"):
            served(start(name, folder))
        driver = served(start("driver", folder))
        load = served(start("load", folder))
        until(lambda: all(rows(job) > 0 for job in JOBS), SLOW, "rows in Postgres")
        until(scraped, SLOW, "the driver in Prometheus")
        for name, process in (("load", load), ("driver", driver)):
            process.stop(seconds=60)
            found[name] = exit_code(process)
        found["load says"] = load.last_words()
        found["rows"] = {job: rows(job) for job in JOBS}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
