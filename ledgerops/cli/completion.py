"""Prints the completion script of a shell, made from the commands and their options.

Examples:
    source <(ledgerops completion bash)
    ledgerops completion zsh > "${fpath[1]}/_ledgerops"
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

SHELLS = ("bash", "zsh")

BASH = """\
_ledgerops() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" command="" each words
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
    *) words="{commands} --help --version" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${{#COMPREPLY[@]}} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _ledgerops ledgerops
"""
ZSH = "#compdef ledgerops\nautoload -Uz bashcompinit && bashcompinit\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(args: argparse.Namespace) -> int:
    print((ZSH if args.shell == "zsh" else "") + script(words()), end="")
    return 0


def script(words: Mapping[str, Sequence[str]]) -> str:
    """The bash script for `words` by command; zsh reads it, too."""
    second = {first: [name.split()[1] for name in words if name.startswith(f"{first} ")] for first in words}
    cases = "\n".join(
        f'    "{command}") words="{" ".join([*second[command], *known])}" ;;' for command, known in words.items()
    )
    pairs = "|".join(f'"{name}"' for name in words if " " in name) or '""'
    return BASH.format(cases=cases, pairs=pairs, commands=" ".join(name for name in words if " " not in name))


def words() -> dict[str, list[str]]:
    """Each command's options and the values that an argument may have, read from its parser."""
    from ledgerops.cli import COMMANDS, build_parser

    found = {}
    for command in COMMANDS:
        parser = command_parser(build_parser(command.name), command.name)
        known = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
        known += [str(value) for action in parser._actions for value in action.choices or ()]
        found[command.name] = sorted(known) + _names(command.name)
    return found


def command_parser(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: argparse.ArgumentParser = action.choices[name]
            return found
    raise LookupError(name)


def _names(command: str) -> list[str]:
    """Names that are known without running anything: the jobs of `run`."""
    if command != "run":
        return []
    from ledgerops.jobs import JOBS

    return [job.name for job in JOBS]
