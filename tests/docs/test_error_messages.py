"""Whoever sees a message of the program finds it on the page by its text."""

import re

import pytest

from docs.site.messages import messages
from tests.paths import ROOT

PAGE = (ROOT / "docs/error-messages.md").read_text("utf-8")
ENTRIES = [
    entry for entry in re.findall(r"`([^`]+)`", PAGE.replace("\n", " ")) if " " in entry and re.search(r"\w", entry)
]
FOUND = messages()


def pattern(entry):
    """An entry as a regular expression: `…` is any text."""
    words = (re.escape(" ".join(part.split(" "))) for part in re.sub(r" +", " ", entry).split("…"))
    return re.compile(".*".join(words))


PATTERNS = [(entry, pattern(entry)) for entry in ENTRIES]


def entry_of(text):
    return next((entry for entry, compiled in PATTERNS if compiled.fullmatch(" ".join(text.split()))), None)


def test_the_messages_of_the_program_are_found_in_its_source():
    assert len(FOUND) > 250
    assert {"error", "log"} == {each.kind for each in FOUND}


def test_every_message_has_an_entry():
    assert sorted({each.text for each in FOUND if entry_of(each.text) is None}) == []


@pytest.mark.parametrize("text", ["the disk is made of cheese", "port 1 sank", "…"])
def test_not_just_anything_has_an_entry(text):
    assert entry_of(text) is None


def test_an_entry_of_a_message_that_is_gone_is_noticed():
    texts = [" ".join(each.text.split()) for each in FOUND]
    known = {entry for entry, compiled in PATTERNS if any(compiled.fullmatch(text) for text in texts)}
    messages_only = [entry for entry in ENTRIES if "…" in entry and entry not in known]

    # texts of several modules that are put together where they are shown
    assert messages_only == ["ledgerops cannot be loaded (…); …", "ledgerops …: needs …; pip install 'ledgerops[…]'"]
