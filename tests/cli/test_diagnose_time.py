"""Diagnosis and time: since a moment, the timeline, and looking again and again until Ctrl-C."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from ledgerops.analysis import session
from ledgerops.analysis.inputs import Source
from ledgerops.analysis.session import Investigation
from ledgerops.cli import main
from ledgerops.model.recording import read
from ledgerops.model.spark_progress import parse_instant
from tests.paths import RECORDED
from tests.serving import Background, Quiet

CRASH, OUTAGE = str(RECORDED / "spark-4.2.0.jsonl"), str(RECORDED / "source-unreachable.jsonl")


@pytest.fixture
def outage(ledgerops):
    return partial(ledgerops, "diagnose", "--from", OUTAGE)


def test_what_is_over_is_told_when_asked_since_before_it(outage):
    told = outage("--since", "5m")

    assert told.code == 1
    assert told.lines[1].startswith(
        "  was critical source-unreachable  12:35:51 to 12:36:08 UTC: the broker has not answered"
    )
    assert told.lines[-1].endswith("nothing found now; ended: outage (source-unreachable)")


def test_what_was_over_before_that_is_not_told(outage):
    told = outage("--since", "2026-11-21T12:36:09Z")
    assert (told.code, "source-unreachable" in told.out) == (0, False)


def test_queries_of_which_something_was_heard_since_are_there(ledgerops):
    told = ledgerops("diagnose", "--from", CRASH, "--since", "10s", "--json")
    assert (told.code, "windowed" in [query["query"] for query in told.document["queries"]]) == (1, True)


def test_at_a_moment_what_ended_before_it_is_told_too(outage):
    told = outage("--at", "2026-11-21T12:36:20Z", "--since", "5m", "--json")
    [query] = told.document["queries"]
    assert (told.code, [ended["rule"] for ended in query["ended"]]) == (1, ["source-unreachable"])


def test_the_timeline_is_printed_above_the_sum(outage):
    told = outage("--timeline")

    assert told.code == 1
    assert "incident at 2026-11-21 12:35:51 UTC, until 12:36:08, 1 query" in told.lines
    assert re.fullmatch(r"  12:36:08 +\+0:18  outage  source-unreachable ended after 1\d s", told.lines[-4])
    assert told.lines[-1].startswith("1 query until ")


def test_the_timeline_is_a_key_of_the_document_where_it_is_asked_for(outage):
    told, plain = outage("--timeline", "--since", "5m", "--json"), outage("--json").document

    assert told.code == 1
    assert {each["what"] for each in told.document["timeline"]["events"]} == {"start", "begin", "end", "stop"}
    [ended] = told.document["queries"][0]["ended"]
    assert (ended["rule"], ended["explained_by"]) == ("source-unreachable", [])
    assert ended["until"].startswith("2026-11-21T12:36:08")
    assert "timeline" not in plain and "ended" not in plain["queries"][0]


CANNOT_LOOK = {
    "--since lately": "--since lately: neither a time like 2026-11-21T08:30:00Z nor a duration like 15m",
    "--since 2030-01-01": f"nothing was recorded in {OUTAGE} since 2030-01-01T00:00:00.000Z",
    "--watch --at 2026-11-21T12:36:00Z": "--watch cannot be combined with --at: a past moment does not change",
    "--watch often": "argument --watch: not a duration: 'often'",
}


@pytest.mark.parametrize(("arguments", "said"), CANNOT_LOOK.items(), ids=CANNOT_LOOK)
def test_could_not_look_is_two_and_one_line(refusal, arguments, said):
    assert said in refusal("diagnose", "--from", OUTAGE, *arguments.split())


def watching(place, *arguments, **options):
    """`ledgerops diagnose --watch`, with pipes unless it is given other streams."""
    command = [sys.executable, "-m", "ledgerops", "diagnose", "--watch", "0.1", "--from", place, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, **pipes | options)


def interrupted(watch):
    """What it still says on stderr when it is interrupted."""
    watch.send_signal(signal.SIGINT)
    return watch.communicate(timeout=60)[1]


def read_until(stream, part, times=1):
    """What a stream gives until `part` was in it so often."""
    got = b""
    while got.count(part) < times:
        more = os.read(stream, 65536)
        assert more, got
        got += more
    return got


def test_a_moment_after_the_end_is_answered_with_how_it_was_then_and_says_so(outage):
    last, later = outage("--at", "2026-11-21T12:36:09.378Z"), outage("--at", "2026-11-22T12:00:00Z")

    assert (later.out, later.code) == (last.out, 0)
    assert later.err == f"ledgerops: {OUTAGE} ends at 2026-11-21T12:36:09.378Z: this is how it was then\n"
    assert last.err == ""


def test_an_exporter_is_not_asked_how_it_will_be_later(monkeypatch):
    now = parse_instant("2026-11-21T12:36:12Z")
    monkeypatch.setattr(session, "open_source", lambda *_: Source("url", read(Path(OUTAGE)), now))
    told = session.Investigation("http://127.0.0.1:9464", at=now + 7200.0).diagnose()
    assert (told["at"], [each["findings"] for each in told["queries"]]) == ("2026-11-21T12:36:12.000Z", [[]])


def test_a_moment_between_two_records_is_not_after_the_end(ledgerops):
    told = ledgerops("diagnose", str(RECORDED / "key-skew.jsonl"), "--at", "2026-11-21T08:59:55Z")
    assert told.err == ""


@pytest.mark.parametrize(("place", "code"), [(CRASH, 1), (OUTAGE, 0)], ids=["something found", "nothing found"])
def test_watching_prints_block_after_block_and_ends_with_the_code_of_the_last_look(place, code):
    with watching(place) as watch:
        got = read_until(watch.stdout.fileno(), b" at 2026-11-21 ", times=3).decode()
        err = interrupted(watch)

    assert (watch.returncode, err) == (code, b"")
    assert "\x1b" not in got and len(re.findall(r"\n\n\w+ +\w+ +health", got)) >= 2


def test_a_record_that_cannot_be_read_is_told_once_however_often_a_file_is_looked_at(tmp_path, capsys):
    bad = '{"at": "2026-11-21T12:00:00Z", "kind": "started", "query": "daily_counts", "data": {}}\n'
    place = tmp_path / "recording.jsonl"
    place.write_text(Path(CRASH).read_text() + bad)
    looks = Investigation(str(place))

    for more, said in (("", True), ("", False), (bad, True)):
        place.write_text(place.read_text() + more)
        looks.diagnose()
        skipped = f"ledgerops: skipped 1 record of {place} that could not be read\n"
        assert capsys.readouterr().err == (skipped if said else "")


def test_watching_on_a_terminal_redraws_in_place():
    ours, theirs = pty.openpty()
    with watching(OUTAGE, stdout=theirs, stderr=theirs, env={**os.environ, "LINES": "30"}) as watch:
        os.close(theirs)
        got = read_until(ours, b"\x1b[H", times=3)
        watch.send_signal(signal.SIGINT)
        try:
            while True:
                got += os.read(ours, 65536)
        except OSError:  # the other side is closed
            os.close(ours)

    assert watch.returncode == 0
    assert got.count(b"\x1b[2J") == 1 and got.endswith(b"\x1b[?7h\r\n") and b"Traceback" not in got


@pytest.fixture
def exporter():
    """An exporter that gives what was observed since a moment, as the real one does; `asked` are the paths."""
    lines = Path(OUTAGE).read_bytes().splitlines(keepends=True)

    class Handler(Quiet):
        def do_GET(self):
            server.asked.append(self.path)
            count = min(len(lines), 8 * len(server.asked))
            self.reply(503 if server.away else 200, b"".join(lines[:count]))

    with Background(Handler) as server:
        server.asked, server.away = [], False
        yield server


def test_an_exporter_is_asked_again_for_what_is_new_only(exporter):
    with watching(exporter.url, "--since", "10m") as watch:
        read_until(watch.stdout.fileno(), b"query at ", times=3)
        interrupted(watch)

    assert exporter.asked[0] == "/recording?since=4200.000"
    assert all(path.startswith("/recording?since=") for path in exporter.asked)
    assert float(exporter.asked[-1].split("=")[1]) < 60


@pytest.mark.parametrize("behind", [0.0, 30.0, 3600.0])
def test_a_clock_that_is_behind_the_drivers_loses_nothing(exporter, behind):
    """How much is asked for goes by the time that passed here, whatever the driver's clock says."""
    looks = Investigation(exporter.url)
    for passed in (0.0, 60.0):
        looks.diagnose(now=1_700_000_000.0 - behind + passed)
    assert exporter.asked == ["/recording", "/recording?since=70.000"]


