"""Figures and paths as people read them: short, with their unit, and an en dash where nothing is known."""

from pathlib import Path

UNKNOWN = "–"


def count(value: float | None) -> str:
    """8,075 · 117k · 1.2M"""
    if value is None:
        return UNKNOWN
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if sign == "k" else size)
            return f"{scaled:.1f}{sign}" if abs(scaled) < 100 and sign != "k" else f"{scaled:,.0f}{sign}"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.1f}"


def counted(number: float, one: str, many: str = "") -> str:
    """1 core · 8,075 rows · 2 queries; `many` is for a plural that does not end in s alone."""
    text = f"{number:,.0f}"
    return f"{text} {one if text == '1' else many or f'{one}s'}"


def duration(seconds: float | None) -> str:
    """3.2 ms · 0.44 s · 6.6 s · 32 s · 2 min 39 s · 3 h 12 min · 5 d 3 h"""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 0.00995:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 99.5:
        return f"{seconds:.2f} s" if 0 < seconds < 0.995 else f"{seconds:.{1 if 0 < seconds < 9.95 else 0}f} s"
    if seconds < 3599.5:
        return _in_two(round(seconds), 60, "min", "s")
    if round(seconds / 60) < 48 * 60:
        return _in_two(round(seconds / 60), 60, "h", "min")
    return _in_two(round(seconds / 3600), 24, "d", "h")


def _in_two(number: int, each: int, large: str, small: str) -> str:
    whole, rest = divmod(number, each)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def size(value: float | None) -> str:
    """812 B · 1.2 MB, in powers of 1000"""
    if value is None:
        return UNKNOWN
    for step, sign in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= step:
            return f"{value / step:.{1 if value < 100 * step else 0}f} {sign}"
    return f"{value:.0f} B"


def ratio(value: float | None) -> str:
    """14.9×"""
    return UNKNOWN if value is None else f"{value:.1f}×"


def instant(text: str) -> str:
    """2026-11-21 08:30:00 UTC, of an instant as records have it"""
    return f"{text[:19].replace('T', ' ')} UTC"


def clock(seconds: float) -> str:
    """1:05 · 2:03:09"""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def clean(text: object) -> str:
    """Without control characters: names and messages come from other people's code."""
    return "".join(sign if sign.isprintable() else "?" for sign in str(text))


def short_path(path: Path) -> str:
    """A path as it is shortest to type from here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
