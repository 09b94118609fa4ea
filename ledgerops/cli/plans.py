"""Lists the built-in load plans, or prints one. `ledgerops run --plan` takes a plan by name or a YAML file of your own.

Examples:
    ledgerops plans
    ledgerops plans whale > mine.yaml
"""

import argparse
import sys
from importlib.resources import files

from ledgerops.errors import UserError, did_you_mean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this plan's YAML")


def run(args: argparse.Namespace) -> int:
    from ledgerops.ledger.plan.plan import PLANS

    if args.name is None:
        width = max(map(len, PLANS))
        for name in PLANS:
            first = _text(name).partition("\n")[0]
            print(f"{name:{width}}  {first.removeprefix('#').strip()}")
        return 0
    if args.name not in PLANS:
        every = f"the plans are {', '.join(PLANS)}"
        raise UserError(f"no plan {args.name!r}; {did_you_mean(args.name, PLANS, every)}")
    sys.stdout.write(_text(args.name))
    return 0


def _text(name: str) -> str:
    return files("ledgerops.ledger.plan").joinpath("plans", f"{name}.yaml").read_text("utf-8")
