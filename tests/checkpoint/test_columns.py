import hashlib
import json

import pytest
from pyspark.sql.types import ArrayType, DecimalType, IntegerType, MapType, StringType, StructType

from ledgerops.checkpoint.columns import masked, shown_key, time_like


def a_type(name):
    """A Spark type without a Spark at work."""
    field = {"name": "c", "type": name, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]})["c"].dataType


WINDOW = StructType().add("start", "timestamp").add("end", "timestamp")


@pytest.mark.parametrize("of", ["timestamp", "date", "timestamp_ntz"])
def test_instants_and_dates_are_times(of):
    assert time_like(a_type(of))


@pytest.mark.parametrize("of", ["string", "long", "binary", "integer"])
def test_what_could_name_somebody_is_no_time(of):
    assert not time_like(a_type(of))


def test_a_window_is_a_time_and_a_window_with_a_name_is_not():
    assert time_like(WINDOW)
    assert not time_like(StructType().add("start", "timestamp").add("name", "string"))


def test_keys_are_hashed_as_the_diagnosis_hashes_them():
    assert shown_key("C1", a_type("string"), show=False) == hashlib.sha256(b"C1").hexdigest()[:12]
    assert shown_key("17", a_type("long"), show=False) == hashlib.sha256(b"17").hexdigest()[:12]
    assert shown_key("C1", a_type("string"), show=True) == "C1"
    assert shown_key(None, a_type("string"), show=False) is None


def test_times_are_shown_either_way():
    window = json.dumps({"c": {"start": "2024-03-01T00:00:00.000000Z", "end": "2024-03-01T00:00:00.500000Z"}})
    assert shown_key(window, WINDOW, show=False) == "2024-03-01T00:00:00Z to 2024-03-01T00:00:00.500000Z"


def test_a_masked_row_keeps_figures_and_times_and_hides_texts_and_what_is_named_like_the_key():
    of = (
        StructType()
        .add("account", "long")
        .add("seen", "timestamp")
        .add("total", DecimalType(18, 2))
        .add("names", ArrayType(StringType()))
        .add("by_type", MapType(StringType(), IntegerType()))
        .add("inner", StructType().add("email", "string").add("good", "boolean"))
        .add("none", "string")
    )
    row = {
        "account": 17,
        "seen": "2024-03-01T00:00:00Z",
        "total": 1.5,
        "names": ["Ada"],
        "by_type": {"Debit": 3},
        "inner": {"email": "a@example.com", "good": True},
        "none": None,
    }

    shown = masked(row, of, {"account"})

    assert shown == {
        "account": hashlib.sha256(b"17").hexdigest()[:12],
        "seen": "2024-03-01T00:00:00Z",
        "total": 1.5,
        "names": [hashlib.sha256(b"Ada").hexdigest()[:12]],
        "by_type": {hashlib.sha256(b"Debit").hexdigest()[:12]: 3},
        "inner": {"email": hashlib.sha256(b"a@example.com").hexdigest()[:12], "good": True},
        "none": None,
    }
