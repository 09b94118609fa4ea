"""Runs a method of the package fse-baro, in an environment of its own: a script that knows nothing of ledgerops.

    python outside.py METHOD < requests > replies

A request is a line of JSON: `case`, `time`, `series` (values by name), `service` (the series that say how well the
query does), and `split`, when the fault began; null: that is not known, and BARO's own detection says whether and when
something changed. The reply has `ranks`, the names from the likeliest on, and `error`, why there are none.
"""

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")  # some of the packages import a plotting library
warnings.filterwarnings("ignore")


# the robust scorer of BARO, and n-sigma, the method that BARO and RCAEval compare with
METHODS = {"baro": "robust_scorer", "nsigma": "nsigma"}


def changed_at(frame: Any) -> float | None:
    """When BARO's change-point detection saw the first change of the series named `latency`; None: none."""
    detect = import_module("baro.anomaly_detection").bocpd
    found = [place for place in detect(frame) if 3 <= place < len(frame) - 3]
    return float(frame["time"].iloc[int(min(found))]) if found else None


def reply(method: Callable[..., Any], request: dict[str, Any]) -> list[str]:
    """The ranked names of one case."""
    import pandas as pd

    service = set(request["service"])
    names = {f"{'latency' if name in service else 'metric'}_{n}": name for n, name in enumerate(request["series"])}
    columns = {short: request["series"][name] for short, name in names.items()}
    frame = pd.DataFrame({"time": request["time"], **columns}).astype(float).ffill().fillna(0.0)
    split = request["split"]
    if split is None and service:
        split = changed_at(frame)
    if split is None:
        return []
    return [names[short] for short in method(frame, inject_time=split)["ranks"] if short in names]


def main(name: str) -> None:
    """Answers the requests on stdin until it ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the packages print
    method = getattr(import_module("baro.root_cause_analysis"), METHODS[name])
    for line in sys.stdin:
        request = json.loads(line)
        ranks, error = [], ""
        with contextlib.redirect_stdout(sys.stderr):
            try:
                ranks = reply(method, request)
            except Exception as failure:  # what a method cannot take counts as no answer, and is said
                error = f"{type(failure).__name__}: {failure}"
        replies.write(json.dumps({"case": request["case"], "ranks": ranks, "error": error}) + "\n")
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1])
