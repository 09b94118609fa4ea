"""Looks at the machine and at the observer, and other queries of the driver, for the rules that ask for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ledgerops.model.history import History
from ledgerops.model.records import Executor, Host, Observer, Plan, Process, StageSummary, TaskSummary
from ledgerops.signals.query_view import QueryView
from tests.build import batch
from tests.diagnosis.conftest import placed, stage

EVERY = 2.0  # seconds between two looks at the machine
OBSERVED = 5.0  # and at the observer
ROLES = ("driver_python", "driver_jvm", "python_workers")


def looked_at(
    view: QueryView,
    busy: float = 1.0,
    cpus: int = 2,
    slots: int = 2,
    quiet_for: float = 0.0,
    gc: float = 0.0,
    active: int = 0,
    limit: float | None = None,
    held_back: float = 0.0,
    executor: str = "driver",
    **by: float,
) -> QueryView:
    """The view with samples of its machine over the last 20 s; `by` in cores used by each role, `gc` a share of time,
    `active` the tasks that run, `limit` and `held_back` cores of its container, `executor` the id of the only one."""
    looks = []
    for number in range(11):
        processes = tuple(
            Process(role, 100.0 + by.get(role, 0.0) * EVERY * number, 2**20, 5, None)
            for role in ROLES  # type: ignore[arg-type]
        )
        runs = Executor(executor, True, slots, active, 0, 0, 0.0, gc * EVERY * number, 0, 2**30)
        at = view.now - quiet_for - EVERY * (10 - number)
        lost = None if limit is None else 50.0 + held_back * EVERY * number
        looks.append(
            Host(
                at, cpus, busy, 2**33, 2**32, None, None, processes, (runs,),
                cpu_limit_cores=limit, cpu_held_back_seconds=lost,
            )
        )  # fmt: skip
    return QueryView(view.history, view.now, looks, view.others)


def beside(view: QueryView, *others: History) -> QueryView:
    return QueryView(view.history, view.now, view.hosts, others)


def neighbour(
    view: QueryView,
    heavy_since: float | None,
    name: str = "hog",
    light: StageSummary | None = None,
    heavy: StageSummary | None = None,
    began: float = 0.0,
    every: float = 2.0,
) -> History:
    """A query that runs from `began` seconds after the view's on; from `heavy_since` seconds before now its stages are
    `heavy` (by default both slots for 5 s), before `light` (half a second on one). A batch begins `every` so many
    seconds."""
    light, heavy = light or stage(seconds=[0.3, 0.2], wall=0.3), heavy or stage(seconds=[4.8, 4.8], wall=4.9)
    other = History(name)
    at = (view.history.started_at or 0.0) + began
    other.start(at, "id-2", f"run-{name}")
    other.plan = Plan(f"run-{name}", trigger="processing_time", trigger_interval=2.0)
    for number in range(1000):
        what = heavy if heavy_since is not None and at >= view.now - heavy_since else light
        took = (what.ended or 0.0) - (what.started or 0.0) + 0.2
        if at + took > view.now:
            break
        other.add(batch(
            number, query=name, query_id="id-2", run_id=f"run-{name}", started=at, duration=took, rows=1000,
            phases={"add_batch": took - 0.1}, sources=(), sink="Noop", output_rows=None,
        ))  # fmt: skip
        other.tasks.append(TaskSummary(f"run-{name}", number, placed([what], at + 0.1)))
        at += max(every, took)
    return other


def watched(view: QueryView, looks: Sequence[Mapping[str, Any]], quiet_for: float = 0.0) -> QueryView:
    """The view with looks of the observer at itself, one every 5 s; of each only what differs from a healthy one."""
    seen = []
    for number, each in enumerate(looks):
        facts = {
            "queue_size": 3,
            "queue_limit": 10_000,
            "dropped": 0,
            "events": 100 + 10 * number,
            "callback_seconds": 0.1,
            "worker_seconds": 0.2 * number,
            "collector_errors": {},
        }
        seen.append(Observer(at=view.now - quiet_for - OBSERVED * (len(looks) - 1 - number), **(facts | each)))
    return QueryView(view.history, view.now, view.hosts, observer=seen)


def suspended(view: QueryView, seconds: float, ago: float = 0.0, python: float = 0.0) -> QueryView:
    """The view of a driver that stood still for so many seconds until some `ago`, but for what its Python used of a
    core: the observer and the machine were looked at before and afterwards."""
    went_on = view.now - ago
    before = [went_on - seconds - OBSERVED * n for n in (2, 1, 0)]
    after = [went_on + OBSERVED * n for n in range(int(ago / OBSERVED) + 1)]
    looks = [Observer(at, 3, 10_000, 0, 100 + n, 0.1, 0.2, {}) for n, at in enumerate(before + after)]
    hosts = [
        Host(at, 2, 0.1, 2**33, 2**32, None, None, (Process("driver_python", used, 2**20, 5, None),), ())
        for at, used in ((before[-1], 9.0), (went_on, 9.0 + python * seconds))
    ]
    return QueryView(view.history, view.now, hosts, observer=looks)
