"""Grafana's classic dashboard schema as the Foundation SDK has it: the one that file provisioning reads."""

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
    "common", "common_builders", "dashboard", "encoded", "heatmap", "heatmap_models", "models", "new_panel",
    "prometheus",
]  # fmt: skip


class Timeline(statetimeline.Panel):  # type: ignore[misc]
    """A state timeline without pages: its rows are bounded, and the buttons of one page take the room of two rows."""

    def build(self) -> Any:
        """As the SDK does, which takes no 0 for the number of rows on a page."""
        made = super().build()
        made.options.per_page = 0
        return made


KINDS: dict[str, Any] = {
    "timeseries": timeseries.Panel,
    "stat": stat.Panel,
    "table": table.Panel,
    "state-timeline": Timeline,
    "heatmap": heatmap.Panel,
    "bargauge": bargauge.Panel,
}


def new_panel(kind: str) -> Any:
    """A new builder of a panel of this kind."""
    return KINDS[kind]()


def encoded(made: Any) -> str:
    """A file's text of what a builder made: sorted, without clock or version, the same on every run."""
    return str(JSONEncoder(sort_keys=True, indent=2).encode(made)) + "\n"
