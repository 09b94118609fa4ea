"""The setting `mute`: which rules it names, and of which query."""

import pytest

from ledgerops.diagnosis.muting import is_muted, read_muted
from ledgerops.errors import UserError
from tests.tables import cases

RULES = ("slow-sink", "late-data")
MUTED = read_muted(["slow-sink:orders", "late-data", "slow-sink: shop:orders"], RULES)


@cases(
    "slug, query, muted",
    ("for one query", "slow-sink", "orders", True),
    ("for all", "late-data", "payments", True),
    ("the name of a query may have a colon", "slow-sink", "shop:orders", True),
    ("another query", "slow-sink", "payments", False),
    ("a longer name", "slow-sink", "orders_by_day", False),
    ("another rule", "key-skew", "orders", False),
)
def test_a_rule_is_muted_for_one_query_or_for_all(slug, query, muted):
    assert is_muted(MUTED, slug, query) is muted


@cases(
    "entry, said",
    ("a slip", "slow-snk:orders", "no rule 'slow-snk'; did you mean slow-sink?"),
    ("anything", "zzz", "no rule 'zzz'; `ledgerops rules` lists them"),
    ("nothing", "", "no rule ''; `ledgerops rules` lists them"),
    ("no query", "slow-sink:", "'slow-sink:' names no query; write slow-sink:QUERY, or slow-sink for every query"),
)
def test_what_is_no_rule_is_one_clear_error(entry, said):
    with pytest.raises(UserError) as error:
        read_muted(["late-data", entry], RULES)
    assert str(error.value) == f"mute: {said}"


def test_an_exporter_of_another_version_may_know_other_rules():
    assert read_muted(["of-tomorrow", "slow-sink:", "late-data"], RULES, strict=False) == {("late-data", None)}
