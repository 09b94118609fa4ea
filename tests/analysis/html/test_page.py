"""The HTML report: what it says, that nothing hostile gets through, and that it needs nothing but itself."""

import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from ledgerops.analysis.html.headline import headline
from ledgerops.analysis.html.page import page, slices
from ledgerops.analysis.html.query_plot import query_plot
from ledgerops.analysis.session import Investigation
from ledgerops.cli import main
from ledgerops.config import Config
from ledgerops.diagnosis.runbook import PAGES
from ledgerops.model.records import Plan
from ledgerops.model.spark_progress import parse_instant
from tests.paths import RECORDED

CRASH, OUTAGE, SKEW = (RECORDED / f"{name}.jsonl" for name in ("spark-4.2.0", "source-unreachable", "key-skew"))
VOID = {"meta", "line", "rect", "circle", "polyline", "path"}


class Reader(HTMLParser):
    """Collects elements, and fails on those that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.words = [], [], []

    def handle_starttag(self, name, attributes):
        self.seen.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.seen.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader, " ".join(" ".join(reader.words).split())


def made(place, **options):
    investigation = Investigation(str(place), with_timeline=True, plots=True, **options)
    return investigation.page(investigation.diagnose())


@pytest.fixture(scope="module")
def outage():
    return made(OUTAGE)


def test_what_is_over_is_told_at_its_worst(outage):
    reader, words = read(outage)

    assert "outage was stuck: source-unreachable (ended)" in words
    assert "Do first: bring back the broker, or the network to it" in words
    assert re.search(r"\b1 12:35:51 \+0:00 critical source-unreachable began", words)
    assert "seconds_without_answer" in words and "ledgerops rules source-unreachable" in words
    assert [attributes["class"] for name, attributes in reader.seen if name == "h1"] == ["critical"]


def test_the_day_is_said_where_it_is_not_that_of_the_row_before():
    investigation = Investigation(str(OUTAGE), with_timeline=True, plots=True)
    found = investigation.diagnose()
    *_, before, last = found["timeline"]["events"]
    before["at"], last["at"] = "2099-01-01T00:00:00.000Z", "2099-01-01T00:01:00.000Z"
    _, text = read(investigation.page(found))
    assert "2099-01-01 00:00:00" in text and "2099-01-01 00:01:00" not in text and " 00:01:00 " in text


def test_what_was_ruled_out_is_named_and_its_reasons_are_folded():
    html = made(RECORDED / "drills" / "slow-broker" / "recording", at=parse_instant("2026-11-21T18:59:07Z"))
    folded = re.search(r"<details><summary>Ruled out: (.*?)</summary>(.*?)</details>", html, re.DOTALL)

    assert folded is not None
    assert folded[1].split(", ") == re.findall(r"<b>([\w-]+)</b>", folded[2])
    assert len(folded[1].split(", ")) > 3


def test_what_is_muted_is_listed_and_no_incident():
    _, words = read(made(OUTAGE, config=Config(mute=("source-unreachable:outage",))))
    assert "No problem found in 1 query" in words
    assert re.search(r"Muted .* critical outage source-unreachable the broker ", words)


def test_nothing_is_said_of_muting_where_nothing_is_muted(outage):
    assert "Muted" not in read(outage)[1]


def test_the_plots_mark_the_incident_and_what_began(outage):
    reader, _ = read(outage)
    [svg] = [attributes for name, attributes in reader.seen if attributes.get("role") == "img" and name == "svg"][:1]

    assert svg["aria-label"].startswith("plots over time: age of results")
    classes = [attributes.get("class", "") for _, attributes in reader.seen]
    assert classes.count("incident") == 1 and classes.count("number critical") == 1
    assert {"p-add_batch", "p-query_planning", "p-wal_commit", "p-commit_offsets"} <= set(classes)


def test_every_place_in_a_plot_lies_within_it(outage):
    svg = outage[outage.index("<svg") : outage.index("</svg>")]
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    across = [float(each) for each in re.findall(r' (?:x|x1|x2|cx)="([^"]+)"', svg)]
    down = [float(each) for each in re.findall(r' (?:y|y1|y2|cy)="([^"]+)"', svg)]

    assert min(across) >= 0 and max(across) <= width
    assert min(down) >= 0 and max(down) <= height


@pytest.mark.parametrize("place", [CRASH, OUTAGE, SKEW], ids=["crash", "outage", "skew"])
def test_the_page_is_one_file_that_loads_nothing_and_runs_nothing(place):
    html = made(place)
    reader, _ = read(html)

    assert not {"script", "link", "img", "iframe", "object", "base", "form"} & {name for name, _ in reader.seen}
    assert not [key for _, attributes in reader.seen for key in attributes if key.startswith("on") or key == "src"]
    assert "url(" not in html and "@import" not in html
    runbooks = [attributes["href"] for _, attributes in reader.seen if "href" in attributes]
    assert [url for url in runbooks if not re.fullmatch(rf"{PAGES}/[a-z-]+\.md", url)] == []
    assert len(re.findall(r"https?://", html)) == len(runbooks)
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in html


HOSTILE = '<script>alert("1")</script>\u202e\x1b[31m&\'"'


def poisoned(value):
    """Every text of a document made hostile, but for those that are words of ours."""
    ours = ("status", "severity", "what", "at", "since", "began", "ended", "unit", "incident", "until")
    if isinstance(value, dict):
        return {key: each if key in ours else poisoned(each) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each) for each in value]
    return HOSTILE if isinstance(value, str) else value


def test_names_and_messages_are_only_ever_text():
    investigation = Investigation(str(CRASH), with_timeline=True, plots=True)
    document = poisoned(investigation.diagnose())
    view = SimpleNamespace(
        plan=Plan("run", app_name=HOSTILE, sink=HOSTILE), last=SimpleNamespace(sources=[SimpleNamespace(name=HOSTILE)])
    )
    tracks = {HOSTILE: next(iter(investigation.tracks.values()))}
    html = page(document, {HOSTILE: document["queries"][0]}, tracks, views={HOSTILE: view})
    reader, words = read(html)

    assert "script" not in {name for name, _ in reader.seen}
    assert "<script" not in html and "\u202e" not in html and "\x1b" not in html
    told = '<script>alert("1")</script>??[31m&\'"'
    assert f"Application {told}." in words and f"reads {told}, writes to {told}" in words


def ill(query, status, health, *causes):
    """A query of the document with these root causes, of severity and rule."""
    roots = [{"severity": severity, "rule": rule, "summary": "x", "remedies": []} for severity, rule in causes]
    return {"query": query, "status": status, "health": health, "root_causes": roots}


STUCK, FAILED = ill("a", "stuck", 20, ("critical", "query-stuck")), ill("a", "failed", 0, ("critical", "query-failed"))
LATE, TWO = (ill("b", "pressured", 75, ("warning", "late-data"), *more) for more in ((), (("info", "y"),)))


@pytest.mark.parametrize(
    ("queries", "worst", "said"),
    [
        pytest.param(
            [LATE, STUCK | {"root_causes": []}], {"a": STUCK}, "b is under pressure: late-data",
            id="what is wrong now comes before what is over",
        ),
        pytest.param([LATE, FAILED], {}, "a has failed: query-failed; 1 more query affected", id="the sickest leads"),
        pytest.param([TWO], {}, "b is under pressure: late-data and 1 more cause", id="further causes are counted"),
        *(
            ([ill("a", status, 70, ("warning", "x"))], {}, f"a {said}: x")
            for status, said in (
                ("healthy", "has a finding"), ("stopped", "stopped with an open finding"), ("stuck", "is stuck"),
                ("brand_new", "has a problem"),
            )
        ),
    ],
)  # fmt: skip
def test_the_headline_tells_the_state_of_the_sickest_query(queries, worst, said):
    told = headline({"queries": queries}, worst)
    assert (told.sentence, told.style) == (said, "critical" if queries[-1] is FAILED else "warning")


def test_what_was_critical_comes_before_what_is_worth_knowing_now():
    now = [ill("a", "healthy", 96, ("info", "x")), ill("b", "healthy", 96, ("info", "y"))]
    told = headline({"queries": now}, {"a": STUCK})
    assert (told.sentence, told.style) == ("a was stuck: query-stuck (ended)", "critical")
    assert headline({"queries": now}, {}).sentence == "a has a finding: x; 1 more query affected"


def test_a_healthy_application_is_said_to_be_with_its_plots():
    html = made(CRASH, query="idle_files")
    reader, words = read(html)

    assert "No problem found in 1 query" in words and "incident" not in [each.get("class") for _, each in reader.seen]
    assert "idle_files: no incident." in words


def test_the_parts_of_a_batch_are_told_largest_first_and_the_small_ones_together():
    told = [{"part": "cpu", "seconds": 1.0}, {"part": "gc", "seconds": 2.98}, {"part": "wal_commit", "seconds": 0.5}]
    told += [{"part": f"tiny_{number}", "seconds": 0.005} for number in range(4)]
    told += [{"part": "none", "seconds": 0.0}, {"part": "unknown", "seconds": None}]
    found = [(each["part"], round(each["seconds"], 3), round(each["share"], 3)) for each in slices(told)]

    parts = [
        ("garbage collection", 2.98, 0.662),
        ("computing", 1.0, 0.222),
        ("writing the offsets to the checkpoint", 0.5, 0.111),
    ]
    assert found == [*parts, ("all other parts", 0.02, 0.004)]


def test_a_part_has_the_colour_of_its_phase_in_the_plots():
    told = [("cpu", 3.0), ("wal_commit", 2.5), ("gc", 2.0), ("other_processes", 1.5), ("unattributed", 1.0)]
    found = slices([{"part": part, "seconds": seconds} for part, seconds in told])

    assert [(each["phase"], each["style"], each["shade"]) for each in found] == [
        ("add_batch", "p-add_batch", 1.0),
        ("wal_commit", "p-wal_commit", 1.0),
        ("add_batch", "p-add_batch", 0.72),
        ("", "p-rest", 1.0),
        ("", "p-rest", 0.72),
    ]


def test_the_head_names_the_application_and_a_section_what_its_query_reads_and_writes():
    _, words = read(made(RECORDED / "drills" / "slow-sink" / "recording"))
    assert "Application ledgerops (Spark 4.2.0). As of 2026-11-21" in words
    assert "health 78 of 100; reads transactions, writes to ForeachBatchSink. Ended" in words


def test_an_application_that_is_not_known_is_not_named():
    document = Investigation(str(OUTAGE), with_timeline=True, plots=True).diagnose()
    assert "Application" not in read(page(document, {}, {}))[1]


@pytest.mark.parametrize("told", [None, [], [{"part": "a", "seconds": 0.0}]], ids=["absent", "empty", "no time"])
def test_without_an_attribution_nothing_is_said(told):
    assert slices(told) == []


def test_without_a_batch_there_is_no_plot():
    from ledgerops.analysis.plot_series import Track

    assert query_plot(Track(), 0.0, 1.0, [], []) == ""


def test_the_command_writes_the_file_and_prints_the_report(tmp_path, capsys):
    target = tmp_path / "report.html"
    assert main(["diagnose", "--from", str(CRASH), "--html", str(target)]) == 1

    assert "crashes has failed: query-failed" in read(target.read_text("utf-8"))[1]
    assert "incident at" not in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "absent/report.html"], "cannot write absent/report.html: no such file or directory"),
        (["--html", "x.html", "--watch"], "--watch cannot be combined with --html"),
    ],
)
def test_a_page_that_cannot_be_written_is_said_in_one_line(arguments, said, capsys):
    assert main(["diagnose", "--from", str(CRASH), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_time_that_is_split_is_that_of_a_typical_batch():
    """Medians of several batches: none of them need have taken just that."""
    at = parse_instant("2026-11-21T18:59:07Z")
    recording = RECORDED / "drills" / "slow-broker" / "recording"
    document = Investigation(str(recording), at=at, with_timeline=True, plots=True).diagnose()
    parts = [{"part": "query_planning", "seconds": 1.5}, {"part": "cpu", "seconds": 0.5}]
    document["queries"][0]["attribution"] = parts

    _, words = read(page(document, {}, {}))
    assert "Where the time of a typical batch went part phase time share planning query_planning 1.5 s 75%" in words


def test_beside_a_step_that_only_prevents_a_loss_the_step_against_the_cause_is_shown():
    _, words = read(made(RECORDED / "drills" / "rate-limited" / "recording"))

    assert re.search(
        r"Do first: raise retention.ms of transactions now.*Then: raise maxOffsetsPerTrigger to about", words
    )


def test_what_a_cause_takes_of_a_batch_is_said_in_seconds(outage):
    _, words = read(made(RECORDED / "drills" / "slow-sink" / "recording"))
    assert re.search(r"confidence (high|medium|low), without it a batch takes [\d.]+ s less", words)
    assert "takes" not in read(outage)[1].partition("What to do")[0], "an outage takes no part of a batch"
