"""The options that bound a batch: recognised in any spelling, with their value in the unit of the option."""

import pytest

from ledgerops.model.sources import caps, is_limit
from tests.tables import cases


@pytest.mark.parametrize(
    "option",
    [
        "maxOffsetsPerTrigger", "maxoffsetspertrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxFilesPerTrigger",
        "maxBytesPerTrigger", "cloudFiles.maxFilesPerTrigger", "streaming-max-files-per-micro-batch",
        "streaming-max-rows-per-micro-batch", "kinesis.maxFetchRecordsPerShard",
        "kinesis.executor.maxFetchRecordsPerShard", "maxEventsPerTrigger", "maxRecordsPerFetch", "maxRowsPerBatch",
    ],
)  # fmt: skip
def test_an_option_that_bounds_a_batch_is_a_limit(option):
    assert is_limit(option)


@pytest.mark.parametrize("option", ["path", "startingOffsets", "maxFileAge", "maxPartitionBytes", "kinesis.region"])
def test_other_options_are_no_limits(option):
    assert not is_limit(option)


@cases(
    "options, expected",
    ("rows", {"maxOffsetsPerTrigger": "1000"}, [("maxOffsetsPerTrigger", 1000, "rows")]),
    ("files", {"maxFilesPerTrigger": "7"}, [("maxFilesPerTrigger", 7, "files")]),
    ("gigabytes", {"maxBytesPerTrigger": "10g"}, [("maxBytesPerTrigger", 10 * 2**30, "bytes")]),
    ("megabytes", {"maxBytesPerTrigger": "512 MB"}, [("maxBytesPerTrigger", 2**29, "bytes")]),
    ("bytes", {"maxBytesPerTrigger": "4096"}, [("maxBytesPerTrigger", 4096, "bytes")]),
    ("as it was written", {"maxbytespertrigger": "1b"}, [("maxbytespertrigger", 1, "bytes")]),
    (
        "the smallest first",
        {"maxFilesPerTrigger": "9", "streaming-max-files-per-micro-batch": "4"},
        [("streaming-max-files-per-micro-batch", 4, "files"), ("maxFilesPerTrigger", 9, "files")],
    ),
    ("what waits for more is no cap", {"minOffsetsPerTrigger": "1000", "maxTriggerDelay": "5m"}, []),
    ("a size where rows are counted", {"maxOffsetsPerTrigger": "1k"}, []),
    ("zero", {"maxFilesPerTrigger": "0"}, []),
    ("no number", {"maxBytesPerTrigger": "much"}, []),
    ("an unknown option has no unit", {"maxFishPerTrigger": "5"}, []),
)
def test_a_cap_has_its_value_in_the_unit_of_the_option(options, expected):
    assert [(cap.option, cap.value, cap.limit.unit) for cap in caps(options)] == expected
