"""The healthy runs that can be drawn: odd to look at, and nothing to be found in any of them."""

from collections.abc import Mapping

from ledgerops.drills.drawn.faults import TABLE_SECONDS, Draw, kind

FED = ("files", "kafka")  # sources whose rate may change
PAUSED, RESUMED = {"pause": True}, {"pause": False, "resume": True}
QUIET, BUSY = {"load": {"rate": 50}}, {"load": {"rate": 200}}

HEALTHY: Mapping[str, Draw] = {
    "back-to-back": kind(
        "Batches follow each other without a trigger interval.",
        lambda c: {"app": c.pick("warehouse", "mirror", "counts")}, triggers=(None,),
    ),
    "back-to-back-heavy": kind(
        "Batches without a trigger interval, each with a write of 1.5 or 2.5 s.",
        lambda c: {"app": "warehouse", "control": {"sink": c.pick(1.5, 2.5)}}, triggers=(None,),
    ),
    "heavy-but-stable": kind(
        "Writes take 2.4 s of a trigger interval of 4 s.",
        lambda c: {"app": c.pick("warehouse", "dedup"), "control": {"sink": 2.4}}, triggers=(4.0,),
    ),
    "slow-first-batch": kind(
        "Writes take 9 s for the first 12 s only, as when caches are cold.",
        lambda c: {"app": c.pick("warehouse", "dedup"), "control": {"sink": 9.0}, "changes": ((12.0, {"sink": 0.0}),)},
        triggers=(2.0,),
    ),
    "state-plateau": kind(
        "State grows until the watermark delay of 15 s is filled, then stays.",
        lambda c: {"app": "dedup", "options": {"rate": 400, "delay": "15 seconds"}, "load": 300}, triggers=(2.0, 4.0),
    ),
    "twice-the-load": kind(
        "The input rate doubles, still below the capacity.",
        lambda c: {
            "app": "fraud", "options": {"wait": 6.0}, "partitions": 2, "control": {"load": {"rate": 60}},
            "changes": ((35.0, {"load": {"rate": 120}}),),
        },
        triggers=(2.0,), sources=FED,
    ),
    "busy-key": kind(
        "70 % of the rows have the same key, and batches still finish in time.",
        lambda c: {
            "app": "sessions", "master": "local[4]", "options": {"shuffle": 4},
            "control": {"load": {"rate": 60, "hot": 0.7}, "row": 0.004},
        },
        triggers=(4.0,), sources=FED,
    ),
    "available-now": kind(
        "The trigger is available-now: the query ends after it has read what is there.",
        lambda c: {
            "app": c.pick("warehouse", "mirror"), "options": {"cap": c.pick(0, 500)},
            "control": {"load": {"rate": 100, "burst": 3000}},
        },
        sources=FED, triggers=(-1.0,),
    ),
    "long-trigger": kind(
        "The trigger interval is 20 s.",
        lambda c: {"app": c.pick("counts", "warehouse", "scoring"), "seconds": 90.0}, triggers=(20.0,),
    ),
    "graceful-restart": kind(
        "The query is stopped and started again 6 s later on its checkpoint.",
        lambda c: {"app": c.pick("warehouse", "dedup"), "changes": ((30.0, PAUSED), (36.0, RESUMED)), "seconds": 75.0},
        triggers=(1.0, 2.0), sources=FED,
    ),
    "catch-up-after-pause": kind(
        "The query is stopped for 20 s and then catches up with what arrived, 600 rows a batch.",
        lambda c: {
            "app": "warehouse", "options": {"cap": 600}, "changes": ((25.0, PAUSED), (45.0, RESUMED)), "seconds": 85.0,
        },
        triggers=(2.0,), sources=("kafka",),
    ),
    "noisy-machine": kind(
        "Two other processes occupy cores, and batches still finish in 10 s.",
        lambda c: {"app": c.pick("warehouse", "counts"), "actions": ((5.0, "burn_cpu", 2.0),), "seconds": 75.0},
        triggers=(10.0,),
    ),
    "idle-source": kind(
        "The producer stops after 12 s, so later batches have no rows.",
        lambda c: {"app": "warehouse", "control": QUIET, "changes": ((12.0, {"load": {"rate": 0}}),)},
        triggers=(None, 1.0, 2.0), sources=FED,
    ),
    "bursts": kind(
        "The input rate rises fourfold twice, for 8 s each.",
        lambda c: {
            "app": "counts", "control": QUIET, "changes": ((20.0, BUSY), (28.0, QUIET), (42.0, BUSY), (50.0, QUIET)),
        },
        triggers=(2.0,), sources=FED,
    ),
    "uneven-partitions": kind(
        "80 % of the rows arrive in one partition, far below its capacity.",
        lambda c: {"app": c.pick("warehouse", "features"), "control": {"load": {"rate": 120, "pinned": 0.8}}},
        triggers=(2.0, 4.0), sources=("kafka",),
    ),
    "python-with-room": kind(
        "A Python function takes 10 ms for each row, far below the capacity of two tasks.",
        lambda c: {
            "app": c.pick("features", "scoring"), "options": {"rate": 40}, "load": 40, "partitions": 2,
            "control": {"row": 0.01},
        },
        triggers=(4.0,),
    ),
    "many-tasks-with-room": kind(
        "60 shuffle tasks finish well within a trigger interval of 10 s.",
        lambda c: {"app": "counts", "options": {"shuffle": 60}, "seconds": 80.0}, triggers=(10.0,),
    ),
    "late-within-delay": kind(
        "A tenth of the rows is 8 s late, within the watermark delay of 30 s.",
        lambda c: {
            "app": c.pick("counts", "dedup"), "options": {"delay": "30 seconds"},
            "control": {"load": {"rate": 100, "late": 0.1, "late_by": 8.0}},
        },
        triggers=(1.0, 2.0), sources=FED,
    ),
    "two-queries": kind(
        "Two queries share one application, and neither slows the other.",
        lambda c: {"app": "reports", "query": "reports", "control": {"burn": 0.3}}, triggers=(4.0,),
    ),
    "stopped-by-its-owner": kind(
        "The owner stops the query for good, without an error.",
        lambda c: {"app": c.pick("warehouse", "counts"), "changes": ((35.0, {"pause": True, "over": True}),)},
        triggers=(1.0, 2.0),
    ),
    "first-backlog": kind(
        "A new query reads 8,000 old rows, at most 800 a batch.",
        lambda c: {
            "app": "warehouse", "options": {"cap": 800, "start": "earliest"},
            "control": {"load": {"rate": 100, "burst": 8000}},
        },
        triggers=(1.0, 2.0), sources=("kafka",),
    ),
    "whole-table": kind(
        "The query writes its whole result table in each batch.",
        lambda c: {"app": "totals"}, triggers=(None, 2.0),
    ),
    "ledger-as-shipped": kind(
        "A job of the ledger with its default load.",
        lambda c: {"app": "ledger_job"}, triggers=(2.0, 5.0),
    ),
    "both-joined": kind(
        "A query with two inputs that both have rows.",
        lambda c: {
            "app": c.pick("payments", "merged"), "two_inputs": True,
            "control": {"load": {"rate": 60}, "load2": {"rate": 60}},
        },
        triggers=(2.0, 4.0), sources=FED,
    ),
    "table-to-table": kind(
        "One query copies a Delta table to a second, and another one that to a third.",
        lambda c: {"app": "lake", "options": {"format": "delta", "gold": "gold"}, "query": "silver", "seconds": 90.0},
        triggers=(3 * TABLE_SECONDS,), sources=("delta",),
    ),
    "table-compacted": kind(
        "The Delta table that the query reads is compacted twice, without new rows.",
        lambda c: {
            "app": c.pick("warehouse", "counts", "lake"), "options": {"format": "delta"},
            "actions": ((30.0, "compact", 0.0), (55.0, "compact", 0.0)),
        },
        triggers=(2 * TABLE_SECONDS,), sources=("delta",),
    ),
}  # fmt: skip
