import json

import pytest

from ledgerops.model.iceberg_snapshot import parse_snapshot

ADDED = {"added-data-files": "2", "added-records": "3", "added-files-size": "856", "total-data-files": "12"}
WRITTEN = {"spark.sql.streaming.epochId": "7", "spark.sql.streaming.queryId": "a53073c8"}


def parsed(summary, **more):
    return parse_snapshot(json.dumps({"snapshot-id": 5, "timestamp-ms": 1_795_481_230_136, "summary": summary} | more))


def test_a_snapshot_of_a_streaming_query_is_read_as_iceberg_writes_it():
    found = parsed({"operation": "append", **ADDED, **WRITTEN}, **{"parent-snapshot-id": 4})
    assert (found.version, found.parent, found.at, found.appends) == (5, 4, 1_795_481_230.136, True)
    assert (found.files, found.rows, found.bytes, found.all_files) == (2, 3, 856, 12)
    assert (found.query_id, found.batch_id) == ("a53073c8", 7)


def test_the_first_snapshot_has_no_parent_and_what_is_left_out_is_0():
    found = parsed({"operation": "delete", "total-data-files": "0"})
    assert (found.parent, found.appends, found.files, found.rows, found.bytes) == (None, False, 0, 0, 0)
    assert (found.query_id, found.batch_id) == (None, None)


@pytest.mark.parametrize("summary", [None, {"operation": "append", "added-data-files": "many"}])
def test_a_count_that_is_not_told_is_not_known(summary):
    assert parsed(summary).files is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '"x"', '{"snapshot-id": 1}', '{"snapshot-id": 1, "timestamp-ms": "x"}']
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):
        parse_snapshot(text)
