"""The addresses of senders that the guide shows are such as senders take."""

import re

import pytest

from ledgerops.notify.senders import open_senders
from tests.paths import ROOT

GUIDE = (ROOT / "docs/guides/alertmanager.md").read_text("utf-8")
SHOWN = re.findall(r"(?m)^\| [^|]+ \| `(\w+://[^`]+)`", GUIDE)


def test_the_guide_shows_chat_pager_and_mail():
    assert {url.partition(":")[0] for url in SHOWN} >= {"slack", "pagerduty", "workflows", "mailtos", "https"}


@pytest.mark.parametrize("url", SHOWN)
def test_it_is_taken(url):
    [sender] = open_senders([url])
    assert sender.name.endswith(" 1")
