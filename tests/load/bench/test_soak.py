import csv
import random
import time
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from pyspark.errors import StreamingQueryException

from load.bench.soak import judge, main, picture
from load.bench.soak_churn import SLOTS, Churn, choose
from load.bench.soak_samples import Sample, Scraper, read, size, write

SAMPLE = Sample(0.0, 150.0, 20, 40, 900, 1.0, 2, 0, 5.0, 5, 800.0, 120, 300)


def samples(minutes=6, **changes):
    """A sample every ten seconds; a change is a function of the sample's number."""
    return [
        replace(SAMPLE, at=10.0 * number, **{name: change(number) for name, change in changes.items()})
        for number in range(6 * minutes)
    ]


def growing(minutes=6, **changes):
    """The names of what is judged to grow."""
    return [each.name for each in judge(samples(minutes, **changes)) if each.flat is False]


def test_a_quiet_soak_is_flat_and_sparks_own_growth_is_told_and_not_judged():
    assert growing() == growing(jvm_memory=lambda n: 100.0 * n) == []


@pytest.mark.parametrize(
    ("field", "change", "name"),
    [
        ("threads", lambda n: 20 + n // 4, "threads of the driver"),
        ("handles", lambda n: 40 + n // 2, "file handles of the driver"),
        ("series", lambda n: 900 + 10 * n, "series on /metrics, queries alike"),
        ("recording", lambda n: 0.1 * n, "recording on disk"),
        ("queue", lambda n: 100 * n, "events in the worker's queue"),
        ("dropped", lambda n: n // 30, "events dropped"),
    ],
)
def test_what_piles_up_is_named(field, change, name):
    assert growing(**{field: change}) == [name]


def test_more_series_are_a_leak_only_where_no_more_queries_run():
    def running(n):
        return 3 + n % 4 + n // 100

    assert growing(60, queries=running, series=lambda n: 200 + 100 * running(n)) == []
    assert growing(60, queries=running, series=lambda n: 200 + 100 * running(n) + n) == [
        "series on /metrics, queries alike"
    ]


@pytest.mark.parametrize(("minutes", "judged"), [(20, False), (30, True), (60, True)])
def test_memory_is_judged_from_half_an_hour_on_because_its_histories_fill_before(minutes, judged):
    [memory, *_] = judge(samples(minutes, memory=lambda n: 150.0 + n))
    assert (memory.flat is False, bool(memory.allowed)) == (judged, judged)


def test_about_half_of_the_queries_run_and_every_act_is_possible():
    draw, running, acts, counts = random.Random(1), set(), set(), []
    for _ in range(2000):
        act, slot = choose(draw, sorted(running))
        assert (slot in running) == (act in ("stop", "restart"))
        if act == "stop":
            running.discard(slot)
        else:
            running.add(slot)
        acts.add(act)
        counts.append(len(running))
    assert acts == {"start", "stop", "fail", "restart"}
    assert max(counts) <= SLOTS


def test_a_scraped_page_gives_series_queue_and_losses():
    body = (
        b"# HELP ledgerops_listener_queue_size x\nledgerops_listener_queue_size 3.0\n"
        b'ledgerops_batches_total{query="a"} 7\nledgerops_listener_dropped_total 2.0\n'
    )

    assert read(body) == (3, 3, 2)
    assert read(b"") == (0, 0, 0)


def test_a_scrape_that_is_not_answered_is_counted():
    with Scraper("http://127.0.0.1:9/metrics") as scraper:
        while not scraper.failed:
            time.sleep(0.01)
    assert scraper.scrapes == 0


def test_samples_are_written_a_row_each(tmp_path):
    write([SAMPLE, SAMPLE], tmp_path / "out" / "samples.csv")
    rows = csv.DictReader((tmp_path / "out" / "samples.csv").read_text().splitlines())
    assert [row["memory"] for row in rows] == ["150.0", "150.0"]


def test_the_size_of_a_folder_that_is_not_there_is_none(tmp_path):
    (tmp_path / "recording-000001.jsonl").write_bytes(b"x" * 2**20)
    assert (size(tmp_path), size(tmp_path / "none")) == (1.0, 0.0)


def test_the_picture_is_xml_with_a_line_for_each_figure():
    root = ElementTree.fromstring(picture(samples()))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 7


def test_a_length_that_says_nothing_is_refused_in_one_line(capsys):
    assert main(["--duration", "1m"]) == 2
    assert capsys.readouterr().err == "error: a soak of 60 s is too short; give at least 2.4 minutes\n"


@pytest.mark.spark
def test_queries_start_fail_restart_and_stop(spark, tmp_path):
    churn = Churn(spark, tmp_path, Counter())
    try:
        churn.begin()
        failing = churn._start(SLOTS, failing=True, anew=True)  # no slot: no step touches it
        for _ in range(6):
            churn.step()
        with pytest.raises(StreamingQueryException, match="the soak lets it fail"):
            failing.awaitTermination(180)
        assert churn.steady
        assert churn.alive >= 1
        assert sum(churn.done.values()) == 6
    finally:
        churn.end()

    assert churn.alive == 0
