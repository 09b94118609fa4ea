"""Batches as points, batch time over rows, with the fitted line: for a terminal."""

from ledgerops.analysis.capacity.fit import Fit
from ledgerops.common import format

WIDTH, HEIGHT = 60, 10
POINT, LINE, TRIGGER = "o", ".", "-"


def plot(line: Fit, trigger: float | None) -> list[str]:
    """The lines of the plot: seconds upwards, rows to the right; the trigger interval dashed where it is in reach."""
    right = line.largest * 1.05
    top = max(*line.seconds, line.overhead + line.slope * right) * 1.05
    if trigger and trigger < 2 * top:
        top = max(top, trigger * 1.05)
    cells = [[" "] * WIDTH for _ in range(HEIGHT)]

    def put(rows: float, seconds: float, sign: str) -> None:
        column = min(WIDTH - 1, int(rows / right * WIDTH))
        row = min(HEIGHT - 1, int(seconds / top * HEIGHT))
        cells[HEIGHT - 1 - row][column] = sign

    if trigger and trigger < top:
        for column in range(WIDTH):
            put(column / WIDTH * right, trigger, TRIGGER)
    for column in range(WIDTH):
        rows = (column + 0.5) / WIDTH * right
        put(rows, line.overhead + line.slope * rows, LINE)
    for rows, seconds in zip(line.rows, line.seconds, strict=True):
        put(rows, seconds, POINT)
    ends = format.duration(top), format.duration(0)
    margin = max(len(end) for end in ends)
    drawn = []
    for number, cell in enumerate(cells):
        label = ends[0] if number == 0 else ends[1] if number == HEIGHT - 1 else ""
        drawn.append(f"{label:>{margin}} |{''.join(cell)}")
    drawn.append(f"{'':>{margin}} +{'-' * WIDTH}")
    last = f"{format.count(right)} rows"
    drawn.append(f"{'':>{margin}}  0{last:>{WIDTH - 1}}")
    legend = f"{POINT} batch   {LINE} fit" + (f"   {TRIGGER} trigger interval" if trigger and trigger < top else "")
    drawn.append(f"{'':>{margin}}  {legend}")
    return drawn
