"""All rules in the order in which they are listed: symptoms and facts, each a module here, and the causes of time."""

from ledgerops.diagnosis.causes import CAUSES
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules import (
    catching_up,
    checkpoint_full,
    conflicting_duplicates,
    crash_loop,
    data_loss,
    eviction_storm,
    executor_lost,
    falling_behind,
    freshness_breach,
    input_overload,
    input_recomputed,
    input_stopped,
    intermittent_sink,
    late_data,
    ledger_imbalance,
    long_batches,
    many_small_files,
    memory_leak,
    no_checkpoint,
    observer_degraded,
    partition_time_spread,
    query_failed,
    query_stuck,
    rate_limited,
    retention_risk,
    rows_dropped,
    slow_creep,
    source_unreachable,
    state_growth,
    state_snapshot_lag,
    too_few_slots,
    trigger_overrun,
    unbounded_state,
    watermark_jump,
    watermark_stalled,
)

_FOUND: tuple[Rule, ...] = tuple(module.RULE for module in (
    falling_behind, trigger_overrun, long_batches, query_stuck, query_failed, checkpoint_full, crash_loop,
    freshness_breach, rows_dropped, retention_risk, data_loss, source_unreachable, input_overload, slow_creep,
    rate_limited, catching_up, input_stopped, input_recomputed, intermittent_sink, late_data, watermark_jump,
    watermark_stalled, partition_time_spread, unbounded_state, state_growth, eviction_storm, state_snapshot_lag,
    ledger_imbalance, conflicting_duplicates, memory_leak, executor_lost, too_few_slots, no_checkpoint,
    many_small_files, observer_degraded,
))  # fmt: skip
RULES = (*_FOUND, *(cause.rule() for cause in CAUSES))
BY_SLUG = {rule.slug: rule for rule in RULES}
