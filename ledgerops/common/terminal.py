"""What every text for a terminal draws with: colours that everyone can distinguish, and lines of small bars."""

from collections.abc import Sequence

# Okabe and Ito's palette: distinguishable with any colour vision. The word is always shown too.
GREEN, ORANGE, RED, BLUE = "#009E73", "#E69F00", "#D55E00", "#0072B2"
SKY, PURPLE, YELLOW = "#56B4E9", "#CC79A7", "#F0E442"
SPARKS = " ▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The last `width` values from zero to the largest; a blank where nothing is known."""
    tail = list(values[-width:])
    top = max((value for value in tail if value is not None), default=0.0)
    steps = len(SPARKS) - 1
    drawn = "".join(
        " " if value is None else SPARKS[max(1, round(value / top * steps)) if top > 0 else 1] for value in tail
    )
    return drawn.rjust(width)
