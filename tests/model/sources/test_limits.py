"""The options that bound a batch: recognised in any spelling, with their value in the unit of the option."""

import pytest

from ledgerops.model.sources import caps, is_limit


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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"maxOffsetsPerTrigger": "1000"}, [("maxOffsetsPerTrigger", 1000, "rows")], id="rows"),
        pytest.param({"maxFilesPerTrigger": "7"}, [("maxFilesPerTrigger", 7, "files")], id="files"),
        pytest.param({"maxBytesPerTrigger": "10g"}, [("maxBytesPerTrigger", 10 * 2**30, "bytes")], id="gigabytes"),
        pytest.param({"maxBytesPerTrigger": "512 MB"}, [("maxBytesPerTrigger", 2**29, "bytes")], id="megabytes"),
        pytest.param({"maxBytesPerTrigger": "4096"}, [("maxBytesPerTrigger", 4096, "bytes")], id="bytes"),
        pytest.param({"maxbytespertrigger": "1b"}, [("maxbytespertrigger", 1, "bytes")], id="as it was written"),
        pytest.param(
            {"maxFilesPerTrigger": "9", "streaming-max-files-per-micro-batch": "4"},
            [("streaming-max-files-per-micro-batch", 4, "files"), ("maxFilesPerTrigger", 9, "files")],
            id="the smallest first",
        ),
        pytest.param({"minOffsetsPerTrigger": "1000", "maxTriggerDelay": "5m"}, [], id="what waits for more is no cap"),
        pytest.param({"maxOffsetsPerTrigger": "1k"}, [], id="a size where rows are counted"),
        pytest.param({"maxFilesPerTrigger": "0"}, [], id="zero"),
        pytest.param({"maxBytesPerTrigger": "much"}, [], id="no number"),
        pytest.param({"maxFishPerTrigger": "5"}, [], id="an unknown option has no unit"),
    ],
)
def test_a_cap_has_its_value_in_the_unit_of_the_option(options, expected):
    assert [(cap.option, cap.value, cap.limit.unit) for cap in caps(options)] == expected
