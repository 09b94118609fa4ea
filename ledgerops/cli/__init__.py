"""The command line: one module a command, imported only when it is used, so that `--help` is quick."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple, NoReturn

from ledgerops.errors import UserError
from ledgerops.version import __version__


class Command(NamedTuple):
    """One command: its module has `add_arguments(parser)` and `run(args) -> int`, and its docstring is the help.

    A name of two words is a command of its own beside the first one's: `load PLAN`, `load search JOB`.
    """

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("run", "ledgerops.cli.run", "run the ledger's jobs on Spark, watched"),
    Command("exec", "ledgerops.cli.exec", "run your own PySpark script, watched"),
    Command("load", "ledgerops.cli.load", "send a load plan or the real transactions to Kafka or a folder"),
    Command("load calibrate", "ledgerops.cli.load_calibrate", "find how much this machine's generator can send"),
    Command("load search", "ledgerops.cli.load_search", "find the rate that a job sustains"),
    Command("load test", "ledgerops.cli.load_test", "pass or fail jobs under a load, by objectives"),
    Command("verify", "ledgerops.cli.verify", "check that jobs lost, repeated and changed nothing"),
    Command("status", "ledgerops.cli.status", "show the live view of a running exporter"),
    Command("diagnose", "ledgerops.cli.diagnose", "name the root cause of what is wrong with a query"),
    Command("compare", "ledgerops.cli.compare", "tell whether a change made queries better, worse, or neither"),
    Command("capacity", "ledgerops.cli.capacity", "say what a query can carry, and what limits it"),
    Command("state", "ledgerops.cli.state", "show what is in the state of a query, from its checkpoint"),
    Command("drill", "ledgerops.cli.drill", "break queries on purpose and score the diagnosis"),
    Command("rules", "ledgerops.cli.rules", "list the diagnosis rules, or read the runbook of one"),
    Command("render", "ledgerops.cli.render", "write the generated files, or check that they are true"),
    Command("jobs", "ledgerops.cli.jobs", "list the ledger's jobs"),
    Command("plans", "ledgerops.cli.plans", "list the load plans"),
    Command("topics", "ledgerops.cli.topics", "make the ledger's topics on a broker, and load its reference data"),
    Command("jars", "ledgerops.cli.jars", "fetch the jars of Kafka and Postgres"),
    Command("notify", "ledgerops.cli.notify", "turn alerts into messages with a cause"),
    Command("completion", "ledgerops.cli.completion", "print the shell's completion script"),
)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps docstrings as they are written, and each command's line in one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._action_max_length = 18  # argparse forgets that commands are indented once more


class Parser(argparse.ArgumentParser):
    """Turns bad usage into the one line that every error is."""

    def __init__(self, **options: object) -> None:
        options["formatter_class"] = Formatter
        super().__init__(**options)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message[:1].lower()}{message[1:]}; see {self.prog} --help")


def build_parser(chosen: str | None) -> Parser:
    """The parser of all commands, with the arguments of the chosen one only: the others stay unimported."""
    parser = Parser(
        prog="ledgerops",
        description="Watches Spark Structured Streaming queries, says what is wrong with them and why, and proves it.",
        epilog="example: ledgerops run --duration 60",
    )
    parser.add_argument("--version", action="version", version=f"ledgerops {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        if command.name != chosen:
            commands.add_parser(command.name, help=command.summary)
            continue
        module = import_module(command.module)
        assert module.__doc__, f"{command.module} has no help"
        # in docstrings `...` marks code for the reference pages; a terminal needs no marks
        described = commands.add_parser(
            command.name, help=command.summary, description=re.sub(r"`([^`]*)`", r"\1", module.__doc__)
        )
        module.add_arguments(described)
        described.set_defaults(run=module.run)
    return parser


def chosen_command(argv: Sequence[str]) -> str | None:
    """The command's name: the first word that is no option. Raises UserError when there is no such command."""
    word = next((word for word in argv if not word.startswith("-")), None)
    names = [command.name for command in COMMANDS]
    if word is None or word in names:
        return word
    near = get_close_matches(word, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "see ledgerops --help"
    raise UserError(f"no command {word!r}; {hint}")


def joined(argv: Sequence[str]) -> list[str]:
    """The arguments, with the two words of a command's name as one."""
    name = " ".join(argv[:2])
    known = len(argv) > 1 and any(command.name == name for command in COMMANDS)
    return [name, *argv[2:]] if known else list(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0 done, 1 something was found or failed, 2 could not do it."""
    argv = joined(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no × shows a question mark, and not a traceback
    try:
        parser = build_parser(chosen_command(argv))
        if not argv:
            parser.print_help()
            return 2
        args = parser.parse_args(argv)
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"ledgerops: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader went away (`| head`): what is left in the buffer must not raise again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
