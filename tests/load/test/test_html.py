"""The reports: what they say, that nothing hostile gets through, that they need nothing but themselves."""

import json
import re
from dataclasses import replace

import pytest

from ledgerops.load.test import plans, search_report
from ledgerops.load.test.driver import TrialRequest
from ledgerops.load.test.html import page, search_page
from ledgerops.load.test.plots import job_plot
from ledgerops.load.test.result import COLUMNS, document, examine_trial, rows, text
from ledgerops.load.test.search import SearchSettings, search
from ledgerops.load.test.search_run import TrialOptions
from ledgerops.load.test.slo import default_slos, parse
from tests.analysis.html.test_page import read
from tests.load.test.simulated import System

SLOS = [parse(each) for each in ("p99 latency < 5s", "batch < trigger", "lag slope <= 1%")]
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def result(tmp_path):
    def make(rate, system=None, seconds=60.0):
        system = system or System(noise=0.03)
        wanted = TrialRequest(("daily_counts",), plans.at_rate(rate, 2.0), 20.0, seconds, 2.0)
        trial = system.perform(wanted, tmp_path / f"{rate:g}", lambda what, share: None)
        return examine_trial(trial, f"{rate:,.0f} rows/s", SLOS)

    return make


@pytest.fixture(scope="module")
def answer():
    system = System(noise=0.03)
    settings = SearchSettings(default_slos(60.0))
    found = search(lambda rate, why: system.measured(plans.at_rate(rate, 2.0)), settings, 26_000.0)
    options = TrialOptions("daily_counts", 2.0, 30.0, 2)
    return search_report.SearchSummary(options, settings, found, 1_800_000_000.0, 601.0)


def test_a_run_that_fails_says_what_and_why_first(result):
    told = result(28_800)
    assert not told.passed
    html = page(told)
    _, words = read(html)
    assert "daily_counts failed at 28,800 rows/s" in html
    assert re.search(r"cause: input-overload \(offered 28,\d+ rows/s, \d+% above the sustainable rate", words)
    legs = ("waiting: the part of it before its batch began", "seconds since the plan began")
    assert [word for word in ("p99 latency", "failed", "sustainable", *legs) if word not in words] == []


def test_a_run_that_passes_names_no_cause(result):
    told = result(12_000)
    assert told.passed
    _, words = read(page(told))
    assert "daily_counts passed at 12,000 rows/s" in words
    assert " on 2 of " in words
    assert "cause" not in words.lower()
    assert told.jobs[0].summary.startswith("PASSED: p99 latency 3.19 s, batch 1.2")


def test_all_plots_are_there_with_axes_and_units(result):
    html = page(result(30_000))
    titles = ("rows per second", "age of results", "latency since the due time", "batch duration by phase")
    assert set(re.findall(r'class="title">([^<]*)<', html)) >= set(titles)
    assert "trigger interval 2.0 s" in html
    assert ">warm-up<" in html


def test_the_lag_goes_on_growing_when_no_batch_ends_any_more(result):
    """The query hangs: the line of the lag does not stop at its last batch."""
    told = result(12_000)
    [job] = told.jobs
    hung = replace(job, measured=replace(job.measured, done=job.measured.done[:-12]))
    age_of_results = r'class="title">age of results.*?<polyline points="([^"]*)"'
    [line] = re.findall(age_of_results, job_plot(hung, told.trial.origin), re.S)
    *_, before, last = (tuple(map(float, point.split(","))) for point in line.split())
    assert last[0] > before[0] + 100
    assert last[1] < before[1] - 30  # upwards


def test_findings_are_spans_on_the_time_axis(result):
    told = result(45_000, seconds=90.0)
    periods = told.jobs[0].findings.periods
    assert {"falling-behind", "input-overload"} & {each.finding.rule for each in periods}
    html = page(told)
    assert 'class="title">findings<' in html
    assert len(re.findall(r'<rect [^>]*class="span (?:critical|warning)"', html)) == len(periods)


