"""Writes what you deploy: alert rules, Prometheus and Alertmanager configuration, Grafana dashboards.

They are generated from the catalogues of metrics and rules. Set selectors, objectives, time windows and links for your
site in the table `render` of ledgerops.toml, or of the file that LEDGEROPS_CONFIG or --config names. `--check` writes
nothing and exits with code 1 if a file differs, for CI. Nothing is removed: generated files that are not made any more,
and your copies of generated files, are only named. Without --out the command writes, or checks, the generated files of
a checkout of ledgerops, which are those of the default settings.

Examples:
    ledgerops render --out monitoring
    ledgerops render --config site.toml --out monitoring --check
    ledgerops render --format kubernetes --out k8s
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ledgerops.config import settings_file
from ledgerops.errors import UserError, os_reason

FORMATS = ("files", "kubernetes")
CHECKOUT = Path("ledgerops/mixin/__init__.py")  # of the repository, seen from its root


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--check", action="store_true", help="write nothing; list files that differ and exit with code 1")
    add("--out", type=Path, metavar="FOLDER", help="folder to write to")
    add("--config", type=Path, metavar="FILE", help="TOML file with the settings of your site (table `render`)")
    add("--format", choices=FORMATS, default="files",
        help="kubernetes writes manifests instead: rules and monitors for the Prometheus operator, dashboard "
        "ConfigMaps, NetworkPolicies, and ledgerops notify; needs --out")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from ledgerops import mixin
    from ledgerops.mixin.kubernetes import kubernetes_files
    from ledgerops.mixin.site import read_site

    site = read_site(args.config or (settings_file(os.environ) if args.out else None))
    if args.format != "files" and args.check:
        raise UserError(f"--check compares the committed files and cannot be combined with --format {args.format}")
    if args.out is None and args.format != "files":
        raise UserError(f"--format {args.format} needs --out FOLDER: these files do not belong in a checkout")
    if args.out is None and not CHECKOUT.is_file():
        raise UserError("--out is missing: give the folder for rules and dashboards, such as --out monitoring")
    root, ours = args.out or Path(), args.out is None
    try:
        if args.format != "files":
            made: Mapping[str, str] = kubernetes_files(site)
        else:
            made = mixin.outputs(site, {"docs/cli.md": cli_page}) if ours else mixin.deployed(site)
        names, stale = mixin.changed(root, made), mixin.stale(root, made)
        names += stale if ours else []
        if not args.check:
            mixin.write(root, made, names)
    except OSError as error:
        doing = "read" if args.check else "write to"
        raise UserError(f"cannot {doing} {root}: {os_reason(error)}") from None
    for name in names:
        done = "wrote" if name in made else "removed"
        print(f"{'differs:' if args.check else done} {name}")
    if stale and not ours:
        print(f"not removed (your copies, or no longer made, and still loaded): {', '.join(stale)}", file=sys.stderr)
    if args.check and names:
        print("run ledgerops render with the same options and commit the result", file=sys.stderr)
    return 1 if args.check and names else 0


def cli_page() -> str:
    """docs/cli.md: the commands below their headings, then the help of each as the terminal shows it."""
    from ledgerops.cli import GROUPS
    from ledgerops.mixin.reference import HEAD

    parts = [HEAD, CLI_HEAD]
    for heading, commands in GROUPS.items():
        rows = (f"| [{each.name}](#ledgerops-{each.name.replace(' ', '-')}) | {each.summary} |\n" for each in commands)
        parts.append(f"\n| {heading} | |\n|---|---|\n{''.join(rows)}")
    for heading, commands in GROUPS.items():
        parts.append(f"\n## {heading[:1].upper()}{heading[1:]}\n")
        parts += [f"\n### ledgerops {each.name}\n\n```text\n{_help(each.name)}\n```\n" for each in commands]
    return "".join(parts)


CLI_HEAD = """# Commands

Begin with `ledgerops diagnose`. `diagnose`, `capacity` and `mcp` take a SOURCE: the address of a running exporter, a
recording or a folder of recordings, or a Spark event log. Without one they ask the exporter of this machine. Exit code
0 means done, 1 that something was found or failed, 2 that the command could not do its work; then one line says why.
"""


def _help(name: str) -> str:
    from ledgerops.cli import build_parser

    [commands] = [action for action in build_parser(name)._actions if action.dest == "command"]
    text: str = commands.choices[name].format_help()  # type: ignore[index]
    return text.rstrip()
