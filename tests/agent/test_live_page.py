"""The text of the live page; tests/e2e shows it in a browser."""

import re
from importlib.resources import files

from ledgerops.cli.live_view import PHASES, STATUSES

PAGE = files("ledgerops.agent").joinpath("live.html").read_text("utf-8")


def test_the_page_needs_nothing_from_elsewhere():
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", PAGE)
    assert "innerHTML" not in PAGE
    assert "insertAdjacentHTML" not in PAGE
    assert re.findall(r'(?:src|href)="([^"]+)"', PAGE) == ["data:,", "metrics", "diagnosis", "recording"]


def test_the_page_knows_every_status_and_phase():
    for name in (*STATUSES, *PHASES):
        assert re.search(rf"\b{name}\b", PAGE)
