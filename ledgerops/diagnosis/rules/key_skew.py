"""Key skew: one key holds so many rows that one task does most of the work.

Meaning: all rows of one key go to the same task. If one key has the share s of the rows, its task processes at least
    that share, so the stage can never run more than 1/s times faster than on a single core.
Impact: one task still runs when the others are done. Batches take longer, and adding cores does not help.
Diagnosis: 1. `ledgerops_hot_key_share{query="QUERY"}` is the share of the hottest key (if the query uses
    `ledgerops.instrument`). Above 0.3, one key is the cause.
    2. `ledgerops_skew_ratio{query="QUERY",kind="task_records"}` shows how uneven the tasks of the longest stage are
    (with two tasks it cannot exceed 2). Near 1 means that the records are even: see `straggler`.
    3. Without `ledgerops.instrument`, open the stage in the Spark UI and compare median and maximum of "Shuffle Read
    Records". Then count the rows by key to find the key. A placeholder such as "unknown" or an empty string is a
    frequent cause.
Mitigation: process a placeholder key separately, or filter it out. Otherwise split the key: add a random suffix to it
    (a salt) and aggregate twice, first with the salt and then without. More cores, more shuffle partitions and adaptive
    execution do not help: the checkpoint fixes the number of partitions of a stateful query, which runs without
    adaptive execution.
Evidence:
    ledgerops_hot_key_share: rows of the hottest key (first of observedMetrics hot_keys) divided by all observed rows,
        in the newest batch in which that key has at least 100 rows and 0.3 of the observed rows
    hot_key_rows: the rows of that key
    slower_by_hot_key: slots x (s + (1 - s) / slots), with s = ledgerops_hot_key_share and slots = min(tasks of the
        uneven stage or shuffle partitions, cores of active executors)
    largest_task_records: records_max of the stage with the most uneven records among those that read a shuffle, in the
        batch of P whose factor is the median. P = the newest 5 batches whose tasks were read, without the first batch
        of the run; if 2 or more in a row up to now take longer than 1.1 times the interval, only those
    largest_task_share: records_max / records of that stage, at most 1
    stage_slower_than_even: largest_task_share x min(tasks, cores of active executors)
    lost_by_uneven_tasks_seconds: median over P of ((ended - started) of that stage - run_seconds / slots, at least 0)
        divided by the batch duration; times the median batch duration over P
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.diagnosis import batch_time, harm, overload, strain, task_skew
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.skew import HOT_KEY
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.observed_metrics import HotKey
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

# share of one key; a Zipf exponent of 0.8 over some thousands of keys gives the hottest less than 0.05
MIN_HOT_SHARE = 0.3
MIN_SLOWDOWN = 1.5  # of the stage over an even split; by chance it stays below 1.2
MIN_FEW_KEYS_SLOWDOWN = 2.0  # by chance, some dozens of keys on four or more tasks take that much longer
MIN_HARMLESS_SLOWDOWN = 2.5  # without a hot key, and while batches are in time
MAX_BALANCED_FACTOR = 1.25  # tasks this even prove that no key loads them
# fewer records shuffled than this share of the rows: rows are combined before, keys do not matter
MAX_COMBINED_SHARE = 0.5
MIN_BATCHES = 3  # that must show it
MIN_HOT_ROWS = 100  # of the hot key in a batch; fewer say nothing about a share


def check(view: QueryView) -> Iterator[Finding]:
    proven, hot = _proof(view)
    if proven is None and hot is None:
        return
    at = view.last.ended if view.last else view.now
    column = view.skew.key_column or ", ".join(view.plan.keys[:2]) or None
    evidence: list[Evidence] = []
    parts: list[str] = []
    if hot is not None:
        slower = _factor(hot.share, _width(view, proven))
        evidence += (
            Evidence(HOT_KEY.name, hot.share, "ratio", f"< {MIN_HOT_SHARE:g}", at),
            Evidence("hot_key_rows", float(hot.rows), "rows", f"< {MIN_HOT_SHARE:.0%} of the rows", at),
            Evidence("slower_by_hot_key", slower, "ratio", f"< {MIN_SLOWDOWN:g}", at),
        )
        parts.append(
            f"key {hot.key}{f' of {column}' if column else ''} has {hot.share:.0%} of the rows; "
            f"more tasks cannot make this stage more than {1 / hot.share:.2f}x faster"
        )
    if proven is not None:
        stage, lost = proven.stage, proven.cost * median(batch.duration for batch, _ in batch_time.pairs(view))
        evidence += (
            Evidence("largest_task_records", stage.records_max, "rows", "even", at),
            Evidence("largest_task_share", proven.share, "ratio", f"< {MIN_SLOWDOWN / proven.slots:.2f}", at),
            Evidence("stage_slower_than_even", proven.factor, "ratio", f"< {MIN_SLOWDOWN:g}", at),
            Evidence("lost_by_uneven_tasks_seconds", lost, "seconds", "0", at),
        )
        parts.append(f"one of {stage.tasks} tasks of stage {stage.stage_id} reads {proven.share:.0%} of the records")
    yield Finding(
        "; ".join(parts),
        _component(view, column, proven is not None),
        tuple(evidence),
        (
            Remedy(
                "salt the key and aggregate in two steps, or process the hot key separately",
                "only splitting the key spreads its rows over several tasks",
                safe=False,
            ),
            *_no_use(view),
        ),
        confidence=min(0.95, (0.6 if hot is None or proven is None else 0.8) + 0.15 * (hot.share if hot else 0.5)),
        began=_began(view, hot is not None),
        share=None if proven is None else min(1.0, proven.cost),
    )


def _proof(view: QueryView) -> tuple[task_skew.Uneven | None, HotKey | None]:
    """The stage whose tasks are too uneven for chance, and the hot key that loads one task."""
    uneven, share = task_skew.uneven_stage(view, shuffle=True), _hot_share(view)
    # the batches of a harmed query are all long and in a row, and one whose batches take minutes has no others
    needed = batch_time.needed(view)
    if harm.harm(view) is None and needed > 1:
        needed = MIN_BATCHES
    if uneven is not None and (uneven.factor < MIN_SLOWDOWN or uneven.batches < needed):
        uneven = uneven if uneven.factor < MAX_BALANCED_FACTOR else None
    enough = MIN_SLOWDOWN if share is not None or uneven is None else _beyond_chance(view, uneven.slots)
    proven = uneven if uneven is not None and uneven.factor >= enough else None
    if share is None or (proven is None and not _weighs(view, share, uneven)):
        return proven, None
    hot = (key for key in view.skew.hot_keys if key.rows >= MIN_HOT_ROWS and key.share >= MIN_HOT_SHARE)
    return proven, next(hot, None)


def _beyond_chance(view: QueryView, slots: int) -> float:
    """How much longer than an even split a stage must take, where no key is known to be hot: two tasks cannot reach 2,
    and the more tasks there are, the more uneven they are by chance."""
    if slots > 2 and not strain.strained(view) and overload.growth(view) is None:
        return MIN_HARMLESS_SLOWDOWN
    return min(MIN_FEW_KEYS_SLOWDOWN, MIN_SLOWDOWN + 0.25 * (slots - 2))


def _component(view: QueryView, column: str | None, by_tasks: bool) -> Component:
    """Stage ids and hot keys change from batch to batch, what is shuffled by does not."""
    if by_tasks:
        return Component(
            "stage", f"shuffle by {', '.join(view.plan.keys[:2])}" if view.plan.keys else "shuffle", column
        )
    return Component("key", column or "key")


def _no_use(view: QueryView) -> tuple[Remedy, ...]:
    if not view.run.stateful:
        return ()
    return (
        Remedy(
            "do not add cores or shuffle partitions to fix this",
            "a key stays in one task, and the checkpoint fixes the partitions of a stateful query",
        ),
    )


def _hot_share(view: QueryView) -> float | None:
    """Share of the hottest key in the newest batches, the key may change; None when it is not hot.

    The median of five batches; under strain each of the newest two proves it, as these are long and have many rows.
    """
    hot = [each for each in view.skew.hot_keys if each.rows >= MIN_HOT_ROWS]
    if (
        strain.strained(view)
        and len(hot) >= batch_time.MIN_PAIRS
        and min(each.share for each in hot[: batch_time.MIN_PAIRS]) >= MIN_HOT_SHARE
    ):
        return min(each.share for each in hot[: batch_time.MIN_PAIRS])
    share = median(each.share for each in hot) if len(hot) >= MIN_BATCHES else 0.0
    return share if share >= MIN_HOT_SHARE else None


def _width(view: QueryView, uneven: task_skew.Uneven | None) -> int:
    """Tasks that could share the work."""
    if uneven is not None:
        return uneven.slots
    operators = view.last.operators if view.last else ()
    of_state = next((each.shuffle_partitions for each in operators if each.shuffle_partitions), None)
    return batch_time.slots(view, view.plan.shuffle_partitions or of_state or 2)


def _factor(share: float, width: int) -> float:
    """A task with a key of that share and an even part of the rest, against an even split of all."""
    return width * (share + (1 - share) / width)


def _weighs(view: QueryView, share: float, uneven: task_skew.Uneven | None) -> bool:
    """Whether a hot key loads one task: rows are shuffled by it, not combined before, and the tasks do not deny it."""
    if uneven is not None and uneven.factor < MAX_BALANCED_FACTOR:
        return False
    if _factor(share, _width(view, None)) < MIN_SLOWDOWN:
        return False
    if not view.run.stateful and not view.plan.keys:
        return _in_one_partition(view, share)
    if view.skew.key_column is not None and view.plan.keys and view.skew.key_column not in view.plan.keys:
        return False
    return not _combined(view)


def _combined(view: QueryView) -> bool:
    shuffled = [
        sum(stage.records for stage in tasks.stages if stage.reads_shuffle) < MAX_COMBINED_SHARE * batch.rows
        for batch, tasks in batch_time.pairs(view)
        if batch.rows > 0
    ]
    return bool(shuffled) and sum(shuffled) > len(shuffled) / 2


def _in_one_partition(view: QueryView, share: float) -> bool:
    """Without a shuffle a key weighs only if the source keeps its rows in one of several partitions."""
    if view.last is None:
        return False
    read = read_by_partition(view.last)
    return len(read) > 1 and max(read.values()) >= share * sum(read.values())


def _began(view: QueryView, by_key: bool) -> float | None:
    if by_key and len(view.batches) >= MIN_BATCHES:
        return view.batches[-MIN_BATCHES].started
    newest = view.baseline.steady[-MIN_BATCHES:]
    return newest[0].started if newest else None


def acquit(view: QueryView) -> str | None:
    uneven = task_skew.uneven_stage(view, shuffle=True)
    if uneven is not None:
        return (
            f"the largest of {uneven.stage.tasks} tasks of stage {uneven.stage.stage_id} reads "
            f"{uneven.share:.0%} of the records"
        )
    if view.skew.hot_key is not None:
        return f"the hottest key has {view.skew.hot_key.share:.1%} of the rows"
    return None


RULE = Rule(
    "key-skew",
    "warning",
    check,
    __doc__,
    ("falling-behind", "trigger-overrun", "source-partition-skew"),
    acquit,
    needs_harm=True,
)
