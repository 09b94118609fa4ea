"""Prints the completion script of a shell: commands, options, and the names of jobs, load plans and rules.

Examples:
    source <(ledgerops completion bash)
    ledgerops completion zsh > "${fpath[1]}/_ledgerops"
    ledgerops completion fish > ~/.config/fish/completions/ledgerops.fish
"""

import argparse
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module

SHELLS = ("bash", "zsh", "fish")
FOLDERS = ("FOLDER", "CHECKPOINT", "RUN")  # metavars of arguments that take a folder
FILES = ("FILE", "PATH", "SOURCE", "SCRIPT", "PLACE", "BEFORE", "AFTER")  # and of those that take a file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(args: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(whole_parser(), shell=args.shell))
    return 0


def whole_parser() -> argparse.ArgumentParser:
    """The parser of all commands at once, with what may stand for each argument as its choices.

    Commands of two words hang below the first one, beside the names that this one may be given: `load search`,
    `load whale`.
    """
    from ledgerops.cli import COMMANDS
    from ledgerops.cli.parser import Parser

    whole = Parser(prog="ledgerops")
    whole.add_argument("--version", action="version", version="", help="show the version")
    commands = whole.add_subparsers()
    names = known_names()
    for command in COMMANDS:
        below = [each for each in COMMANDS if each.name.startswith(f"{command.name} ")]
        if " " in command.name:
            continue
        parser = commands.add_parser(command.name, help=command.summary)
        _fill(parser, command.name, names)
        if not below:
            continue
        [first] = [action for action in parser._actions if not action.option_strings]
        parser._remove_action(first)
        words = parser.add_subparsers()
        for each in below:
            _fill(words.add_parser(each.name.split()[1], help=each.summary), each.name, names)
        for word in first.choices or ():
            values = words.add_parser(str(word), help=f"{command.name} {word}")
            _fill(values, command.name, names)
            values._remove_action(next(action for action in values._actions if not action.option_strings))
    return whole


def _fill(parser: argparse.ArgumentParser, command: str, names: dict[tuple[str, str], list[str]]) -> None:
    """Gives a parser the arguments of a command, each with what completes it."""
    import shtab

    from ledgerops.cli import COMMANDS

    [module] = [each.module for each in COMMANDS if each.name == command]
    import_module(module).add_arguments(parser)
    for action in parser._actions:
        if (command, action.dest) in names:
            action.choices = names[command, action.dest]
        elif action.choices is None and action.metavar in (*FOLDERS, *FILES):
            action.complete = shtab.DIRECTORY if action.metavar in FOLDERS else shtab.FILE  # type: ignore[attr-defined]


def known_names() -> dict[tuple[str, str], list[str]]:
    """(command, argument) -> the names that it may have, as far as this installation knows them."""
    from ledgerops.diagnosis.rules import RULES

    jobs: list[str] = []
    groups: Iterable[str] = ()
    plans: list[str] = []
    with suppress(ImportError):  # the ledger needs packages that may not be installed
        from ledgerops.ledger.jobs import ALL, JOBS
        from ledgerops.ledger.jobs.job import GROUPS
        from ledgerops.ledger.plan.plan import PLANS

        jobs, groups, plans = [job.name for job in JOBS], (*GROUPS, ALL), list(PLANS)
    return {
        ("run", "jobs"): [*jobs, *groups],
        ("jobs", "name"): [*jobs, *groups],
        ("run", "plan"): plans,
        ("load", "plan"): [*plans, "replay"],
        ("load search", "job"): jobs,
        ("load test", "plan"): plans,
        ("load test", "job"): [*jobs, *groups],
        ("verify", "jobs"): jobs,
        ("rules", "slug"): [rule.slug for rule in RULES],
        ("plans", "name"): plans,
        ("topics", "plan"): plans,
    }
