"""The healthy runs that can be drawn: odd to look at, and nothing to be found in any of them."""

from __future__ import annotations

from collections.abc import Mapping

from ledgerops.drills.drawn.faults import Chance, Draw, Parts


def back_to_back(c: Chance) -> Parts:
    c.draw(triggers=(None,))
    return {"app": c.pick("warehouse", "mirror", "counts")}


def back_to_back_heavy(c: Chance) -> Parts:
    c.draw(triggers=(None,))
    return {"app": "warehouse", "control": {"sink": c.pick(1.5, 2.5)}}


def heavy_but_stable(c: Chance) -> Parts:
    c.draw(triggers=(4.0,))
    return {"app": c.pick("warehouse", "dedup"), "control": {"sink": 2.4}}


def slow_first_batch(c: Chance) -> Parts:
    c.draw(triggers=(2.0,))
    return {"app": c.pick("warehouse", "dedup"), "control": {"sink": 9.0}, "changes": ((12.0, {"sink": 0.0}),)}


def state_plateau(c: Chance) -> Parts:
    c.draw(triggers=(2.0, 4.0))
    return {"app": "dedup", "options": {"rate": 400, "delay": "15 seconds"}, "load": 300}


def twice_the_load(c: Chance) -> Parts:
    c.draw(triggers=(2.0,), sources=("files", "kafka"))
    control, changes = {"load": {"rate": 60}}, ((35.0, {"load": {"rate": 120}}),)
    return {"app": "fraud", "options": {"wait": 6.0}, "partitions": 2, "control": control, "changes": changes}


def busy_key(c: Chance) -> Parts:
    c.draw(triggers=(4.0,), sources=("files", "kafka"))
    control = {"load": {"rate": 60, "hot": 0.7}, "row": 0.004}
    return {"app": "sessions", "master": "local[4]", "options": {"shuffle": 4}, "control": control}


def available_now(c: Chance) -> Parts:
    c.draw(sources=("files", "kafka"), triggers=(-1.0,))
    load = {"rate": 100, "burst": 3000}
    return {"app": c.pick("warehouse", "mirror"), "options": {"cap": c.pick(0, 500)}, "control": {"load": load}}


def long_trigger(c: Chance) -> Parts:
    c.draw(triggers=(20.0,))
    return {"app": c.pick("counts", "warehouse", "scoring"), "seconds": 90.0}


def graceful_restart(c: Chance) -> Parts:
    c.draw(triggers=(1.0, 2.0), sources=("files", "kafka"))
    changes = ((30.0, {"pause": True}), (36.0, {"pause": False, "resume": True}))
    return {"app": c.pick("warehouse", "dedup"), "changes": changes, "seconds": 75.0}


def catch_up_after_pause(c: Chance) -> Parts:
    c.draw(triggers=(2.0,), sources=("kafka",))
    changes = ((25.0, {"pause": True}), (45.0, {"pause": False, "resume": True}))
    return {"app": "warehouse", "options": {"cap": 600}, "changes": changes, "seconds": 85.0}


def noisy_machine(c: Chance) -> Parts:
    c.draw(triggers=(10.0,))
    return {"app": c.pick("warehouse", "counts"), "actions": ((5.0, "burn_cpu", 2.0),), "seconds": 75.0}


def idle_source(c: Chance) -> Parts:
    c.draw(triggers=(None, 1.0, 2.0), sources=("files", "kafka"))
    load = {"load": {"rate": 50}}
    return {"app": "warehouse", "control": load, "changes": ((12.0, {"load": {"rate": 0}}),)}


def bursts(c: Chance) -> Parts:
    c.draw(triggers=(2.0,), sources=("files", "kafka"))
    quiet, busy = {"load": {"rate": 50}}, {"load": {"rate": 200}}
    return {"app": "counts", "control": quiet, "changes": ((20.0, busy), (28.0, quiet), (42.0, busy), (50.0, quiet))}


def uneven_partitions(c: Chance) -> Parts:
    c.draw(triggers=(2.0, 4.0), sources=("kafka",))
    return {"app": c.pick("warehouse", "features"), "control": {"load": {"rate": 120, "pinned": 0.8}}}


def python_with_room(c: Chance) -> Parts:
    c.draw(triggers=(4.0,))
    app = c.pick("features", "scoring")
    return {"app": app, "options": {"rate": 40}, "load": 40, "partitions": 2, "control": {"row": 0.01}}


def many_tasks_with_room(c: Chance) -> Parts:
    c.draw(triggers=(10.0,))
    return {"app": "counts", "options": {"shuffle": 60}, "seconds": 80.0}


def late_within_delay(c: Chance) -> Parts:
    c.draw(triggers=(1.0, 2.0), sources=("files", "kafka"))
    load = {"rate": 100, "late": 0.1, "late_by": 8.0}
    return {"app": c.pick("counts", "dedup"), "options": {"delay": "30 seconds"}, "control": {"load": load}}


def two_queries(c: Chance) -> Parts:
    c.draw(triggers=(4.0,))
    return {"app": "reports", "query": "reports", "control": {"burn": 0.3}}


def stopped_by_its_owner(c: Chance) -> Parts:
    c.draw(triggers=(1.0, 2.0))
    return {"app": c.pick("warehouse", "counts"), "changes": ((35.0, {"pause": True, "over": True}),)}


def first_backlog(c: Chance) -> Parts:
    c.draw(triggers=(1.0, 2.0), sources=("kafka",))
    options = {"cap": 800, "start": "earliest"}
    return {"app": "warehouse", "options": options, "control": {"load": {"rate": 100, "burst": 8000}}}


def whole_table(c: Chance) -> Parts:
    c.draw(triggers=(None, 2.0))
    return {"app": "totals"}


def ledger_as_shipped(c: Chance) -> Parts:
    c.draw(triggers=(2.0, 5.0))
    return {"app": "ledger_job"}


def both_joined(c: Chance) -> Parts:
    c.draw(triggers=(2.0, 4.0), sources=("files", "kafka"))
    load = {"rate": 60}
    return {"app": c.pick("payments", "merged"), "two_inputs": True, "control": {"load": load, "load2": load}}


HEALTHY: Mapping[str, Draw] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        back_to_back, back_to_back_heavy, heavy_but_stable, slow_first_batch, state_plateau, twice_the_load, busy_key,
        available_now, long_trigger, graceful_restart, catch_up_after_pause, noisy_machine, idle_source, bursts,
        uneven_partitions, python_with_room, many_tasks_with_room, late_within_delay, two_queries,
        stopped_by_its_owner, first_backlog, whole_table, ledger_as_shipped, both_joined,
    )
}  # fmt: skip
