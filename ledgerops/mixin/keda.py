"""KEDA's ScaledObjects: the workers of an application follow the lag of its queries.

Lag says that there is too little, never that there is too much: how many workers can go is asked of the pressure (the
arrival over the sustainable rate). Where more workers would not help, neither asks for any.
"""

from typing import Any

from ledgerops.mixin.alerts.promql import LAG, TRIGGER
from ledgerops.mixin.site import Site

# root causes that more workers do not cure: lag and pressure of their query count as if they were just at the limit
NOT_CURED = (
    "checkpoint-slow", "crash-loop", "intermittent-sink", "key-skew", "query-stuck", "rate-limited",
    "slow-sink", "slow-source", "small-batch-overhead", "source-partition-skew", "source-unreachable", "straggler",
)  # fmt: skip
LAG_SHARE = 0.5  # of the freshness objective, at which workers are added: they need time to start
PRESSURE = 0.7  # at which the number of workers fits: the rest is for bursts
SLOW_DOWN_SECONDS = 1800  # an executor that goes takes its state with it, which the others load again
WARNING = (
    "More workers help only up to the number of source partitions (or minPartitions), and never against one hot key or "
    "a slow sink. Spark must be free to take new workers: no spark.cores.max. A worker that goes makes the others "
    "load its state again."
)


def scaled_objects(site: Site) -> list[dict[str, Any]]:
    """One for each `application=Deployment` of `site.kubernetes_workers`."""
    pairs = [each.strip().split("=", 1) for each in site.kubernetes_workers.split(",") if each.strip()]
    return [_scaled_object(app, workers, site) for app, workers in pairs]


def lag_query(app: str, site: Site) -> str:
    """The longest lag of the application's queries beyond two trigger intervals, which a query that keeps up has, too
    (seconds); at most the limit where workers would not help."""
    lag, trigger = (site.series(each, _of(app)) for each in (LAG, TRIGGER))
    beyond = f"clamp_min({lag} - on (job, app, query) group_left () 2 * {trigger}, 0)"
    return _most(f"({beyond} or {lag})", _limit(site), app, site)  # one that ends by itself has no interval


def pressure_query(app: str, site: Site) -> str:
    """The highest pressure of the application's queries: 1 is all that the present workers sustain. At most PRESSURE
    where workers would not help."""
    return _most(site.series("ledgerops_pressure_ratio", _of(app)), PRESSURE, app, site)


def _most(value: str, limit: float, app: str, site: Site) -> str:
    rules = f'rule=~"{"|".join(NOT_CURED)}"'
    causes = f"{site.series('ledgerops_root_cause', _of(app), rules)} == 1"
    on = "on (job, app, instance, query)"
    return f"max(({value} unless {on} ({causes})) or clamp_max({value}, {limit:g}))"


def _of(app: str) -> str:
    return f'app="{app}"'


def _limit(site: Site) -> float:
    return LAG_SHARE * site.freshness_seconds


def _scaled_object(app: str, workers: str, site: Site) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": f"ledgerops-{workers}", "annotations": {"ledgerops/warning": WARNING}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": workers},
            "minReplicaCount": 1,
            "maxReplicaCount": int(site.kubernetes_workers_max),
            "pollingInterval": 15,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior()}},
            "triggers": [
                _trigger("lag", lag_query(app, site), _limit(site), site),
                _trigger("pressure", pressure_query(app, site), PRESSURE, site),
            ],
        },
    }


def _behavior() -> dict[str, Any]:
    twice = {"type": "Percent", "value": 100, "periodSeconds": 120}
    one_less = {"type": "Pods", "value": 1, "periodSeconds": 600}
    return {
        "scaleUp": {"stabilizationWindowSeconds": 60, "policies": [twice]},
        "scaleDown": {"stabilizationWindowSeconds": SLOW_DOWN_SECONDS, "policies": [one_less]},
    }


def _trigger(name: str, query: str, limit: float, site: Site) -> dict[str, Any]:
    """`Value`: as many workers as now, times the answer, over the limit. Without an answer nothing is removed."""
    return {
        "type": "prometheus",
        "name": name,
        "metricType": "Value",
        "metadata": {
            "serverAddress": f"http://prometheus-operated.{site.kubernetes_monitoring}:9090",
            "query": query,
            "threshold": f"{limit:g}",
            "ignoreNullValues": "false",
        },
    }
