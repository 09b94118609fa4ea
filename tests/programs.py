"""Programs of other projects that tests run for real."""

from __future__ import annotations

import os
import shutil

import pytest


def needed(program: str) -> str:
    """Where the program is. Absent, the test is skipped, or fails where LEDGEROPS_REQUIRE_SERVERS asks for all."""
    found = shutil.which(program)
    if found is not None:
        return found
    if os.environ.get("LEDGEROPS_REQUIRE_SERVERS") == "1":
        pytest.fail(f"{program} is absent, and LEDGEROPS_REQUIRE_SERVERS=1 asks for it")
    pytest.skip(f"{program} is absent")
