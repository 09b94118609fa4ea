"""Poison: where it stands, what it looks like, and that nothing else changes for it."""

import json

import numpy as np
import pytest

from ledgerops.ledger.plan.poison import KEYLESS, MAX_VALUE_BYTES, REASONS, kinds_after, spoil
from ledgerops.ledger.plan.sections import Poison

VALUE = b'{"transaction_id":"T0000000007","account_id":"A1","event_time":"2024-03-01T10:00:00.000001Z","amount":12.50}'
EVENT = b'{"user_id":"U1","page_id":"P1","ad_id":"D1","event_time":"2024-03-01T10:00:00.000001Z"}'
RECORDS = np.arange(60_000)


def spoiled(kind, table="transactions", value=VALUE):
    return spoil(kind, table, 7, b"C1", value)


def test_a_share_of_the_records_is_followed_by_poison_of_every_kind_alike():
    kinds = kinds_after(Poison(0.1), 3, RECORDS)
    counts = np.bincount(kinds[kinds >= 0], minlength=len(REASONS))
    assert 5_700 < counts.sum() < 6_300
    assert counts.min() > 0.9 * counts.mean()


def test_poison_depends_on_seed_and_record_alone_and_a_smaller_share_is_a_part_of_it():
    whole, few = (kinds_after(Poison(share), 3, RECORDS) for share in (0.1, 0.01))
    assert (kinds_after(Poison(0.1), 3, RECORDS[500:600]) == whole[500:600]).all()
    assert (kinds_after(Poison(0.1), 4, RECORDS) != whole).any()
    assert (whole[few >= 0] == few[few >= 0]).all()


def test_only_the_kinds_of_the_plan_that_a_target_can_hold_are_made():
    poison = Poison(0.1, ("tombstone", "oversized"))
    assert {REASONS[kind] for kind in kinds_after(poison, 3, RECORDS) if kind >= 0} == {"tombstone", "oversized"}
    assert {REASONS[kind] for kind in kinds_after(poison, 3, RECORDS, KEYLESS) if kind >= 0} == {"oversized"}
    for none in (Poison(), Poison(0.5, ("null_key",))):
        assert (kinds_after(none, 3, RECORDS, KEYLESS) == -1).all()


def test_invalid_json_is_cut_off_and_a_tombstone_is_a_key_alone():
    key, value = spoiled("invalid_json")
    assert key == b"C1"
    with pytest.raises(json.JSONDecodeError):
        json.loads(value)
    assert spoiled("tombstone") == (b"C1", None)


@pytest.mark.parametrize(
    ("table", "value", "missing", "wrong"),
    [
        ("transactions", VALUE, "transaction_id", "amount"),
        ("debits", VALUE, "transaction_id", "amount"),
        ("ad_events", EVENT, "ad_id", "event_time"),
    ],
)
def test_a_field_is_missing_or_its_type_is_wrong(table, value, missing, wrong):
    without, other = (json.loads(spoiled(kind, table, value)[1]) for kind in ("missing_field", "wrong_type"))
    assert set(json.loads(value)) - set(without) == {missing}
    assert other[wrong] == "much"


def test_an_oversized_value_is_valid_but_for_its_size():
    _, value = spoiled("oversized")
    assert MAX_VALUE_BYTES < len(value) < 2 * MAX_VALUE_BYTES
    assert json.loads(value)["amount"] == 12.5


def test_a_null_key_comes_with_a_valid_value_of_an_id_that_no_transaction_has():
    key, value = spoiled("null_key")
    assert key is None
    assert json.loads(value) == {**json.loads(VALUE), "transaction_id": "X0000000007"}
