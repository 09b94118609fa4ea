"""A soak's figures over time as a small SVG: one strip for each, from zero, with the warm-up shaded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, STRIP, LEFT, RIGHT, TOP = 720, 64, 170, 64, 24
POINTS = 180  # of a line at most: a page is looked at, not read out


class Strip(NamedTuple):
    name: str
    unit: str
    values: Sequence[float]


def svg(times: Sequence[float], strips: Sequence[Strip], warm_until: float) -> str:
    """`times` are seconds since the start; each strip has a value for each of them."""
    height = TOP + STRIP * len(strips) + 24
    wide = WIDTH - LEFT - RIGHT
    last = times[-1] or 1.0

    def x(at: float) -> float:
        return LEFT + wide * at / last

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<rect x="{LEFT}" y="{TOP - 8}" width="{x(warm_until) - LEFT:.1f}" height="{STRIP * len(strips)}" '
        'fill="#eeeeee"/>',
        f'<text x="{LEFT + 4}" y="{TOP - 12}" fill="#666666">warm-up, not judged</text>',
    ]
    for place, strip in enumerate(strips):
        parts += _strip(strip, [x(at) for at in times], TOP + STRIP * place)
    below = height - 8
    parts += [
        f'<text x="{LEFT}" y="{below}" fill="#666666">0</text>',
        f'<text x="{WIDTH - RIGHT}" y="{below}" text-anchor="end" fill="#666666">{last / 60:.0f} min</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _strip(strip: Strip, xs: Sequence[float], top: float) -> list[str]:
    high, base = max(strip.values) or 1.0, top + STRIP - 14
    step = -(-len(xs) // POINTS)
    points = " ".join(
        f"{x:.1f},{base - (STRIP - 22) * value / high:.1f}"
        for x, value in zip(xs[::step], strip.values[::step], strict=True)
    )
    return [
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}" stroke="#cccccc"/>',
        f'<text x="{LEFT - 8}" y="{base - 12}" text-anchor="end" fill="#111111">{escape(strip.name)}</text>',
        f'<polyline fill="none" stroke="#1f6feb" stroke-width="1.3" points="{points}"/>',
        f'<text x="{WIDTH - RIGHT + 4}" y="{base - (STRIP - 22) * strip.values[-1] / high + 4:.1f}" fill="#111111">'
        f"{strip.values[-1]:,.0f} {escape(strip.unit)}</text>",
    ]
