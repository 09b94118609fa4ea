"""The rules, in the order in which they are listed."""

from ledgerops.diagnosis.rules import (
    falling_behind,
    input_overload,
    key_skew,
    late_data,
    query_failed,
    query_stuck,
    slow_sink,
    source_partition_skew,
    trigger_overrun,
    unbounded_state,
)

RULES = (
    falling_behind.RULE,
    trigger_overrun.RULE,
    query_stuck.RULE,
    query_failed.RULE,
    input_overload.RULE,
    slow_sink.RULE,
    key_skew.RULE,
    source_partition_skew.RULE,
    late_data.RULE,
    unbounded_state.RULE,
)
BY_SLUG = {rule.slug: rule for rule in RULES}
