"""The command line: one module a command, imported only when it is used, so that `--help` is quick."""

import argparse
import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple

from ledgerops.cli.parser import Parser
from ledgerops.cli.streams import drop, is_of_output, prepare_streams, print_error
from ledgerops.errors import UserError, os_reason
from ledgerops.version import __version__


class Command(NamedTuple):
    """One command: its module has `add_arguments(parser)` and `run(args) -> int`, and its docstring is the help.

    A name of two words is a command of its own beside the first one's: `load PLAN`, `load search JOB`. `extra` names
    the optional dependencies (pyproject.toml) with which the command does everything that it can.
    """

    name: str
    module: str
    summary: str
    extra: str | None = None


# heading -> its commands, in the order of `ledgerops --help` and of docs/cli.md
GROUPS: Mapping[str, tuple[Command, ...]] = {
    "ask about queries": (
        Command("diagnose", "ledgerops.cli.diagnose", "find the root cause of a query's problem", "cli"),
        Command("status", "ledgerops.cli.status", "show the live view of a running exporter", "cli"),
        Command("capacity", "ledgerops.cli.capacity", "estimate the rate a query can sustain", "cli"),
        Command("compare", "ledgerops.cli.compare", "compare queries before and after a change", "cli"),
        Command("state", "ledgerops.cli.state", "show the state of a query from its checkpoint", "ledger"),
        Command("rules", "ledgerops.cli.rules", "list the diagnosis rules, or print a runbook"),
        Command("mcp", "ledgerops.cli.mcp", "answer an AI assistant's questions about queries", "mcp"),
    ),
    "set up": (
        Command("exec", "ledgerops.cli.exec", "run your own PySpark script with the observer attached"),
        Command("render", "ledgerops.cli.render", "write alert rules and dashboards for your site", "render"),
        Command("notify", "ledgerops.cli.notify", "send alerts as messages that name the cause", "notify"),
        Command("completion", "ledgerops.cli.completion", "print a shell completion script", "cli"),
    ),
    "demonstration and load lab": (
        Command("run", "ledgerops.cli.run", "run the ledger's jobs with the observer attached", "ledger"),
        Command("jobs", "ledgerops.cli.jobs", "list the ledger's jobs", "ledger"),
        Command("plans", "ledgerops.cli.plans", "list the load plans", "ledger"),
        Command("load", "ledgerops.cli.load", "send a load plan to Kafka or a folder", "load"),
        Command("load calibrate", "ledgerops.cli.load_calibrate", "measure how much load this machine sends", "load"),
        Command("load search", "ledgerops.cli.load_search", "find the highest rate that a job sustains", "load"),
        Command("load test", "ledgerops.cli.load_test", "load jobs and pass or fail them by objectives", "load"),
        Command("verify", "ledgerops.cli.verify", "check that jobs lost, repeated or changed no row", "ledger"),
        Command("drill", "ledgerops.cli.drill", "inject faults and score the diagnosis", "ledger"),
        Command("topics", "ledgerops.cli.topics", "create the ledger's Kafka topics, load its tables", "ledger"),
        Command("broker", "ledgerops.cli.broker", "run a Kafka broker on this machine", "ledger"),
        Command("jars", "ledgerops.cli.jars", "download the jars for Kafka, Postgres and Delta", "ledger"),
    ),
}
COMMANDS = tuple(command for commands in GROUPS.values() for command in commands)

# optional dependencies: packages whose module has the same name, and modules of another name -> their package
SAME_NAME = (
    "apprise", "confluent-kafka", "grafana-foundation-sdk", "jinja2", "mcp", "numpy", "pandas", "prometheus-client",
    "psycopg", "pyarrow", "pyspark", "rich", "shtab", "urllib3", "zstandard",
)  # fmt: skip
OPTIONAL = {name.replace("-", "_"): name for name in SAME_NAME} | {
    "google": "protobuf", "hdrh": "hdrhistogram", "markupsafe": "jinja2", "opentelemetry": "opentelemetry-proto",
    "py4j": "pyspark", "yaml": "PyYAML",
}  # fmt: skip
UNUSABLE = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)  # of a path, whatever is asked of it
CHECKOUT_ONLY = "ledgerops.drills"  # the package does not contain it
READ_DOCSTRINGS = ("render", "rules")  # commands that show runbooks


