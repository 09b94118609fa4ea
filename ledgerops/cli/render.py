"""Write the generated files, or check that the committed ones are true.

The reference pages under docs/ and everything under alerts/ come from the catalogues of metrics, rules, alerts,
settings and commands. Selectors, objectives, windows and links stand in the table `render` of a TOML file.

Examples:
    ledgerops render --check
    ledgerops render --config ledgerops.toml --out deploy
    ledgerops render --format kubernetes --out k8s
    ledgerops render --format grafana-v2 --out boards
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.errors import UserError

if TYPE_CHECKING:
    from ledgerops.alerts.site import Site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that differ")
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="FOLDER", help="root to write below (default: here)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file whose table `render` describes the site")
    parser.add_argument(
        "--format",
        choices=("files", "kubernetes", "grafana-v2"),
        default="files",
        help="into --out instead: kubernetes writes PrometheusRule, ServiceMonitor and dashboard ConfigMaps, "
        "grafana-v2 dashboards as resources of Grafana's API (dashboard.grafana.app/v2), not for provisioning",
    )


def run(args: argparse.Namespace) -> int:
    os.environ["COLUMNS"] = "100"  # argparse wraps help to the terminal; the pages must not depend on it
    from ledgerops import render
    from ledgerops.alerts.site import read_site

    site = read_site(args.config)
    if args.format != "files":
        return _elsewhere(args.format, args.out, site)
    if args.check:
        differing = list(render.drift(args.out, site))
        for name in differing:
            print(f"differs: {name}")
        if differing:
            print("run ledgerops render and commit what it writes", file=sys.stderr)
        return 1 if differing else 0
    for name in render.write(args.out, site):
        print(f"wrote {name}")
    return 0


def _elsewhere(form: str, folder: Path, site: Site) -> int:
    from ledgerops.render.dashboards import resource_files
    from ledgerops.render.kubernetes import kubernetes_files

    if folder == Path():
        raise UserError(f"--format {form} needs --out FOLDER: its files do not belong into a checkout")
    files = kubernetes_files if form == "kubernetes" else resource_files
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files(site).items():
            (folder / name).write_text(text, encoding="utf-8")
            print(f"wrote {folder / name}")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {(error.strerror or str(error)).lower()}") from None
    return 0
