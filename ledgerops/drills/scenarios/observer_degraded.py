"""F21b, observer degraded: the Spark UI, which reports tasks and executors, stops responding. The query is healthy."""

from __future__ import annotations

from typing import Any

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.servers.process import free_port

PLAN = "{seed: 27, start: now, phases: [{shape: constant, rate: 200}]}"


def prepare(injector: Injector) -> dict[str, Any]:
    target = free_port()
    proxy = Proxy(target)
    proxy.__enter__()
    injector.closing.append(lambda: proxy.__exit__())
    injector.held["proxy"] = proxy
    return {"conf": {"spark.ui.port": str(target)}, "watch": {"ui_url": f"http://127.0.0.1:{proxy.port}"}}


DRILL = Drill(
    name="observer-degraded",
    id="F21b",
    summary="the Spark UI stops responding while the query is healthy",
    prepare=prepare,
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(PLAN)}),
    inject=lambda injector: injector.held["proxy"].set(down=True),
    repair=lambda injector: injector.held["proxy"].heal(),
    effect=at_once,
    recovery_seconds=45.0,  # a collector that failed rests for a while before it is trusted again
    truth=cause("observer-degraded", component=("observer",), remedy="UI"),
)