def test_pages_need_no_network_and_run_nothing(result, answer):
    for html in (page(result(30_000)), search_page(answer)):
        assert "script" not in re.sub(r"no script", "", html)
        assert not re.search(r'(?:src|href)="|url\(|@import|https?://', html)


def test_what_others_wrote_is_escaped(result):
    system = System(fails=f"failed: {HOSTILE}")
    html = page(result(12_000, system))
    assert HOSTILE not in html
    assert "&lt;script&gt;" in html


def test_a_run_without_any_batch_has_a_report(result):
    told = result(12_000, System(overhead=500.0))
    assert not told.passed
    words = read(page(told))[1]
    assert "0 batches ended in 60 s, 5 are needed" in words
    assert "unknown: counts as not met" in words


def test_the_document_is_plain_json_with_null_for_unknown(result):
    told = json.loads(json.dumps(document(result(12_000, System(overhead=500.0))), allow_nan=False))
    [job] = told["jobs"]
    assert (told["passed"], job["lag_seconds"], job["latency_seconds"]["p99"]) == (False, None, None)
    assert {each["status"] for each in job["slos"]} == {"unknown"}


def test_document_and_text_have_the_figures_of_the_summary(result):
    told = result(30_000)
    [job] = json.loads(json.dumps(document(told), allow_nan=False))["jobs"]
    assert job["offered_rows_per_second"] == pytest.approx(30_000, rel=1e-3)
    assert job["causes"][0]["rule"] == "input-overload"
    assert job["summary"] == told.jobs[0].summary

    lines = text(told)
    assert lines.startswith("daily_counts  FAILED: p99 latency ")
    legs = ("offered 30k rows/s, sustainable 2", "  latency  p50 ", "  waiting  p50 ", "  working  p50 ")
    assert [part for part in legs if part not in lines] == []


def test_a_line_of_the_table_is_a_batch(result):
    told = result(12_000)
    lines = list(rows(told))
    assert {len(line) for line in lines} == {len(COLUMNS)}
    assert len(lines) == len(told.jobs[0].measured.done)
    row = dict(zip(COLUMNS, lines[-1], strict=True))
    assert row["offered_rows_per_second"] == pytest.approx(12_000, rel=0.1)
    assert row["waiting_p99_seconds"] <= row["latency_p99_seconds"] <= row["lag_seconds"] + 0.05


def test_a_search_is_told_in_a_table_and_a_sentence(answer):
    lines = search_report.text(answer).splitlines()
    assert lines[0].split("  ")[-1] == "verdict"
    assert len(lines) == 3 + len(answer.found.rates)
    assert lines[-1] == answer.headline
    assert re.fullmatch(r"daily_counts sustains 2\d,\d00 rows/s but not 2\d,\d00", answer.headline)


def test_the_page_of_a_search_has_a_mark_for_each_trial(answer):
    html = search_page(answer)
    read(html)
    trials = sum(len(each.trials) for each in answer.found.rates)
    marks = len(re.findall(r'class="point (?:held|failed|unknown)"', html))
    assert marks == 3 * trials
    assert "offered rows per second (log scale)" in html
    assert "objective: batch &lt; trigger" in html


def test_a_search_without_an_answer_has_a_page(answer):
    lost = replace(answer, found=replace(answer.found, low=None, high=None, rates=(), reason="nothing ended"))
    words = read(search_page(lost))[1]
    assert "found no rate that it sustains" in words
    assert "Nothing ended" in words


def test_the_document_of_a_search_gives_both_ends(answer):
    told = json.loads(json.dumps(search_report.document(answer), allow_nan=False))
    assert told["sustainable_rows_per_second"] == answer.found.low.rate
    assert told["failed_rows_per_second"] == answer.found.high.rate
    assert [each["rows_per_second"] for each in told["rates"]] == sorted(each.rate for each in answer.found.rates)
