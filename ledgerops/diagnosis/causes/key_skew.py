"""Key skew: one key holds so many rows that one task does most of the work.

Meaning: all rows of one key go to the same task. If one key has the share s of the rows, its task processes at least
    that share, so the stage can never run more than 1/s times faster than on a single core.
Impact: one task still runs when the others are done. Batches take longer, and adding cores does not help.
Diagnosis: 1. `ledgerops_hot_key_share{app="APP",query="QUERY"}` is the share of the hottest key (if the query uses
    `ledgerops.instrument`). Above 0.3, one key is the cause.
    2. `ledgerops_skew_ratio{app="APP",query="QUERY",kind="task_records"}` shows how uneven the tasks of the longest
    stage are (with two tasks it cannot exceed 2). Near 1 means that the records are even: see `straggler`.
    3. Without `ledgerops.instrument`, open the stage in the Spark UI and compare median and maximum of "Shuffle Read
    Records". Then count the rows by key to find the key. A placeholder such as "unknown" or an empty string is a
    frequent cause. With `ledgerops.instrument` the finding has the condition that finds the key by its hash.
Mitigation: process a placeholder key separately, or filter it out. Otherwise split the key: add a random suffix to it
    (a salt) and aggregate twice, first with the salt and then without. Spark aggregates a stream twice in output mode
    append only: in the others add up the parts in the sink or in a second query. State needs a new checkpoint for that.
    A function that keeps state, a deduplication or a join needs all rows of its key: give it a finer key, or the hot
    key a query of its own. Where a join makes far more rows of the key than it reads, narrow its condition instead.
    More cores, more shuffle partitions and adaptive execution do not help: the checkpoint fixes the number of
    partitions of a stateful query, which runs without adaptive execution.
"""

from ledgerops.diagnosis.batch_parts import makes_rows
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.skew import HOT_KEY
from ledgerops.model.finding import Component, Evidence, Remedy
from ledgerops.signals.query_view import QueryView

MIN_HOT_SHARE = 0.3  # of the rows; a Zipf exponent of 0.8 over some thousands of keys gives the hottest less than 0.05
AGGREGATION = "stateStoreSave"  # how Spark calls it
SPLIT = "only splitting the key spreads its rows over several tasks"
SALT = Remedy("salt the key and aggregate in two steps, or process the hot key separately", SPLIT, safe=False)
SALT_STATE = Remedy(
    "salt the key and add up the parts, in append mode by a second aggregation, else in the sink; or process the hot "
    "key separately",
    f"{SPLIT}; a salted state needs a new checkpoint",
    safe=False,
)
APART = Remedy(
    "process the hot key in a query of its own, or group by a finer key",
    "what keeps this state needs all rows of its key, so they cannot be aggregated in two steps",
    safe=False,
)
NARROW = Remedy(
    "narrow the condition of the join, or what one key may match on its other side",
    "a salt spreads the rows of the key, and the join makes as many of them",
    safe=False,
)
NO_USE = Remedy(
    "do not add cores or shuffle partitions to fix this",
    "a key stays in one task, and the checkpoint fixes the partitions of a stateful query",
)


def _tell(view: QueryView, found: Profile) -> Told:
    stage, hot, keys = found.splits[-1].worst("uneven_keys"), view.skew.hot_key, ", ".join(view.plan.keys[:2])
    column = view.skew.key_column or keys or None
    parts, more = list[str](), list[Evidence]()
    look = first_step("key-skew", GENERAL, "a key stays in one task")
    if hot is not None and hot.share >= MIN_HOT_SHARE:
        of, times = f" of {column}" if column else "", f"{1 / hot.share:.2f}x faster"
        parts.append(
            f"key {hot.key}{of} has {hot.share:.0%} of the rows; more tasks cannot make this stage more than {times}"
        )
        at = view.last.ended if view.last else view.now
        by_hash = f"WHERE sha2(string(`{column}`), 256) LIKE '{hot.key}%'" if column and hot.hashed else None
        look = first_step("key-skew", "hot", "a key stays in one task", command=by_hash)
        more.append(Evidence(HOT_KEY.name, hot.share, "ratio", f"< {MIN_HOT_SHARE:g}", at))
    if stage is not None:
        share = stage.records_max / max(1, stage.records)
        made = f", and makes {stage.slowest_wrote:,} rows of {stage.records_max:,.0f}" if makes_rows(stage) else ""
        parts.append(f"one of {stage.tasks} tasks of stage {stage.stage_id} reads {share:.0%} of the records{made}")
    adds_up = all(operator.name.startswith(AGGREGATION) for operator in view.operators)
    salt = SALT_STATE if view.operators and adds_up else SALT if adds_up else APART
    split = NARROW if stage is not None and makes_rows(stage) else salt
    steps = (look, split)
    return Told(
        # stage ids and hot keys change from batch to batch, what is shuffled by does not
        Component("stage", f"shuffle by {keys}" if keys else "shuffle", column),
        (*steps, NO_USE) if view.run.stateful else steps,
        {"who": "; ".join(parts) or "one task reads most of the records"},
        tuple(more),
    )


CAUSE = Cause(
    slug="key-skew",
    runbook=__doc__,
    parts=("uneven_keys",),
    min_share=0.15,  # it is measured row by row, and nothing else takes it
    happened="{who}, which costs {seconds} of a batch of {batch}",
    explains=(*LATE, "source-partition-skew"),
    formulas={
        HOT_KEY.name: "rows of the most frequent key divided by all rows, of the newest of the last 5 batches in which "
        "`ledgerops.instrument` counted 100 rows of a key with at least 0.3 of them"
    },
    tell=_tell,
)
