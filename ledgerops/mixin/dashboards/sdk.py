"""Grafana's classic dashboard schema as the Foundation SDK has it: the one that file provisioning reads."""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # raised at import for the classic schema, which we mean
    from grafana_foundation_sdk.builders import (
        bargauge,
        dashboard,
        heatmap,
        prometheus,
        stat,
        statetimeline,
        table,
        timeseries,
    )
    from grafana_foundation_sdk.builders import common as common_builders
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common
    from grafana_foundation_sdk.models import dashboard as models
    from grafana_foundation_sdk.models import heatmap as heatmap_models

__all__ = [
    "common",
    "common_builders",
    "dashboard",
    "encoded",
    "heatmap",
    "heatmap_models",
    "models",
    "new_panel",
    "prometheus",
]
KINDS: dict[str, Any] = {
    "timeseries": timeseries,
    "stat": stat,
    "table": table,
    "state-timeline": statetimeline,
    "heatmap": heatmap,
    "bargauge": bargauge,
}


def new_panel(kind: str) -> Any:
    """A new builder of a panel of this kind."""
    return KINDS[kind].Panel()


def encoded(made: Any) -> str:
    """A file's text of what a builder made: sorted, without clock or version, the same on every run."""
    return str(JSONEncoder(sort_keys=True, indent=2).encode(made)) + "\n"
