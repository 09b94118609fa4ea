"""Markup whose text is always escaped: names and messages come from other people's code."""

from __future__ import annotations

from html import escape
from typing import Union

from ledgerops.common.format import clean

Value = Union["Markup", str, float, int]


class Markup(str):
    """Text that is markup already; everything else is escaped where it goes into markup."""

    __slots__ = ()


def text(value: Value) -> Markup:
    """Escaped and without control characters (of which one may turn a line around), unless it is markup."""
    return value if isinstance(value, Markup) else Markup(escape(clean(value), quote=True))


def tag(name: str, *content: Value, **attributes: Value | None) -> Markup:
    """An element. `class_` stands for class, other underscores for hyphens; an attribute that is None is left out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(text(_plain(each)) for each in content)
    if not content and name in VOID:
        return Markup(f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{inner}</{name}>")


VOID = ("line", "rect", "path", "circle", "polyline", "polygon", "use")


def join(parts: list[Markup], by: str = "") -> Markup:
    return Markup(by.join(parts))


def _plain(value: Value) -> Value:
    """Coordinates with one digit: more is not seen and makes the file large."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
