"""Texts of a drill without the paths and addresses of its machine; the name of its folder would tell the fault."""

from __future__ import annotations

import re
from collections.abc import Callable

# what the event log says of places, and what stands for each in the data set
PLACES = (
    (r'"spark\.eventLog\.dir":"file:/+(/[^"]*)/eventlog"', "/drill"),
    (r'"spark\.driver\.host":"([^"]+)"', "driver.local"),
    (r'[\s":](/[^\s":]*)/lib/python3\.\d+/site-packages/pyspark', "/venv"),
    (r'[\s":](/[^\s":]*)/ledgerops/drills/applications/', "/app"),
    (r'"user\.home":"(/[^"]+)"', "/home/user"),
)


def cleaner(log: str, name: str) -> Callable[[str], str]:
    """What replaces the places that Spark's event log names, and the name of the drill."""
    found = {place: shown for pattern, shown in PLACES for place in re.findall(pattern, log)}
    # the longest first: one may lie within another
    known = [*sorted(found.items(), key=lambda pair: (-len(pair[0]), pair)), (name, "drill")]

    def clean(text: str) -> str:
        for place, shown in known:
            text = text.replace(place, shown)
        return text

    return clean
