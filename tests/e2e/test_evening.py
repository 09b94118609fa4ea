"""An operator's evening, lived once: which messages arrive, how many, when, with which first cause and which end."""

import re
from collections.abc import Iterator

import pytest

from tests.e2e.evening import SECOND, STOCK, Evening, Incident, page
from tests.programs import needed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]  # it takes six minutes on an idle machine
MAX_MESSAGES = 3  # of an incident: one to page, one when it changes, one when it is over
LASTED = re.compile(r"; the alert( of \w+)? lasted [\d.]+ (s|min)( \d+ s)?\)$")
SINCE = re.compile(r"\(alert since \d\d:\d\d:\d\d UTC, for [\d.]+ ")
ADDRESS = re.compile(r"^(runbook|dashboard|silence): (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def evening(server_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evening]:
    for program in ("prometheus", "prometheus-alertmanager", "amtool"):
        needed(program)
    with Evening(tmp_path_factory.mktemp("evening")) as lived:
        lived.live()
        yield lived


def told(evening: Evening, name: str) -> Incident:
    [found] = [each for each in evening.incidents if each.name == name]
    return found


def cause(incident: Incident) -> str:
    """The first cause of the first message."""
    lines = incident.messages[0]["body"].splitlines()
    return next(line for line in lines if line.startswith("cause")).partition(": ")[2].partition(" (")[0]


@pytest.mark.parametrize(
    ("name", "title", "first_cause"),
    [
        ("Slow sink", r"(WARNING|CRITICAL) orders of shop: ", "slow-sink"),
        ("Hung sink on a busy host", r"CRITICAL payments of shop: A query is running but ", "query-stuck"),
        ("Silence, and its end", r"CRITICAL stock of depot: A query is running but reports no progress", "query-stuck"),
        ("Broker away", rf"CRITICAL ({len(SECOND)} queries|\w+) of shop: A query's broker ", "source-unreachable"),
        ("Driver killed", r"CRITICAL depot: A driver stopped answering while its queries ran", None),
    ],
)
def test_an_incident_is_one_page_and_its_end(evening, name, title, first_cause):
    incident = told(evening, name)
    titles = [sent["title"] for sent in incident.messages]

    assert re.match(title, titles[0]), titles
    assert 2 <= len(titles) <= MAX_MESSAGES, titles
    assert [sent["resolved"] for sent in incident.messages] == [False] * (len(titles) - 1) + [True]
    assert "\ndo first" in incident.messages[0]["body"]
    if first_cause is not None:
        assert cause(incident) == first_cause, incident.messages[0]["body"]
    else:
        body = incident.messages[0]["body"]
        assert f"(1): {STOCK[0]}. Nothing has taken its place" in body and "healthy" not in body


@pytest.mark.parametrize("name", ["Redeploy", "Executor lost", "Planned stop"])
def test_what_needs_nobody_wakes_nobody(evening, name):
    assert told(evening, name).messages == []


def test_no_message_is_about_nothing(evening):
    assert [sent["title"] for sent in evening.unexplained()] == []


def test_the_broker_is_one_page_with_its_queries(evening):
    """Where the queries did not notice it within a second of each other, the page of the first is followed by one that
    has them all."""
    texts = [f"{sent['title']}\n{sent['body']}" for sent in told(evening, "Broker away").messages]
    assert any(all(query in text for query in SECOND) for text in texts)


def test_an_alert_begins_after_its_fault_and_says_for_how_long_it_lasted(evening):
    for incident in evening.incidents:
        for sent in incident.messages:
            said = LASTED if sent["resolved"] else SINCE
            assert said.search(sent["title"]), sent["title"]


def test_the_end_of_a_driver_that_was_started_again_says_what_runs(evening):
    titles = [sent["title"] for sent in told(evening, "Driver killed").messages]
    assert f"(runs {STOCK[0]}" in titles[-1], titles


@pytest.mark.parametrize("name", ["Slow sink", "Hung sink on a busy host", "Silence, and its end"])
def test_the_end_of_a_repaired_sink_says_that_it_recovered(evening, name):
    """Where the machine has other work, too, it may say that its cores are still busy; the cause is gone."""
    incident = told(evening, name)
    end = incident.messages[-1]

    assert re.search(r"\((recovered|catching up|(cpu-saturated|noisy-neighbour) is still active)", end["title"])
    assert re.search(rf"^now: .*\n(.*\n)*gone: .*\b{cause(incident)}\b", end["body"], re.MULTILINE), end["body"]


def test_every_page_has_a_runbook_and_only_addresses_of_the_web(evening):
    for sent in (sent for each in evening.incidents for sent in each.messages):
        links = dict(ADDRESS.findall(sent["body"]))
        assert "runbook" in links, sent
        assert sent["resolved"] or "silence" in links
        assert all(url.startswith(("http://", "https://")) for url in links.values())
        assert len(sent["body"].splitlines()) < 12


def test_the_page_of_the_documentation_has_every_message(evening):
    text = page(evening)
    assert all(sent["title"] in text for sent in evening.receiver.got)
    assert "False pages: 0. Missing pages: 0." in text
