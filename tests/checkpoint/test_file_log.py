"""The log of a file source, as Spark 4.2 writes it."""

import json

from ledgerops.checkpoint.file_log import MAX_ENTRY_BYTES, TakenFiles, read_entry, read_named_entry
from tests.checkpoint.fake import put
from tests.tables import cases


def line(entry, number, at=1_795_357_379_598):
    path = f"file:///landing/part-{number:06d}.json"
    return json.dumps({"path": path, "timestamp": at + 1000 * number, "batchId": entry}, separators=(",", ":"))


def write(checkpoint, name, *lines):
    put(checkpoint / "sources" / "0" / name, "\n".join(("v1", *lines)))


def test_an_entry_has_its_files_with_their_times_and_a_compacted_one_its_own_files_alone(tmp_path):
    write(tmp_path, "8", line(8, 3), line(8, 1), line(8, 2))
    write(tmp_path, "9.compact", *(line(number, number) for number in range(10)), line(9, 10))
    taken = [read_entry(tmp_path, 0, number) for number in (8, 9)]
    assert taken == [
        TakenFiles(3, 1795357380.598, 1795357382.598, "file:///landing/part-000003.json"),
        TakenFiles(2, 1795357388.598, 1795357389.598, "file:///landing/part-000010.json"),
    ]


def test_of_a_large_compacted_entry_the_end_is_read(tmp_path):
    many = 2 * MAX_ENTRY_BYTES // len(line(0, 0))
    write(tmp_path, "19.compact", *(line(number % 19, number) for number in range(many)), line(19, many))
    assert read_entry(tmp_path, 0, 19).files == 1


@cases(
    "lines",
    ("empty", ()),
    ("cut off", ("{",)),
    ("nested", ("[" * 5000,)),
    ("no object", ("7",)),
    ("without a time", ('{"path":"file:///a","batchId":3}',)),
    ("without a path", ('{"path":null,"timestamp":1,"batchId":3}',)),
    ("of another entry", (line(2, 1),)),
    ("longer than what is read", [line(3, number) for number in range(MAX_ENTRY_BYTES // 60)]),
)
def test_what_does_not_say_how_many_files_it_has_says_nothing(tmp_path, lines):
    write(tmp_path, "3", *lines)
    assert read_entry(tmp_path, 0, 3) is None


@cases(
    "folder, files",
    ("a folder", "file:/data/orders", 1),
    ("one whose name begins alike", "file:/data/orders_eu", 2),
    ("with alternatives", "file:/data/orders_{eu,us}", 2),
    ("two that it may be", "file:/data/orders*", None),
    ("none of them", "file:/elsewhere", None),
)
def test_the_log_of_a_named_source_is_known_by_the_folder_that_it_reads(tmp_path, folder, files):
    for name, count in (("a", 2), ("b", 1)):
        read = "orders_eu" if name == "a" else "orders"
        entry = [
            {"path": f"file:///data/{read}/{n}", "timestamp": 1_795_357_379_598, "batchId": 3} for n in range(count)
        ]
        put(tmp_path / "sources" / name / "3", "\n".join(("v1", *map(json.dumps, entry))))
    taken = read_named_entry(tmp_path, folder, 3)
    assert (taken and taken.files) == files


def test_an_entry_that_is_not_there_is_none(tmp_path):
    assert read_entry(tmp_path, 0, 3) is None
    assert read_entry(tmp_path / "absent", 0, 3) is None
