"""A command line as a user gives it, in this process."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ledgerops.cli import main


class Told(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def document(self) -> Any:
        """What `--json` printed."""
        return json.loads(self.out)


@pytest.fixture
def ledgerops(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """Runs `ledgerops` with these arguments."""

    def run(*argv: object) -> Told:
        code = main([str(each) for each in argv])
        return Told(code, *capsys.readouterr())

    return run
