"""The healthy runs that can be drawn: odd to look at, and nothing to be found in any of them."""

from __future__ import annotations

from collections.abc import Mapping

from ledgerops.drills.drawn.faults import TABLE_SECONDS, Chance, Draw, Parts


def back_to_back(c: Chance) -> Parts:
    """Batches follow each other without a trigger interval."""
    c.draw(triggers=(None,))
    return {"app": c.pick("warehouse", "mirror", "counts")}


def back_to_back_heavy(c: Chance) -> Parts:
    """Batches without a trigger interval, each with a write of 1.5 or 2.5 s."""
    c.draw(triggers=(None,))
    return {"app": "warehouse", "control": {"sink": c.pick(1.5, 2.5)}}


def heavy_but_stable(c: Chance) -> Parts:
    """Writes take 2.4 s of a trigger interval of 4 s."""
    c.draw(triggers=(4.0,))
    return {"app": c.pick("warehouse", "dedup"), "control": {"sink": 2.4}}


def slow_first_batch(c: Chance) -> Parts:
    """Writes take 9 s for the first 12 s only, as when caches are cold."""
    c.draw(triggers=(2.0,))
    return {"app": c.pick("warehouse", "dedup"), "control": {"sink": 9.0}, "changes": ((12.0, {"sink": 0.0}),)}


def state_plateau(c: Chance) -> Parts:
    """State grows until the watermark delay of 15 s is filled, then stays."""
    c.draw(triggers=(2.0, 4.0))
    return {"app": "dedup", "options": {"rate": 400, "delay": "15 seconds"}, "load": 300}


def twice_the_load(c: Chance) -> Parts:
    """The input rate doubles, still below the capacity."""
    c.draw(triggers=(2.0,), sources=("files", "kafka"))
    control, changes = {"load": {"rate": 60}}, ((35.0, {"load": {"rate": 120}}),)
    return {"app": "fraud", "options": {"wait": 6.0}, "partitions": 2, "control": control, "changes": changes}


def busy_key(c: Chance) -> Parts:
    """70 % of the rows have the same key, and batches still finish in time."""
    c.draw(triggers=(4.0,), sources=("files", "kafka"))
    control = {"load": {"rate": 60, "hot": 0.7}, "row": 0.004}
    return {"app": "sessions", "master": "local[4]", "options": {"shuffle": 4}, "control": control}


def available_now(c: Chance) -> Parts:
    """The trigger is available-now: the query ends after it has read what is there."""
    c.draw(sources=("files", "kafka"), triggers=(-1.0,))
    load = {"rate": 100, "burst": 3000}
    return {"app": c.pick("warehouse", "mirror"), "options": {"cap": c.pick(0, 500)}, "control": {"load": load}}


def long_trigger(c: Chance) -> Parts:
    """The trigger interval is 20 s."""
    c.draw(triggers=(20.0,))
    return {"app": c.pick("counts", "warehouse", "scoring"), "seconds": 90.0}


def graceful_restart(c: Chance) -> Parts:
    """The query is stopped and started again 6 s later on its checkpoint."""
    c.draw(triggers=(1.0, 2.0), sources=("files", "kafka"))
    changes = ((30.0, {"pause": True}), (36.0, {"pause": False, "resume": True}))
    return {"app": c.pick("warehouse", "dedup"), "changes": changes, "seconds": 75.0}


def catch_up_after_pause(c: Chance) -> Parts:
    """The query is stopped for 20 s and then catches up with what arrived, 600 rows a batch."""
    c.draw(triggers=(2.0,), sources=("kafka",))
    changes = ((25.0, {"pause": True}), (45.0, {"pause": False, "resume": True}))
    return {"app": "warehouse", "options": {"cap": 600}, "changes": changes, "seconds": 85.0}


def noisy_machine(c: Chance) -> Parts:
    """Two other processes occupy cores, and batches still finish in 10 s."""
    c.draw(triggers=(10.0,))
    return {"app": c.pick("warehouse", "counts"), "actions": ((5.0, "burn_cpu", 2.0),), "seconds": 75.0}


def idle_source(c: Chance) -> Parts:
    """The producer stops after 12 s, so later batches have no rows."""
    c.draw(triggers=(None, 1.0, 2.0), sources=("files", "kafka"))
    load = {"load": {"rate": 50}}
    return {"app": "warehouse", "control": load, "changes": ((12.0, {"load": {"rate": 0}}),)}


