"""Runs your own PySpark script, unchanged, and attaches the observer to every Spark session that it creates.

The script sees its own name and arguments, and its exit code is returned, as under python. Settings come from
ledgerops.toml and the LEDGEROPS_* variables. The address of the exporter is printed on stderr.

Under spark-submit, submit the launcher in place of the script: --py-files, --archives and --conf work as usual.

Examples:
    LEDGEROPS_PORT=9464 ledgerops exec app.py --input topic
    spark-submit --py-files lib.zip "$(ledgerops exec --launcher)" exec app.py --input topic
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from ledgerops.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    launcher = Path(__file__).parents[1] / "__main__.py"
    parser.add_argument("--launcher", action="version", version=str(launcher), help="print the path for spark-submit")
    # one argument, since of two argparse takes a -- from between them
    parser.add_argument(
        "script", nargs=argparse.PARSER, metavar="SCRIPT", help="the PySpark script, followed by its own arguments"
    )


def run(args: argparse.Namespace) -> int:
    """0 when the script ran to its end. What it raises, SystemExit too, is raised here, as without ledgerops."""
    name, own = script_and_arguments(args)
    script = Path(name)
    if not script.is_file():
        raise UserError(f"no such script: {script}; give a Python file")
    watch_new_sessions()
    sys.argv = [str(script), *own]
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    return 0


def script_and_arguments(args: argparse.Namespace) -> tuple[str, list[str]]:
    """The script and its arguments."""
    words: list[str] = args.script[1:] if args.script[0] == "--" and args.script[1:] else args.script
    return words[0], words[1:]


def watch_new_sessions() -> None:
    """From now on every session that this process makes is attached to. Raises UserError without pyspark."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UserError("no pyspark in this environment; pip install pyspark") from None
    _after(SparkSession.Builder, "getOrCreate")
    _after(SparkSession.Builder, "create")
    _after(SparkSession, "newSession")


def _after(owner: Any, method: str) -> None:
    """Attaches to what a method returns. Spark Connect hands its sessions out through the same methods."""
    original: Callable[..., Any] | None = getattr(owner, method, None)
    if original is None:
        return

    @wraps(original)
    def attached(*args: Any, **kwargs: Any) -> Any:
        import ledgerops

        session = original(*args, **kwargs)
        new = ledgerops.attach(session)
        if new.url is not None and new.url not in _announced:
            _announced.add(new.url)
            print(f"ledgerops: attached, metrics at {new.url}/metrics", file=sys.stderr)
        return session

    setattr(owner, method, attached)


_announced: set[str] = set()
