"""Runs one drill: driver up, baseline, fault, repair, end. The result is a bundle, which is scored separately."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.bundle import Bundle, empty_folder
from ledgerops.drills.harness.drill import WORDS, Drill
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.processes import descendants, send
from ledgerops.errors import UserError

MAX_START_SECONDS = 180.0  # for Spark and the queries
MAX_CLOSE_SECONDS = 60.0  # for the driver to stop gracefully


def run_drill(drill: Drill, folder: Path, seed: int, lanes: int = 1, stop: Stop | None = None) -> Bundle:
    """Runs a drill and writes its bundle to a new folder. `lanes`: how many drills may run at the same time.

    Raises UserError when it could not be run to its end or was stopped.
    """
    empty_folder(folder, "drill.json")
    names = random_names(drill, seed)
    stored = {"drill": drill.name, "seed": seed, "names": names, "settings": {}, "lanes": lanes}
    (folder / "drill.json").write_text(json.dumps(stored) + "\n", "utf-8")  # first of all: it marks the folder as ours
    injector = Injector(folder, drill.name, names, seed, stop)
    with ExitStack() as opened:
        opened.callback(injector.close)
        if drill.prepare is not None:
            stored["settings"] = drill.prepare(injector)
        (folder / "drill.json").write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
        with driver(folder) as process:
            injector.process = psutil.Process(process.pid)
            injector.until((folder / "ready.json").exists, MAX_START_SECONDS, "the start of its queries")
            ready = json.loads((folder / "ready.json").read_text("utf-8"))
            injector.origin, injector.url = ready["origin"], ready["url"]
            bundle = _phases(drill, injector, Bundle(folder))
            (folder / "stop").touch()
            process.wait(MAX_CLOSE_SECONDS)
    if not (folder / "queries.json").exists():
        raise UserError(f"drill {drill.name}: the driver did not stop gracefully; see {folder / 'driver.log'}")
    if drill.effect is not None:
        bundle.note(effect=drill.effect(bundle))
    return bundle


def _phases(drill: Drill, injector: Injector, bundle: Bundle) -> Bundle:
    (injector.folder / "times.json").write_text(json.dumps({"origin": injector.origin}), "utf-8")
    injector.at(drill.onset_seconds)
    bundle.note(injected=time.time())
    injector.control.set(**drill.control)
    if drill.inject is not None:
        drill.inject(injector)
    injector.at(drill.onset_seconds + drill.fault_seconds)
    bundle.note(repaired=time.time())
    injector.control.set(**dict.fromkeys(drill.control))
    if drill.repair is not None:
        drill.repair(injector)
    injector.at(drill.seconds)
    bundle.note(ended=time.time())
    return bundle


@contextmanager
def driver(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The driver process. It and its children, suspended ones included, are killed at the end."""
    command = [sys.executable, "-m", "ledgerops.drills.target", str(folder)]
    with (folder / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=_clean(os.environ)
        )
    try:
        yield process
    except subprocess.TimeoutExpired:
        pass  # the bundle is then incomplete, which is reported
    finally:
        if process.poll() is None:
            below = descendants(process.pid)
            process.kill()  # first, so that it starts none of them again
            send(below, signal.SIGKILL)
        process.wait()


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings that would change the drill."""
    return {name: value for name, value in environ.items() if not name.startswith(("LEDGEROPS_", "SPARK_CONF"))}


def random_names(drill: Drill, seed: int) -> dict[str, str]:
    """A random name for each query, so that no verdict can depend on names."""
    chance = random.Random(f"{drill.name} {seed}")
    found: dict[str, str] = {}
    for role in drill.roles:
        while (name := "_".join(chance.choice(words) for words in WORDS)) in found.values():
            pass
        found[role] = name
    return found
