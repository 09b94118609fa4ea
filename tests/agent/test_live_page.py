"""The text of the live page; tests/e2e shows it in a browser."""

import re
from importlib.resources import files

from ledgerops.cli.live_view import PHASES, STATUSES

PAGE = files("ledgerops.agent").joinpath("live.html").read_text("utf-8")


def test_the_page_needs_nothing_from_elsewhere_and_knows_every_status_and_phase():
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)|innerHTML|insertAdjacentHTML", PAGE)
    assert re.findall(r'(?:src|href)="([^"]+)"', PAGE) == ["data:,", "metrics", "diagnosis", "recording"]
    assert [name for name in (*STATUSES, *PHASES) if not re.search(rf"\b{name}\b", PAGE)] == []
