from collections import Counter
from itertools import pairwise

import pytest

from load.bench.lines import NO, UNKNOWN, YES, Line
from load.bench.overhead import compared
from load.bench.producer import send_process
from load.bench.runs import AGAIN, ATTACHED, BARE, Run, Runs, cpu_per_million, embedded, take_turns, turn
from load.bench.usage import Cpu, Meter, heap, resident, spark_jvm
from tests.tables import cases

ROWS = 15_000


@pytest.mark.spark
def test_runs_of_a_job_give_every_figure_of_its_comparison(spark, tmp_path):
    runs = Runs(spark, tmp_path, "large_credits", embedded(spark, ("transactions",)), batches=3)
    seen = runs.rounds((BARE, AGAIN, ATTACHED), ROWS, 1, lambda text: None)
    [bare], [attached] = seen[BARE], seen[ATTACHED]

    assert len(bare.batches) == 2  # the first pays for the start
    assert bare.cpu.jvm > 0
    assert bare.cpu.workers > 0
    assert bare.cpu.driver < bare.serving < bare.cpu.driver + bare.cpu.jvm
    assert len(runs.callbacks) >= 3
    assert sum(bare.phases.values()) >= bare.phases["addBatch"] > 0
    assert cpu_per_million([bare]).jvm == pytest.approx(bare.cpu.jvm * 1e6 / ROWS)
    assert list(tmp_path.iterdir()) == []
    lines = list(compared("large_credits", seen))
    assert [line.what.split(": ")[1] for line in lines] == [
        "throughput",
        f"p99 of {len(attached.batches)} batches",
        "CPU seconds per million rows, 1 rounds",
        "CPU seconds of the observer's threads (driver, listener bus, py4j, REST)",
        "live objects in the driver's JVM",
    ]
    assert all(line.noise for line in lines)


def runs_of(jvm: list[float], serving: float = 0.0) -> list[Run]:
    return [Run(100, 1.0, [1.0, 1.0], Cpu(0.0, seconds + serving, 0.0), 0.0, {}, serving) for seconds in jvm]


def lines_of(bare: list[Run], again: list[Run], attached: list[Run]) -> dict[str, Line]:
    seen = {BARE: bare, AGAIN: again, ATTACHED: attached}
    return {line.what.split(": ")[1].split(",")[0]: line for line in compared("large_credits", seen)}


@pytest.mark.parametrize(
    ("own", "holds"), [pytest.param(0.1, YES, id="one per cent"), pytest.param(0.3, NO, id="three per cent")]
)
def test_what_the_observers_threads_cost_is_seen_where_runs_differ_by_more(own, holds):
    lines = lines_of(runs_of([9, 10, 11]), runs_of([11, 10, 9]), runs_of([10, 11, 9], own))
    assert lines["CPU seconds per million rows"].holds == UNKNOWN
    line = lines["CPU seconds of the observer's threads (driver"]
    assert (line.figure, line.holds) == (f"{1 + own / 10:.4f} of a bare run's", holds)


@cases(
    "again, attached, holds",
    ("near the budget, and equal runs differ by three per cent", 10.3, 10.2, UNKNOWN),
    ("far above the budget", 10.3, 11.2, NO),
    ("far below the budget", 10.3, 9.5, YES),
    ("near the budget, and equal runs differ by less than one per cent", 10.02, 10.2, YES),
)
def test_noise_leaves_the_budget_of_cpu_seconds_open_only_near_it(again, attached, holds):
    lines = lines_of(*(runs_of([seconds] * 3) for seconds in (10.0, again, attached)))
    assert lines["CPU seconds per million rows"].holds == holds


@pytest.mark.spark
def test_the_jvm_is_sparks_and_its_use_is_told_apart(spark, kafka):
    meter = Meter()
    heap(spark)
    used = meter.used()

    assert "org.apache.spark" in " ".join(spark_jvm().cmdline())  # and not the broker's, a child as well
    assert resident(spark_jvm()) > resident() / 4
    assert used.jvm > 0
    assert used.total == pytest.approx(sum(used))


@cases(
    "enough_after, rounds",
    ("at least as many as were asked for", 1, 3),
    ("until it is enough", 5, 5),
    ("but no round begins when the time is over", 99, 7),
)
def test_rounds_go_on_until_it_is_enough(enough_after, rounds):
    ran = []

    seen = take_turns(
        lambda kind, number: ran.append(kind) or number, "ab", 3, lambda seen: len(seen["a"]) >= enough_after, 14,
        lambda: len(ran),
    )  # fmt: skip

    assert seen == {kind: [*range(rounds)] for kind in "ab"}


@pytest.mark.parametrize(("kinds", "rounds"), [("ab", 2), ("abc", 6), ("abcd", 4)])
def test_each_kind_has_each_place_and_follows_each_other_equally_often(kinds, rounds):
    orders = [turn(kinds, number) for number in range(rounds)]
    places = Counter((place, kind) for order in orders for place, kind in enumerate(order))
    follows = Counter(pair for order in orders for pair in pairwise(order))

    assert set(places.values()) == {rounds // len(kinds)}
    assert len(follows) == len(kinds) * (len(kinds) - 1)
    assert len(set(follows.values())) == 1


def test_the_generator_sends_in_a_process_of_its_own_and_says_how_fast(kafka, topic):
    from ledgerops.common.kafka_offsets import read_heads

    sent = send_process(kafka.servers, "transactions", topic, 2000)

    assert sum(read_heads(kafka.client, {topic: 5}).values()) == 2000
    assert sent.rate > 0
    assert sent.cpu > 0
