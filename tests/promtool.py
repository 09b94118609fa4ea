"""promtool, which tries rules and expressions on the series of a test."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import yaml

from tests.programs import finished, needed


def promtool(*args: object) -> CompletedProcess[str]:
    return finished(needed("promtool"), *args)


def tried(folder: Path, document: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the tests of a document pass, whose rule files are in the folder, and what promtool says of them."""
    file = folder / "tests.yaml"
    file.write_text(yaml.safe_dump(document, width=100_000), "utf-8")
    done = promtool("test", "rules", file)
    return done.returncode == 0, done.stdout + done.stderr


def refused(folder: Path, document: Mapping[str, Any]) -> set[str]:
    """The expressions of the tests whose answer is another one than they expect."""
    passed, said = tried(folder, document)
    found = {json.loads(each) for each in re.findall(r'expr: ("(?:[^"\\]|\\.)*"), time', said)}
    assert passed == (not found), said[-3000:]
    return found
