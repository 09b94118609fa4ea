"""Writes the generated files, or checks that the committed ones are current.

Dashboards, alert rules and reference pages are generated from the catalogues of metrics, rules, alerts, settings and
commands. Set selectors, objectives, time windows and links for your site in the table `render` of a TOML file.

Examples:
    ledgerops render --check
    ledgerops render --config ledgerops.toml --out deploy
    ledgerops render --format kubernetes --out k8s
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.errors import UserError, os_reason

if TYPE_CHECKING:
    from ledgerops.mixin.site import Site

FORMATS = ("files", "kubernetes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--check", action="store_true", help="write nothing; list files that differ and exit with code 1")
    add("--out", type=Path, default=Path(), metavar="FOLDER", help="folder to write to (default: the current one)")
    add("--config", type=Path, metavar="FILE", help="TOML file with the settings of your site (table `render`)")
    add(
        "--format",
        choices=FORMATS,
        default="files",
        help="kubernetes writes manifests instead: rules and monitors for the Prometheus operator, dashboard "
        "ConfigMaps, NetworkPolicies, and ledgerops notify; needs --out",
    )


def run(args: argparse.Namespace) -> int:
    os.environ["COLUMNS"] = "100"  # argparse wraps help to the terminal; the pages must not depend on it
    from ledgerops import mixin
    from ledgerops.mixin.site import read_site

    site = read_site(args.config)
    ours = {"docs/cli.md": cli_page}
    if args.format != "files" and args.check:
        raise UserError(f"--check compares the committed files and cannot be combined with --format {args.format}")
    if args.format != "files" and args.out == Path():
        raise UserError(f"--format {args.format} needs --out FOLDER: these files do not belong in a checkout")
    try:
        if args.check:
            names = list(mixin.drift(args.out, site, ours))
        elif args.format == "files":
            names = mixin.write(args.out, site, ours)
        else:
            names = _write_kubernetes(args.out, site)
    except OSError as error:
        doing = "read" if args.check else "write to"
        raise UserError(f"cannot {doing} {args.out}: {os_reason(error)}") from None
    for name in names:
        print(f"{'differs:' if args.check else 'wrote'} {name}")
    if args.check and names:
        print("run ledgerops render and commit the result", file=sys.stderr)
    return 1 if args.check and names else 0


def _write_kubernetes(folder: Path, site: Site) -> list[str]:
    """Writes the objects for a cluster; returns their paths."""
    from ledgerops.mixin.kubernetes import kubernetes_files

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in kubernetes_files(site).items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in kubernetes_files(site)]


def cli_page() -> str:
    """docs/cli.md: the help of every command, as the terminal shows it."""
    from ledgerops.cli import COMMANDS, build_parser
    from ledgerops.mixin.reference import HEAD

    parts = [HEAD, "# Commands\n"]
    for command in COMMANDS:
        parser = build_parser(command.name)
        [commands] = [action for action in parser._actions if action.dest == "command"]
        described = commands.choices[command.name]  # type: ignore[index]
        parts.append(f"\n## ledgerops {command.name}\n\n```text\n{described.format_help().rstrip()}\n```\n")
    return "".join(parts)