def bursts(c: Chance) -> Parts:
    """The input rate rises fourfold twice, for 8 s each."""
    c.draw(triggers=(2.0,), sources=("files", "kafka"))
    quiet, busy = {"load": {"rate": 50}}, {"load": {"rate": 200}}
    return {"app": "counts", "control": quiet, "changes": ((20.0, busy), (28.0, quiet), (42.0, busy), (50.0, quiet))}


def uneven_partitions(c: Chance) -> Parts:
    """80 % of the rows arrive in one partition, far below its capacity."""
    c.draw(triggers=(2.0, 4.0), sources=("kafka",))
    return {"app": c.pick("warehouse", "features"), "control": {"load": {"rate": 120, "pinned": 0.8}}}


def python_with_room(c: Chance) -> Parts:
    """A Python function takes 10 ms for each row, far below the capacity of two tasks."""
    c.draw(triggers=(4.0,))
    app = c.pick("features", "scoring")
    return {"app": app, "options": {"rate": 40}, "load": 40, "partitions": 2, "control": {"row": 0.01}}


def many_tasks_with_room(c: Chance) -> Parts:
    """60 shuffle tasks finish well within a trigger interval of 10 s."""
    c.draw(triggers=(10.0,))
    return {"app": "counts", "options": {"shuffle": 60}, "seconds": 80.0}


def late_within_delay(c: Chance) -> Parts:
    """A tenth of the rows is 8 s late, within the watermark delay of 30 s."""
    c.draw(triggers=(1.0, 2.0), sources=("files", "kafka"))
    load = {"rate": 100, "late": 0.1, "late_by": 8.0}
    return {"app": c.pick("counts", "dedup"), "options": {"delay": "30 seconds"}, "control": {"load": load}}


def two_queries(c: Chance) -> Parts:
    """Two queries share one application, and neither slows the other."""
    c.draw(triggers=(4.0,))
    return {"app": "reports", "query": "reports", "control": {"burn": 0.3}}


def stopped_by_its_owner(c: Chance) -> Parts:
    """The owner stops the query for good, without an error."""
    c.draw(triggers=(1.0, 2.0))
    return {"app": c.pick("warehouse", "counts"), "changes": ((35.0, {"pause": True, "over": True}),)}


def first_backlog(c: Chance) -> Parts:
    """A new query reads 8,000 old rows, at most 800 a batch."""
    c.draw(triggers=(1.0, 2.0), sources=("kafka",))
    options = {"cap": 800, "start": "earliest"}
    return {"app": "warehouse", "options": options, "control": {"load": {"rate": 100, "burst": 8000}}}


def whole_table(c: Chance) -> Parts:
    """The query writes its whole result table in each batch."""
    c.draw(triggers=(None, 2.0))
    return {"app": "totals"}


def ledger_as_shipped(c: Chance) -> Parts:
    """A job of the ledger with its default load."""
    c.draw(triggers=(2.0, 5.0))
    return {"app": "ledger_job"}


def both_joined(c: Chance) -> Parts:
    """A query with two inputs that both have rows."""
    c.draw(triggers=(2.0, 4.0), sources=("files", "kafka"))
    load = {"rate": 60}
    return {"app": c.pick("payments", "merged"), "two_inputs": True, "control": {"load": load, "load2": load}}


def table_to_table(c: Chance) -> Parts:
    """One query copies a Delta table to a second, and another one that to a third."""
    c.draw(triggers=(3 * TABLE_SECONDS,), sources=("delta",))
    return {"app": "lake", "options": {"format": "delta", "gold": "gold"}, "query": "silver", "seconds": 90.0}


def table_compacted(c: Chance) -> Parts:
    """The Delta table that the query reads is compacted twice, without new rows."""
    c.draw(triggers=(2 * TABLE_SECONDS,), sources=("delta",))
    actions = ((30.0, "compact", 0.0), (55.0, "compact", 0.0))
    return {"app": c.pick("warehouse", "counts", "lake"), "options": {"format": "delta"}, "actions": actions}


HEALTHY: Mapping[str, Draw] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        back_to_back, back_to_back_heavy, heavy_but_stable, slow_first_batch, state_plateau, twice_the_load, busy_key,
        available_now, long_trigger, graceful_restart, catch_up_after_pause, noisy_machine, idle_source, bursts,
        uneven_partitions, python_with_room, many_tasks_with_room, late_within_delay, two_queries,
        stopped_by_its_owner, first_backlog, whole_table, ledger_as_shipped, both_joined, table_to_table,
        table_compacted,
    )
}  # fmt: skip
