"""Prints the software bill of materials as CycloneDX JSON: the packages of requirements.lock and the jars.

Examples:
    ledgerops sbom > sbom.json
    ledgerops sbom --lock docker/requirements.lock
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ledgerops.errors import cannot_read
from ledgerops.input_files import read_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lock",
        type=Path,
        default=Path("requirements.lock"),
        metavar="FILE",
        help="lock file of a checkout (default requirements.lock)",
    )


def run(args: argparse.Namespace) -> int:
    from ledgerops.servers.sbom import bill_of_materials

    try:
        lock = read_text(args.lock)
    except (OSError, UnicodeDecodeError) as error:
        raise cannot_read(args.lock, error, "give the lock of a checkout with --lock") from None
    json.dump(bill_of_materials(lock), sys.stdout, indent=2)
    print()
    return 0
