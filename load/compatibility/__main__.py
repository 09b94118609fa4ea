"""Tries versions of Spark and Python: makes an environment for each, runs queries with known faults in it, and writes
which metrics had samples and which rules named their fault.

The wheel of each Spark version is built once, in up to two minutes and 0.5 GB. An environment takes a minute and
1 GB, with uv on the PATH seconds, and is removed again. What was found is kept beside this module after each
environment: --resume tries only what is not kept, and one version can be tried again without the others. Interpreters
are found as pythonX.Y on the PATH or under pyenv. Where a package that Spark needs has no version for a Python, the
installer's words are what was found. One command for classic sessions and one for Connect can run at the same time.

Exit code: 0 when all could be tried, 2 when one could not (no such interpreter, no answer).

Examples:
    python -m load.compatibility --spark 4.2.0 3.5.7 --python 3.11 --write docs/compatibility.md
    python -m load.compatibility --resume --wheels /var/tmp/wheels --session connect
    python -m load.compatibility --page docs/compatibility.md
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from ledgerops.drills.scoring.report import today
from ledgerops.drills.scoring.sections import put
from ledgerops.servers.java import SHORT_LIVED, java_home
from load.compatibility.environments import EXTRA, MAX_REASON_CHARACTERS, NotTried, Unsolvable, Wheels, environment
from load.compatibility.probe import FAULTS
from load.compatibility.results import (
    MARK,
    PYTHONS,
    SESSIONS,
    SPARKS,
    Tried,
    keep,
    read,
    tables,
    unmeasured,
)

PROBE_SECONDS = 600.0
ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception)\b")


def main(argv: Sequence[str] | None = None) -> int:
    """Tries the environments that are asked for. Returns the exit code."""
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
    cells = () if args.page is not None else product(args.spark, args.session, args.python)
    failed = False
    with tempfile.TemporaryDirectory(prefix="compatibility-") as temporary:
        wheels = Wheels(args.wheels or Path(temporary), Path(temporary))
        for cell in (cell for cell in cells if cell not in kept):
            try:
                found = tried(*cell, wheels)
            except NotTried as error:
                failed = True
                print(f"{name(*cell)}: {error}", file=sys.stderr, flush=True)
                continue
            keep(found)
            said = found.reason or f"{len(found.families)} families; {', '.join(found.rules)}"
            print(f"{name(*cell)}: {said}", flush=True)
    page = args.page or args.write
    if page is not None:
        put(page, MARK, tables(read()))
    return 2 if failed else 0


def name(spark: str, session: str, python: str) -> str:
    """An environment as the progress calls it."""
    return f"Spark {spark}, {session}, Python {python}"


def tried(spark: str, session: str, python: str, wheels: Wheels) -> Tried:
    """What the probe saw in a new environment, which is removed again, or why there is none. Raises NotTried."""
    with tempfile.TemporaryDirectory(prefix="compatibility-") as folder:
        notes = []
        try:
            interpreter = environment(Path(folder, "whole"), spark, python, wheels)
        except Unsolvable as error:
            if session == "connect":
                return Tried(spark, session, python, reason=str(error), at=today())
            notes.append(f"without the packages of `pyspark{EXTRA}`: {error}")
            interpreter = environment(Path(folder, "bare"), spark, python, wheels, extra="")
        found = probe(interpreter, spark, session, python)
        return replace(found, notes=[*notes, *found.notes])


def probe(interpreter: Path, spark: str, session: str, python: str) -> Tried:
    """Runs the probe in an environment. Raises NotTried where it prints nothing."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGEROPS_", "PYTHON"))}
    java = {
        "JAVA_HOME": str(java_home()),
        "JAVA_TOOL_OPTIONS": SHORT_LIVED,
        "PYSPARK_PYTHON": str(interpreter),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    awaited = [rule for rule in FAULTS if rule not in unmeasured(spark)]
    command = [str(interpreter), str(Path(__file__).with_name("probe.py")), session, *awaited]
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
    unnamed = FAULTS.keys() - set(found["rules"])
    if unnamed and not found.get("reason"):
        queries = tuple(FAULTS[rule] for rule in unnamed)
        said = [line for line in done.stderr.splitlines() if line.startswith(queries)]
        print("\n".join([f"not named: {', '.join(sorted(unnamed))}", *said]), file=sys.stderr, flush=True)
    return Tried(spark, session, python, at=today(), **found)


def reason(stderr: str) -> str:
    """The last line that names an exception, else the last line."""
    lines = stderr.strip().splitlines() or ["no output"]
    return next((line for line in reversed(lines) if ERROR.match(line)), lines[-1])[:MAX_REASON_CHARACTERS]


if __name__ == "__main__":
    sys.exit(main())
