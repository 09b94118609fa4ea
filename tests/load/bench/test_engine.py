"""The engine bench compares like with like, and says what it found."""

from types import SimpleNamespace

import pytest

from load.bench.engine import (
    AGAIN,
    FLINK,
    JOBS,
    KAFKA,
    OURS,
    PLAIN,
    TOPICS,
    _against_flink,
    _ahead,
    _is_decided,
    _line,
    _measured,
)
from tests.tables import cases

SEEN = {OURS: [10.0, 12.0], PLAIN: [10.0, 10.0], AGAIN: [10.0, 12.0], FLINK: [20.0, 22.0]}


@cases(
    "ours, again, holds",
    ("as cheap", [10.0, 10.2], [10.0, 10.2], "yes"),
    ("dearer", [11.0, 11.0], [11.0, 11.0], "**no**"),
    ("dearer by less than the noise", [11.0, 11.0], [11.0, 15.0], "within noise"),
)
def test_a_job_may_cost_two_percent_more_than_pyspark(ours, again, holds):
    line = _line("daily_counts", "Kafka", {**SEEN, OURS: ours, AGAIN: again})
    assert (line.what, line.budget, line.holds) == ("`daily_counts`, from Kafka", "<= 1.02", holds)


def test_a_line_has_the_cpu_seconds_of_every_way():
    figure = _line("daily_counts", "Kafka", SEEN).figure
    assert figure == "1.100 of PySpark's CPU: 11.00 our job, 10.00 PySpark, 21.00 Flink SQL"


@cases(
    "flink, ahead",
    ("twice as dear", [20.0, 20.0], "yes"),
    ("dearer by less than equal runs differ", [10.3, 10.3], "within noise"),
    ("cheaper by less than equal runs differ", [9.9, 9.9], "within noise"),
    ("cheaper", [8.0, 8.0], "**no**"),
)
def test_a_job_is_ahead_of_flink_only_beyond_the_noise(flink, ahead):
    assert _against_flink({OURS: [10.0, 10.0], AGAIN: [10.5, 10.5], FLINK: flink}) == ahead


@cases(
    "against, figure, holds",
    ("four", ["yes", "yes", "yes", "yes", "**no**"], "4 of 5", "yes"),
    ("a tie decides", ["yes", "yes", "yes", "within noise"], "3 of 4, 1 within noise", "within noise"),
    ("too few even with the tie", ["yes", "within noise"], "1 of 2, 1 within noise", "**no**"),
)
def test_ties_with_flink_are_not_counted_as_ahead(against, figure, holds):
    line = _ahead(against)
    assert (line.figure, line.holds) == (figure, holds)


def test_kinds_take_turns_and_the_first_run_of_each_is_not_counted():
    order: list[str] = []
    kinds = {
        name: lambda name=name: order.append(name) or (9.0 if len(order) > 3 else 99.0) for name in (OURS, PLAIN, AGAIN)
    }
    ways = SimpleNamespace(of=lambda job, source: kinds, rows=1_000_000)

    seen = _measured(ways, "daily_counts", KAFKA, 2, lambda text: None)

    assert order == [OURS, PLAIN, AGAIN, PLAIN, AGAIN, OURS, AGAIN, OURS, PLAIN]
    assert seen == {kind: [9.0, 9.0] for kind in kinds}


@cases(
    "ours, again, decided",
    ("equal runs differ by half a per cent", [10.2, 10.2], [10.25, 10.25], True),
    ("at the budget, and equal runs differ by three per cent", [10.0, 10.0], [10.3, 10.3], False),
    ("far above it, and equal runs differ by three per cent", [12.0, 12.0], [12.36, 12.36], True),
    ("far below it, and equal runs differ by three per cent", [8.0, 8.0], [8.24, 8.24], True),
)
def test_rounds_go_on_until_the_noise_cannot_change_the_verdict(ours, again, decided):
    assert _is_decided({PLAIN: [10.0, 10.0], OURS: ours, AGAIN: again}) is decided


@pytest.mark.spark
@pytest.mark.parametrize("job", sorted(JOBS.keys() - {"dedup_transactions"}))  # which is of streams only
def test_the_job_in_plain_pyspark_gives_as_many_rows_as_ours(spark, job):
    from pyspark.sql import functions as F

    from ledgerops.ledger.jobs import find_job
    from ledgerops.ledger.plan.plan import load_plan
    from ledgerops.ledger.sources.spark_source import register

    register(spark)
    read = spark.read.format("ledger").option("plan", load_plan("default").text).option("limit", 3000)
    rows = read.option("table", TOPICS.get(job, "transactions")).load()

    expected = find_job(job).transform(rows).count()

    assert expected > 0
    assert JOBS[job][0](rows, F).count() == expected
