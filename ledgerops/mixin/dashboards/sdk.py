"""Grafana's schemas as the Foundation SDK has them: the classic one, which files provision, and v2, of its API.

What differs between the two for a panel is a `Kit`; everything else about panels is written once.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # raised at import for the classic schema, which we mean
    from grafana_foundation_sdk.builders import (
        bargauge,
        dashboard,
        dashboardv2,
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
    from grafana_foundation_sdk.models import dashboardv2 as models_v2

__all__ = ["CLASSIC", "V2", "Kit", "common", "common_builders", "encoded", "models", "models_v2", "prometheus"]
KINDS: dict[str, Any] = {
    "timeseries": timeseries,
    "stat": stat,
    "table": table,
    "state-timeline": statetimeline,
    "heatmap": heatmap,
    "bargauge": bargauge,
}


@dataclass(frozen=True, slots=True)
class Kit:
    """The builders and models of one schema, and how the modules of a kind call their builder."""

    builders: Any
    models: Any
    looks: str

    def panel(self, kind: str) -> Any:
        """A new builder of a panel of this kind."""
        return getattr(KINDS[kind], self.looks)()


CLASSIC = Kit(dashboard, models, "Panel")
V2 = Kit(dashboardv2, models_v2, "VisualizationV2")


def encoded(made: Any) -> str:
    """A file's text of what a builder made: sorted, without clock or version, the same on every run."""
    return str(JSONEncoder(sort_keys=True, indent=2).encode(made)) + "\n"
