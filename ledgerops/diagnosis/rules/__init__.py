"""The rules, in the order in which they are listed."""

from ledgerops.diagnosis.rules import (
    falling_behind,
    input_overload,
)

RULES = (
    falling_behind.RULE,
    input_overload.RULE,
)
BY_SLUG = {rule.slug: rule for rule in RULES}
