"""Where tests find what is committed: the repository and the recordings of real runs."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests" / "recorded"
OTHER_RECORDINGS = [  # beside those of the drills
    path
    for name in (
        "cpu-limit*.jsonl", "key-skew.jsonl", "source-unreachable.jsonl", "*.jsonl.zst", "skewed-app", "eventlog/*",
        "spark-*.jsonl",
    )
    for path in sorted(RECORDED.glob(name))
]  # fmt: skip


def needed_data(folder: Path) -> Path:
    """A folder of recorded applications or event logs with their truth, which lie beside a checkout. Without it the
    test is skipped, or fails where LEDGEROPS_REQUIRE_DATA is set."""
    if not folder.is_dir():
        reason = f"the data with their truth are absent: {folder} does not exist"
        assert not os.environ.get("LEDGEROPS_REQUIRE_DATA"), reason
        pytest.skip(reason)
    return folder
