"""Tries versions of Spark and Python: makes an environment for each, runs queries with known faults in it, and writes
which groups of metrics had samples and which rules named their fault.

The wheel of each Spark version is built once, in up to two minutes and 0.5 GB. An environment takes a minute and
1 GB, with uv on the PATH seconds, and is removed again. What is most used comes first: classic sessions and older
Pythons. What was found is kept beside this module after each environment: --resume tries only what is not kept, and
one version can be tried again without the others. Interpreters are found as pythonX.Y on the PATH or under pyenv.

Exit code: 0 when all could be tried, 2 when one could not (no such interpreter, no wheels of a dependency).

Examples:
    python -m load.compatibility --spark 4.2.0 3.5.7 --python 3.11 --write docs/compatibility.md
    python -m load.compatibility --resume --wheels /var/tmp/wheels
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
from itertools import product
from pathlib import Path

from ledgerops.servers.java import java_home
from load.compatibility.probe import FAULTS
from load.compatibility.results import PYTHONS, SESSIONS, SPARKS, Key, Tried, keep, put, read, tables

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 1200.0
PROBE_SECONDS = 600.0
# wheels only: compiling grpcio takes an hour; of py4j there are sources, which are pure Python
WHEELS = ("--only-binary=:all:", *(f"--no-binary={name}" for name in ("py4j", "ledgerops")))
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
    add("--resume", action="store_true", help="leave out what is kept")
    add("--wheels", type=Path, metavar="FOLDER", help="keep the wheels of Spark here (default: a temporary folder)")
    add("--write", type=Path, metavar="PAGE", help="put the table into this page")
    add("--page", type=Path, metavar="PAGE", help="only make the page's table of what is kept")
    args = parser.parse_args(argv)
    kept = read() if args.resume else {}
    cells = () if args.page is not None else by_use(args.spark, args.session, args.python)
    failed = False
    with tempfile.TemporaryDirectory(prefix="compatibility-") as temporary:
        for cell in (cell for cell in cells if cell not in kept):
            try:
                found = tried(*cell, args.wheels or Path(temporary))
            except NotTried as error:
                failed = True
                print(f"{name(*cell)}: {error}", file=sys.stderr, flush=True)
                continue
            keep(found)
            said = found.reason or f"{len(found.families)} families; {', '.join(found.rules)}"
            print(f"{name(*cell)}: {said}", flush=True)
    page = args.page or args.write
    if page is not None:
        page.write_text(put(page.read_text("utf-8"), tables(read())), "utf-8")
    return 2 if failed else 0


def by_use(sparks: Sequence[str], sessions: Sequence[str], pythons: Sequence[str]) -> list[Key]:
    """All combinations; the first session and Python of every Spark version come first."""
    cells = product(sparks, enumerate(sessions), enumerate(pythons))
    ranked = sorted(cells, key=lambda cell: (cell[1][0] + cell[2][0], cell[1][0]))
    return [(spark, session, python) for spark, (_, session), (_, python) in ranked]


def name(spark: str, session: str, python: str) -> str:
    return f"Spark {spark}, {session}, Python {python}"


def tried(spark: str, session: str, python: str, wheels: Path) -> Tried:
    """What the probe saw in a new environment, which is removed again. Raises NotTried."""
    with tempfile.TemporaryDirectory(prefix="compatibility-") as folder:
        return probe(environment(Path(folder), spark, python, wheels), spark, session, python)


def spark_wheel(version: str, folder: Path) -> Path:
    """The wheel of this Spark version, built in `folder` unless it is there. Raises NotTried."""
    wanted = f"pyspark-{version}-*.whl"
    if not (there := list(folder.glob(wanted))):
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-cache-dir", "--no-deps", "-w", str(folder)]
        _install([*build, "--no-binary=pyspark", f"pyspark=={version}"])
        there = list(folder.glob(wanted))
    return there[0]


def _install(command: Sequence[str]) -> None:
    """Runs an installer. Raises NotTried with its last error."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["the installer failed"]
        raise NotTried(next((line for line in reversed(said) if line.startswith("ERROR:")), said[-1]).strip())


def environment(folder: Path, spark: str, python: str, wheels: Path) -> Path:
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
    wheel = spark_wheel(spark, wheels)
    _install([*install, "-q", *WHEELS, *limits, f"pyspark[connect] @ {wheel.resolve().as_uri()}", str(source)])
    return interpreter


def find_python(version: str) -> str | None:
    """The interpreter of this version: on the PATH, or the newest of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    own = max(map(str, root.glob(f"versions/{version}.*/bin/python{version}")), default=None)
    # on the PATH may be a shim of pyenv, which fails unless that version is chosen
    return next((found for found in (shutil.which(f"python{version}"), own) if found and _runs(found)), None)


def _runs(interpreter: str) -> bool:
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


def probe(interpreter: Path, spark: str, session: str, python: str) -> Tried:
    """Runs the probe in an environment. Raises NotTried where it prints nothing."""
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
            raise NotTried(f"no answer within {PROBE_SECONDS:.0f} s") from None
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise NotTried(reason(done.stderr)) from None
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
