import hashlib
import json

from pyspark.sql.types import ArrayType, DecimalType, IntegerType, MapType, StringType, StructType

from ledgerops.checkpoint.columns import masked, names_in, shown_key, time_like


def a_type(name):
    """A Spark type without a Spark at work."""
    field = {"name": "c", "type": name, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]})["c"].dataType


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


WINDOW = StructType().add("start", "timestamp").add("end", "timestamp")


def test_instants_and_dates_are_times_and_what_could_name_somebody_is_not():
    kinds = ["timestamp", "date", "timestamp_ntz", "string", "long", "binary", "integer"]
    assert [kind for kind in kinds if time_like(a_type(kind))] == ["timestamp", "date", "timestamp_ntz"]


def test_a_window_is_a_time_and_a_window_with_a_name_is_not():
    assert time_like(WINDOW)
    assert not time_like(StructType().add("start", "timestamp").add("name", "string"))


def test_keys_are_hashed_as_the_diagnosis_hashes_them():
    assert shown_key("C1", a_type("string"), show=False) == digest("C1")
    assert shown_key("17", a_type("long"), show=False) == digest("17")
    assert shown_key("C1", a_type("string"), show=True) == "C1"
    assert shown_key(None, a_type("string"), show=False) is None


def test_times_are_shown_either_way():
    window = json.dumps({"c": {"start": "2024-03-01T00:00:00.000000Z", "end": "2024-03-01T00:00:00.500000Z"}})
    assert shown_key(window, WINDOW, show=False) == "2024-03-01T00:00:00Z to 2024-03-01T00:00:00.500000Z"


def test_a_masked_row_keeps_figures_and_times_and_hides_texts_and_what_is_named_like_the_key():
    # name of the column: its type, what is in it, what is shown
    columns = {
        "account": ("long", 17, digest("17")),
        "seen": ("timestamp", "2024-03-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        "total": (DecimalType(18, 2), 1.5, 1.5),
        "names": (ArrayType(StringType()), ["Ada"], [digest("Ada")]),
        "by_type": (MapType(StringType(), IntegerType()), {"Debit": 3}, {digest("Debit"): 3}),
        "inner": (
            StructType().add("email", "string").add("good", "boolean"),
            {"email": "a@example.com", "good": True},
            {"email": digest("a@example.com"), "good": True},
        ),
        "none": ("string", None, None),
    }
    of = StructType()
    for name, (kind, _, _) in columns.items():
        of.add(name, kind)

    shown = masked({name: value for name, (_, value, _) in columns.items()}, of, {"account"})

    assert shown == {name: expected for name, (_, _, expected) in columns.items()}


def test_of_a_key_nothing_but_times_is_shown_however_deep():
    key = StructType().add("id", StructType().add("account", "long").add("since", "date")).add("window", WINDOW)
    key = (
        key.add("numbers", ArrayType(IntegerType()))
        .add("flag", "boolean")
        .add("by", MapType(StringType(), IntegerType()))
    )
    window = {"start": "2024-03-01T00:00:00Z", "end": "2024-03-02T00:00:00Z"}
    row = {
        "id": {"account": 17, "since": "2024-03-01"},
        "window": window,
        "numbers": [4, None],
        "flag": True,
        "by": {"x": 1},
    }

    assert masked(row, key, None) == {
        "id": {"account": digest("17"), "since": "2024-03-01"},
        "window": window,
        "numbers": [digest("4"), None],
        "flag": digest("true"),
        "by": {digest("x"): digest("1")},
    }


def test_columns_are_named_like_a_key_by_each_part_of_it_that_is_no_time():
    pair = StructType().add("account", "long").add("since", "date")
    key = StructType().add("id", pair).add("window", WINDOW).add("old", ArrayType(StructType().add("number", "long")))
    assert set(names_in(key)) == {"id", "account", "old", "number"}
    assert masked(
        {"account": 17, "rows": 3}, StructType().add("account", "long").add("rows", "long"), {*names_in(key)}
    ) == {
        "account": digest("17"),
        "rows": 3,
    }
