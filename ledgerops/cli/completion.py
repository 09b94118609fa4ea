"""Prints the completion script of a shell, made from the commands and their options.

Examples:
    source <(ledgerops completion bash)
    ledgerops completion zsh > "${fpath[1]}/_ledgerops"
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SHELLS = ("bash", "zsh")

BASH = """\
_ledgerops() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" command="" each words options
  for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$each" in -*) continue ;; esac
    case "$command $each" in
      " "*) command="$each" ;;
      {pairs}) command="$command $each"; break ;;
      *) break ;;
    esac
  done
  case "$command" in
{cases}
    *) words="{commands}" options="--help --version" ;;
  esac
  case "$word" in -*) words="$options" ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${{#COMPREPLY[@]}} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _ledgerops ledgerops
"""
ZSH = "#compdef ledgerops\nautoload -Uz bashcompinit && bashcompinit\n"


class Words(NamedTuple):
    """What may stand behind a command: where a word begins with a hyphen its options, else its values."""

    options: Sequence[str]
    values: Sequence[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(args: argparse.Namespace) -> int:
    print((ZSH if args.shell == "zsh" else "") + script(words()), end="")
    return 0


def script(words: Mapping[str, Words]) -> str:
    """The bash script for `words` by command; zsh reads it, too."""
    second = {first: [name.split()[1] for name in words if name.startswith(f"{first} ")] for first in words}
    cases = "\n".join(
        f'    "{command}") words="{" ".join([*second[command], *known.values])}" options="{" ".join(known.options)}" ;;'
        for command, known in words.items()
    )
    pairs = "|".join(f'"{name}"' for name in words if " " in name) or '""'
    return BASH.format(cases=cases, pairs=pairs, commands=" ".join(name for name in words if " " not in name))


def words() -> dict[str, Words]:
    """Each command's words, read from its parser."""
    from ledgerops.cli import COMMANDS, build_parser

    found = {}
    for command in COMMANDS:
        actions = command_parser(build_parser(command.name), command.name)._actions
        options = sorted(name for action in actions for name in action.option_strings if name.startswith("--"))
        values = {str(value) for action in actions for value in action.choices or ()} | _names(command.name)
        nothing_else = all(action.option_strings for action in actions) and not values
        found[command.name] = Words(options, options if nothing_else else sorted(values))
    return found


def command_parser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: argparse.ArgumentParser = action.choices[name]
            return found
    raise LookupError(name)


def _names(command: str) -> set[str]:
    """Names that a command's arguments may have, as far as they are known without running anything."""
    from ledgerops.diagnosis.rules import RULES
    from ledgerops.ledger.jobs import ALL, JOBS
    from ledgerops.ledger.jobs.job import GROUPS
    from ledgerops.ledger.plan.plan import PLANS

    jobs, plans = {job.name for job in JOBS}, set(PLANS)
    known: dict[str, set[str]] = {
        "run": {*jobs, *GROUPS, ALL, *plans},
        "load": {*plans, "replay"},
        "load search": jobs,
        "load test": {*jobs, *plans},
        "verify": jobs,
        "rules": {rule.slug for rule in RULES},
        "plans": plans,
        "topics": plans,
    }
    return known.get(command, set())
