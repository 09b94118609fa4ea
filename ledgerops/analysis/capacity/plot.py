"""Batches as points, batch time over rows, with the fitted line: for a terminal."""

import numpy as np

from ledgerops.analysis.capacity.fit import Fit, Numbers
from ledgerops.common import format

WIDTH, HEIGHT = 60, 10
POINT, LINE, TRIGGER = "o", ".", "-"


def plot(line: Fit, trigger: float | None) -> list[str]:
    """The lines of the plot: seconds upwards, rows to the right; the trigger interval dashed where it is in reach."""
    right = line.largest * 1.05
    top = max(*line.seconds, line.overhead + line.slope * right) * 1.05
    if trigger and trigger < 2 * top:
        top = max(top, trigger * 1.05)
    cells = np.full((HEIGHT, WIDTH), " ")

    def put(rows: Numbers, seconds: Numbers, sign: str) -> None:
        up = np.minimum(HEIGHT - 1, seconds / top * HEIGHT).astype(int)
        cells[up, np.minimum(WIDTH - 1, rows / right * WIDTH).astype(int)] = sign

    across = (np.arange(WIDTH) + 0.5) / WIDTH * right
    legend = f"{POINT} batch   {LINE} fit"
    if trigger and trigger < top:
        put(across, np.full(WIDTH, trigger), TRIGGER)
        legend += f"   {TRIGGER} trigger interval"
    put(across, line.overhead + line.slope * across, LINE)
    put(np.asarray(line.rows, np.float64), np.asarray(line.seconds), POINT)
    labels = [format.duration(top), *[""] * (HEIGHT - 2), format.duration(0)]
    margin = max(map(len, labels))
    drawn = [f"{label:>{margin}} |{''.join(row)}" for label, row in zip(labels, cells[::-1], strict=True)]
    below = f"+{'-' * WIDTH}", f" 0{f'{format.count(right)} rows':>{WIDTH - 1}}", f" {legend}"
    return drawn + [f"{'':>{margin}} {each}" for each in below]
