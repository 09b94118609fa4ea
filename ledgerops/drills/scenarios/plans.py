"""Load plans that several drills share."""


def stepped(seed: int, *phases: tuple[int, int | None], more: str = "") -> str:
    """A plan (YAML) of so many rows a second for so many seconds, one after the other; None: for ever. `more`: further
    parts of a plan in flow style."""
    shapes = (f"rate: {rate}" + (f", duration: {seconds}s" if seconds else "") for rate, seconds in phases)
    constant = ", ".join(f"{{shape: constant, {shape}}}" for shape in shapes)
    return f"{{seed: {seed}, start: now, phases: [{constant}]{more and ', '}{more}}}"


def steady(seed: int, rate: int, more: str = "") -> str:
    """A plan of so many rows a second."""
    return stepped(seed, (rate, None), more=more)


TWO_PARTITIONS = "partitions: {count: 2}"
ONE_FUTURE_ROW = "changes: [{from: 45s, to: 90s, disorder: {future: {count: 1, ahead: 1h}}}]"
