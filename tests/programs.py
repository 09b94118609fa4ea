"""Programs of other projects that tests run for real."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from ledgerops.servers.java import java_home
from tests.paths import ROOT

Found = TypeVar("Found")
SLACK_SECONDS = 4.0  # that a busy machine may take beyond what is waited for


def needed(program: str, *others: str, packaged: bool = True) -> str:
    """Where the first of these is that there is. Without any, the test is skipped, or fails where
    LEDGEROPS_REQUIRE_SERVERS asks for all that Debian has a package of."""
    for name in (program, *others):
        if found := shutil.which(name):
            return found
    if packaged and os.environ.get("LEDGEROPS_REQUIRE_SERVERS") == "1":
        pytest.fail(f"{program} is absent, and LEDGEROPS_REQUIRE_SERVERS=1 asks for it")
    pytest.skip(f"{program} is absent")


def without_settings(**more: str) -> dict[str, str]:
    """The variables of this machine but for the settings of ledgerops, and with these."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LEDGEROPS_")} | more


def for_spark(**more: str) -> dict[str, str]:
    """The same for a driver: with a Java, this Python, and an address that needs no network."""
    own = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return without_settings(**own, **more)


def until(look: Callable[[], Found], seconds: float = 120.0, what: str = "") -> Found:
    """The first true answer of `look`, which is asked again and again, for at most so long.

    A busy machine may be ten times slower than an idle one: the limit is for what never comes true.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or found!r}"
        time.sleep(0.05)
    return found


def finished(*command: object, timeout: float = 240, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that was run to its end: what it printed, and its exit code. Further options are those of Popen."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, **options)


def python(*args: object, timeout: float = 240, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python in the checkout, with these variables besides those of this machine."""
    known = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **env}
    return finished(sys.executable, *args, timeout=timeout, cwd=ROOT, env=known)


@contextmanager
def busy_cores() -> Iterator[None]:
    """Other processes take all cores of a small machine until the end of the block.

    Eight at most: where a container may use two of many cores, two for each would leave it nothing for minutes.
    """
    count = 2 * min(os.cpu_count() or 1, 4)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def skip_without_flag(program: str, flag: str) -> None:
    """Skips the test where the installed version of a program does not know a flag."""
    shown = finished(needed(program), "--help")
    if flag.strip() not in shown.stdout + shown.stderr:
        pytest.skip(f"this {program} does not know --{flag.strip()}")
