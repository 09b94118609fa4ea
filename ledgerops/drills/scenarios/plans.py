"""Load plans that several drills share."""


def steady(seed: int, rate: int, more: str = "") -> str:
    """A plan (YAML) of so many rows a second, with further parts of a plan in flow style."""
    return f"{{seed: {seed}, start: now, phases: [{{shape: constant, rate: {rate}}}]{more and ', '}{more}}}"


TWO_PARTITIONS = "partitions: {count: 2}"
