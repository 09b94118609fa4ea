"""Tries versions of Spark and Python: makes an environment for each, runs queries with known faults in it, and writes
which groups of metrics had samples and which rules named their fault.

An environment takes up to two minutes and 1.5 GB, and is removed again; with uv on the PATH, seconds after the first.
What was found is kept beside this module, so that one version can be tried anew without the others. Interpreters are
found as pythonX.Y on the PATH or under pyenv.

Exit code: 0 when all could be tried, 2 when one could not (no such interpreter, no wheels of a dependency).

Examples:
    python -m load.compatibility --spark 4.2.0 3.5.7 --python 3.11 --write docs/compatibility.md
    python -m load.compatibility --session connect
    python -m load.compatibility --page docs/compatibility.md
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ledgerops.servers.java import java_home
from load.compatibility.probe import FAULTS
from load.compatibility.results import PYTHONS, SESSIONS, SPARKS, Tried, keep, put, read, tables

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 1200.0
PROBE_SECONDS = 600.0
# wheels only: compiling grpcio takes an hour; of Spark and py4j there are sources, which are pure Python
WHEELS = ("--only-binary=:all:", *(f"--no-binary={name}" for name in ("pyspark", "py4j", "ledgerops")))
# a JVM that lives for a minute: compiling its hot code once more costs more than it saves
SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# of Spark's own extra, whose newest versions Spark does not take
LIMITS = ("pandas<3", "setuptools<81")
LIMITS_OF_SPARK_3 = ("pyarrow<20",)  # newer ones ask for a numpy that Spark 3 does not take


ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b")


class NotTried(Exception):
    """An environment cannot be made: the reason, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--spark", nargs="+", default=SPARKS, metavar="VERSION")
    add("--python", nargs="+", default=PYTHONS, metavar="VERSION")
    add("--session", nargs="+", default=SESSIONS, choices=SESSIONS)
    add("--write", type=Path, metavar="PAGE", help="put the table into this page")
    add("--page", type=Path, metavar="PAGE", help="only make the page's table of what is kept")
    args = parser.parse_args(argv)
    failed = False
    for python in args.python if args.page is None else ():
        for spark in args.spark:
            for found in tried(spark, python, args.session):
                if isinstance(found, NotTried):
                    failed = True
                    print(f"Spark {spark}, Python {python}: {found}", file=sys.stderr)
                    continue
                keep(found)
                said = found.reason or f"{len(found.families)} families; {', '.join(found.rules)}"
                print(f"Spark {spark}, {found.session}, Python {python}: {said}", flush=True)
    page = args.page or args.write
    if page is not None:
        page.write_text(put(page.read_text("utf-8"), tables(read())), "utf-8")
    return 2 if failed else 0


def tried(spark: str, python: str, sessions: Sequence[str]) -> list[Tried | NotTried]:
    """What each kind of session came to in one environment."""
    with tempfile.TemporaryDirectory(prefix="compatibility-") as folder:
        try:
            interpreter = environment(Path(folder), spark, python)
        except NotTried as error:
            return [error]
        return [probe(interpreter, spark, python, session) for session in sessions]


def environment(folder: Path, spark: str, python: str) -> Path:
    """The interpreter of a new environment with this Spark, and this checkout. Raises NotTried."""
    own = find_python(python)
    if own is None:
        raise NotTried(f"no interpreter python{python}")
    source = folder / "source"
    shutil.copytree(ROOT / "ledgerops", source / "ledgerops", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    interpreter = folder / "env/bin/python"
    here = str(interpreter)
    if uv := shutil.which("uv"):  # keeps unpacked wheels and links them
        make, install = [uv, "venv", "-q", "--python", own], [uv, "pip", "install", "--python", here]
    else:
        make, install = [own, "-m", "venv"], [here, "-m", "pip", "install"]
    subprocess.run([*make, str(folder / "env")], check=True)
    limits = (*LIMITS, *(LIMITS_OF_SPARK_3 if spark.startswith("3.") else ()))
    command = [*install, "-q", *WHEELS, *limits, f"pyspark[connect]=={spark}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["the installer failed"]
        raise NotTried(next((line for line in reversed(said) if line.startswith("ERROR:")), said[-1]).strip())
    return interpreter


def find_python(version: str) -> str | None:
    """The interpreter of this version: on the PATH, or the newest of pyenv's."""
    if found := shutil.which(f"python{version}"):
        return found
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return max(map(str, root.glob(f"versions/{version}.*/bin/python{version}")), default=None)


def probe(interpreter: Path, spark: str, python: str, session: str) -> Tried | NotTried:
    """Runs the probe in an environment."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGEROPS_", "PYTHON"))}
    java = {
        "JAVA_HOME": str(java_home()),
        "JAVA_TOOL_OPTIONS": SHORT_LIVED_JVM,
        "PYSPARK_PYTHON": str(interpreter),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(interpreter), str(Path(__file__).with_name("probe.py")), session]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False, cwd=folder,
                env={**outside, **java},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return NotTried(f"{session}: no answer within {PROBE_SECONDS:.0f} s")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return NotTried(f"{session}: {reason(done.stderr)}")
    if unnamed := FAULTS.keys() - set(found["rules"]):
        queries = tuple(FAULTS[rule] for rule in unnamed)
        said = [line for line in done.stderr.splitlines() if line.startswith(queries)]
        print("\n".join([f"not named: {', '.join(sorted(unnamed))}", *said]), file=sys.stderr)
    at = datetime.now(UTC).strftime("%Y-%m-%d")
    why, waiting = found.get("reason", ""), found.get("waiting", 0.0)
    return Tried(spark, session, python, found["families"], found["rules"], why, at, waiting)


def reason(stderr: str) -> str:
    """The last line that names an exception, else the last line."""
    lines = stderr.strip().splitlines() or ["no output"]
    return next((line for line in reversed(lines) if ERROR.match(line)), lines[-1])[:300]


if __name__ == "__main__":
    sys.exit(main())
