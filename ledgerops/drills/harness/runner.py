"""Conducts one drill: driver up, baseline, fault, repair, end. What is left is a bundle, not a verdict."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.errors import UserError

READY = 180.0  # seconds for Spark and the queries to start
CLOSE = 60.0  # seconds for the driver to end in order
WORDS = (
    ("amber", "brisk", "calm", "dusky", "eager", "faint", "grand", "humble", "ivory", "jolly", "keen", "lucid"),
    ("badger", "cedar", "delta", "ember", "falcon", "grove", "harbor", "island", "juniper", "kestrel", "lagoon"),
)


def conduct(drill: Drill, folder: Path, seed: int, lanes: int = 1, stop: Stop | None = None) -> Bundle:
    """Runs a drill into a new folder, one of `lanes` at a time, unless it is asked to stop.

    Raises UserError when it could not be run to its end: it then proves nothing.
    """
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "drill.json").exists():
            raise UserError(f"{folder} holds something else than a drill; give another folder with --out")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    names = random_names(drill, seed)
    told = {"drill": drill.name, "seed": seed, "names": names, "settings": {}, "lanes": lanes}
    (folder / "drill.json").write_text(json.dumps(told) + "\n", "utf-8")  # first of all: it marks the folder as ours
    surgeon = Surgeon(folder, drill, names, seed, stop)
    with ExitStack() as opened:
        opened.callback(surgeon.close)
        if drill.prepare is not None:
            told["settings"] = drill.prepare(surgeon)
        (folder / "drill.json").write_text(json.dumps(told, indent=1) + "\n", "utf-8")
        with driver(folder) as process:
            surgeon.process = psutil.Process(process.pid)
            surgeon.until((folder / "ready.json").exists, READY, "the start of its queries")
            ready = json.loads((folder / "ready.json").read_text("utf-8"))
            surgeon.origin, surgeon.url = ready["origin"], ready["url"]
            bundle = _phases(drill, surgeon, Bundle(folder))
            (folder / "stop").touch()
            process.wait(CLOSE)
    if not (folder / "queries.json").exists():
        raise UserError(f"drill {drill.name}: the driver did not end in order; see {folder / 'driver.log'}")
    if drill.effect is not None:
        bundle.note(effect=drill.effect(bundle))
    return bundle


def _phases(drill: Drill, surgeon: Surgeon, bundle: Bundle) -> Bundle:
    (surgeon.folder / "times.json").write_text(json.dumps({"origin": surgeon.origin}), "utf-8")
    surgeon.at(drill.onset)
    bundle.note(injected=time.time())
    if drill.inject is not None:
        drill.inject(surgeon)
    surgeon.at(drill.onset + drill.fault_seconds)
    bundle.note(repaired=time.time())
    if drill.repair is not None:
        drill.repair(surgeon)
    surgeon.at(drill.seconds)
    bundle.note(ended=time.time())
    return bundle


@contextmanager
def driver(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The driver's process; all that is left of it is killed at the end, stopped processes too."""
    command = [sys.executable, "-m", "ledgerops.drills.target", str(folder)]
    with (folder / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=_clean(os.environ)
        )
    try:
        yield process
    except subprocess.TimeoutExpired:
        pass  # said by what is missing in the bundle
    finally:
        family = [psutil.Process(process.pid), *_children(process.pid)] if process.poll() is None else []
        for each in family:
            try:
                each.send_signal(signal.SIGKILL)
            except psutil.Error:
                pass
        process.wait()


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Without settings that would make the drill another on each machine."""
    return {name: value for name, value in environ.items() if not name.startswith(("LEDGEROPS_", "SPARK_CONF"))}


def random_names(drill: Drill, seed: int) -> dict[str, str]:
    """A random name for each query, so that no verdict can go by names."""
    chance = random.Random(f"{drill.name} {seed}")
    found: dict[str, str] = {}
    for role in drill.roles:
        while (name := "_".join(chance.choice(words) for words in WORDS)) in found.values():
            pass
        found[role] = name
    return found