def build_parser(chosen: str | None) -> Parser:
    """The parser of all commands, with the arguments of the chosen one only: the others stay unimported."""
    parser = Parser(
        prog="ledgerops",
        description="Observability for Spark Structured Streaming: metrics, root causes with evidence, alerts.",
        usage="ledgerops [-h] [--version] COMMAND ...",
        epilog=_listed(),
    )
    parser.add_argument("--version", action="version", version=f"ledgerops {__version__}")
    commands = parser.add_subparsers(prog="ledgerops", dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    commands.required = chosen is not None
    for command in COMMANDS:
        if command.name != chosen:
            commands.add_parser(command.name)
            continue
        module = import_module(command.module)
        if sys.flags.optimize > 1 and command.name in READ_DOCSTRINGS:
            raise UserError(
                f"{command.name} reads docstrings, which -OO and PYTHONOPTIMIZE=2 remove; run it without them"
            )
        # in docstrings `...` marks code for the reference pages; a terminal needs no marks
        text = re.sub(r"`([^`]*)`", r"\1", module.__doc__ or f"{command.summary}\n")
        described = commands.add_parser(command.name, description=text)
        module.add_arguments(described)
        described.set_defaults(run=module.run)
    return parser


def _listed() -> str:
    """The commands below their headings, and where to begin."""
    lines = [
        "\n".join((f"{heading}:", *(f"  {each.name:<16}{each.summary}" for each in commands)))
        for heading, commands in GROUPS.items()
    ]
    begin = "Begin with:\n    ledgerops diagnose\n    ledgerops diagnose RECORDING\n    ledgerops diagnose --help"
    return "\n\n".join((*lines, begin))


def chosen_command(argv: Sequence[str]) -> str | None:
    """The command's name: the first word that is no option. Raises UserError when there is no such command."""
    word = next((word for word in argv if not word.startswith("-")), None)
    names = [command.name for command in COMMANDS]
    if word is None or word in names:
        return word
    near = [f"--{word}"] if word in ("help", "version") else get_close_matches(word, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "see ledgerops --help"
    raise UserError(f"no command {word!r}; {hint}")


def join_command(argv: Sequence[str]) -> list[str]:
    """The arguments, with a command's name of two words as one argument."""
    name = " ".join(argv[:2])
    known = len(argv) > 1 and any(command.name == name for command in COMMANDS)
    return [name, *argv[2:]] if known else list(argv)


def missing_extra(name: str, module: str) -> str | None:
    """The line that says which optional dependency a command lacks; None when the missing `module` is none of them."""
    extra = next((command.extra for command in COMMANDS if command.name == name), None)
    if extra is None:  # `exec` runs a script of the user
        return None
    if f"{module}.".startswith(f"{CHECKOUT_ONLY}."):
        return f"ledgerops {name}: needs a checkout of the repository; the installed package does not include drills"
    package = OPTIONAL.get(module.split(".")[0])
    return package and f"ledgerops {name}: needs {package}; pip install 'ledgerops[{extra}]'"


def run_script(argv: Sequence[str]) -> int:
    """`exec`: streams, signals and errors of an application are its own, and nothing may keep it from running."""
    try:
        args = build_parser("exec").parse_args(argv)
        args.prepare(args)
    except UserError as error:
        print_error(f"ledgerops: {error}")
        return 2
    code: int = args.run(args)
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0 done, 1 something was found or failed, 2 could not do it."""
    argv = join_command(sys.argv[1:] if argv is None else argv)
    if argv[:1] == ["exec"]:
        return run_script(argv)
    try:
        return _run(argv)
    except Exception:  # a defect of ours: 1 would say that something was found
        import traceback

        traceback.print_exc()
        return 2


def _run(argv: list[str]) -> int:
    prepare_streams()
    try:
        parser = build_parser(chosen_command(argv))
        if not argv:
            parser.print_help()
            return 2
        args = parser.parse_args(argv)
        from ledgerops.config import check_variables

        for line in check_variables(os.environ):
            print_error(f"ledgerops: {line}")
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except UserError as error:
        print_error(f"ledgerops: {error}")
        return 2
    except ModuleNotFoundError as error:
        missing = missing_extra(argv[0], error.name or "")
        if missing is None:
            raise
        print_error(missing)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader went away (`| head`)
        drop(sys.stdout)
        return 141
    except OSError as error:
        if error.errno in UNUSABLE and error.filename is not None:  # pathlib raises them for `exists`, too
            print_error(f"ledgerops: cannot use {error.filename}: {os_reason(error)}")
            return 2
        if not is_of_output(error):
            raise
        drop(sys.stdout)
        print_error(f"ledgerops: cannot write the output: {os_reason(error)}")
        return 2