def test_an_exporter_that_goes_away_is_said_and_asked_again(exporter):
    with watching(exporter.url) as watch:
        read_until(watch.stdout.fileno(), b"query at ")
        exporter.away = True
        got = read_until(watch.stderr.fileno(), b"\n").decode()
        interrupted(watch)

    assert got.startswith(f"ledgerops: {exporter.url}/recording?since=")
    assert "answers 503: it gets too many requests at the moment; try again (retrying in 0.1 s)\n" in got
    assert watch.returncode == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", [["diagnose", "--watch", "0.01", "--from"], ["status", "--url"]])
def test_an_interrupt_that_python_drops_ends_it_all_the_same(exporter, monkeypatch, command):
    """Within a destructor, as that of a response of urllib, an interrupt is printed and dropped."""

    class Response:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def look(*args):
        looks.append(None)
        if len(looks) == 2:
            Response()
        assert len(looks) < 3, "looks on"
        return {"queries": [], "at": "2026-11-21T08:30:00Z"}

    looks = []
    monkeypatch.setattr("ledgerops.analysis.session.Investigation.diagnose", look)
    monkeypatch.setattr("ledgerops.cli.status.fetch", look)
    monkeypatch.setattr("ledgerops.cli.live_view.watch.__defaults__", (0.01, 0.01))

    assert main([*command, "http://127.0.0.1:1"]) == 0
    assert len(looks) == 2


def test_a_report_that_is_too_high_is_cut_and_says_so(monkeypatch, capsys):
    from ledgerops.cli.live_redraw import Redraw

    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((80, 6)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Redraw(sys.stdout).show("\n".join(f"line {number}" for number in range(20)) + "\n")

    shown = re.sub(r"\x1b\[[\d;?]*\w", "", capsys.readouterr().out).splitlines()
    assert shown == ["line 0", "line 1", "line 2", "(16 more lines; make the terminal taller)", "line 19"]
