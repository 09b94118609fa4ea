"""The rules, in the order in which they are listed."""

from ledgerops.diagnosis.rules import (
    catching_up,
    data_loss,
    falling_behind,
    input_overload,
    input_stopped,
    key_skew,
    late_data,
    partition_time_spread,
    query_failed,
    query_stuck,
    rate_limited,
    retention_risk,
    slow_sink,
    slow_source,
    source_partition_skew,
    source_unreachable,
    trigger_overrun,
    unbounded_state,
)

RULES = (
    falling_behind.RULE,
    trigger_overrun.RULE,
    query_stuck.RULE,
    query_failed.RULE,
    retention_risk.RULE,
    data_loss.RULE,
    source_unreachable.RULE,
    input_overload.RULE,
    rate_limited.RULE,
    catching_up.RULE,
    slow_source.RULE,
    input_stopped.RULE,
    slow_sink.RULE,
    key_skew.RULE,
    source_partition_skew.RULE,
    late_data.RULE,
    partition_time_spread.RULE,
    unbounded_state.RULE,
)
BY_SLUG = {rule.slug: rule for rule in RULES}
