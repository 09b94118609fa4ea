"""Where tests find what is committed: the repository and the recordings of real runs."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests" / "recorded"
