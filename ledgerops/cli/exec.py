"""Runs your own PySpark script, unchanged, and attaches the observer to every Spark session that it creates.

The script sees its own name, arguments and path; its exit code, signals and tracebacks are as under python. Settings
come from ledgerops.toml and the LEDGEROPS_* variables. The address of the exporter is printed on stderr.

Under spark-submit, submit the launcher in place of the script: --py-files, --archives and --conf work as usual.

Examples:
    LEDGEROPS_PORT=9464 ledgerops exec app.py --input topic
    spark-submit --py-files lib.zip "$(ledgerops exec --launcher)" exec app.py --input topic
"""

import argparse
import builtins
import sys
from collections.abc import Callable
from functools import wraps
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from ledgerops.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    launcher = Path(__file__).parents[1] / "__main__.py"
    parser.add_argument("--launcher", action="version", version=str(launcher), help="print the path for spark-submit")
    parser.set_defaults(prepare=prepare)
    # one argument, since of two argparse takes a -- from between them
    parser.add_argument("script", nargs=argparse.PARSER, metavar="SCRIPT",
        help="the PySpark script, followed by its own arguments")  # fmt: skip


def prepare(args: argparse.Namespace) -> None:
    """Raises UserError where there is nothing to run, or no pyspark to watch."""
    name, _ = script_and_arguments(args)
    if not Path(name).is_file():
        raise UserError(f"no such script: {name}; give a Python file")
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(name).resolve().parent)  # before pyspark is imported, which may be beside it
    watch_new_sessions()


def run(args: argparse.Namespace) -> int:
    """0 when the script ran to its end. What it raises is raised here, and shown as without ledgerops.

    The script is the module __main__ to its very end, where runpy's would be gone before the handlers of atexit run.
    """
    name, own = script_and_arguments(args)
    path = name if name.startswith("/") else f"{Path.cwd()}/{name}"  # as python makes it: `./` and `..` stay
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None, __annotations__={})
    main.__loader__ = SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    sys.argv = [name, *own]
    try:
        exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)
    except BaseException as error:
        if isinstance(error, SystemExit):  # others Python puts there itself; read by agent/application_error
            sys.last_value = error
        _hide_own_frames()
        raise
    return 0


def _hide_own_frames() -> None:
    """The traceback that Python prints at its end has the frames of the application only."""
    show = sys.excepthook  # the script may have set its own

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        frames = without_own_frames(trace)
        show(kind, error.with_traceback(frames), frames)

    sys.excepthook = shown


def without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the script on, without the frames of this module in between; None for what never ran."""
    started, kept = False, list[TracebackType]()
    while trace is not None:
        if started and trace.tb_frame.f_globals is not globals():
            kept.append(trace)
        started = started or trace.tb_frame.f_code is run.__code__
        trace = trace.tb_next
    for one, following in zip_longest(kept, kept[1:]):
        one.tb_next = following
    return kept[0] if kept else None


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
