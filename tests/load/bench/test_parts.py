import pytest

from load.bench.overhead import MAX_ROWS, MIN_ROWS, rows_for
from load.bench.producer import parse
from load.bench.profile import ROOT, by_function, by_module, shares

TOOL = """49999 records sent, 9999.8 records/sec (2.10 MB/sec), 3.1 ms avg latency, 250.0 ms max latency.
100000 records sent, 98231.827112 records/sec (20.65 MB/sec), 5.05 ms avg latency, 256.00 ms max latency, 4 ms 50th, \
11 ms 95th, 38 ms 99th, 51 ms 99.9th.
"""


def test_the_rate_of_kafkas_tool_is_that_of_its_summary_and_a_tool_without_one_is_quoted():
    assert parse(TOOL) == 98231.827112
    with pytest.raises(ValueError, match="no summary in"):
        parse("org.apache.kafka.common.KafkaException: no topic\n")


@pytest.mark.parametrize(
    ("rate", "rows"), [(100_004.0, 500_000), (1.0, MIN_ROWS), (1e9, MAX_ROWS)], ids=["fitting", "slow", "fast"]
)
def test_a_run_takes_rows_for_its_seconds_within_bounds(rate, rows):
    assert rows_for(rate, 5.0) == rows


def test_a_profile_is_summed_up_by_our_modules_and_functions():
    view = str(ROOT / "ledgerops" / "view.py")
    stats = {
        (view, 10, "backlog"): (1, 1, 3.0, 9.0, {}),
        (view, 20, "lag"): (1, 1, 3.0, 9.0, {}),
        (str(ROOT / "ledgerops" / "metrics" / "state.py"), 1, "read"): (1, 1, 2.0, 2.0, {}),
        ("~", 0, "<built-in method builtins.sum>"): (5, 5, 2.0, 2.0, {}),
    }

    assert shares(by_module(stats)) == "view 60%, metrics.state 20%, built-in 20%"
    assert shares(by_function(stats), top=3) == "view.backlog 30%, view.lag 30%, metrics.state.read 20%"
    assert shares({}) == ""
