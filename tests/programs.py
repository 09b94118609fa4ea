"""Programs of other projects that tests run for real."""

from __future__ import annotations

import os
import shutil
import time
import urllib.request
from collections.abc import Callable

import pytest


def needed(program: str, *others: str) -> str:
    """Where the first of these is that there is. Without any, the test is skipped, or fails where
    LEDGEROPS_REQUIRE_SERVERS asks for all."""
    for name in (program, *others):
        if found := shutil.which(name):
            return found
    if os.environ.get("LEDGEROPS_REQUIRE_SERVERS") == "1":
        pytest.fail(f"{program} is absent, and LEDGEROPS_REQUIRE_SERVERS=1 asks for it")
    pytest.skip(f"{program} is absent")


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Waits for the condition, at most so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Whether an HTTP server is there and well."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
