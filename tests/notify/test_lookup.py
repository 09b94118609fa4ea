"""Who is asked for a diagnosis, for how long, and who sees the token."""

import time
from urllib.parse import parse_qs, urlsplit

import pytest

from ledgerops.common.credentials import Secrets
from ledgerops.notify.incident import promql_text
from ledgerops.notify.lookup import MAX_DRIVERS, Lookup
from tests.hostile import dripping_server
from tests.notify.build import DIAGNOSIS, KNOWN, instances
from tests.tables import cases


@pytest.fixture
def dripping():
    with dripping_server() as url:
        yield url


@pytest.fixture
def secrets(tmp_path):
    (tmp_path / "token").write_text("secret\n")
    return Secrets(token_file=str(tmp_path / "token"))


def ask(job="", app="", **options):
    """What becomes of one lookup."""
    return Lookup(**options).diagnose("daily_counts", job, app)


def asked(prometheus):
    """The first question to it."""
    [found] = parse_qs(urlsplit(prometheus.asked[0]).query)["query"]
    return found


def test_a_driver_that_drips_ends_with_the_deadline_of_the_lookup(dripping):
    began = time.monotonic()

    found = ask(exporters=[dripping], seconds=0.5)

    assert time.monotonic() - began < 30
    assert (found.diagnosis, found.trouble) == (None, f"{dripping} did not answer within 0.5 s")


def test_a_driver_that_drips_hides_no_other(dripping, driver):
    driver.pages["/diagnosis"] = KNOWN

    assert ask(exporters=[dripping, driver.url], seconds=5.0).diagnosis == DIAGNOSIS


def test_a_prometheus_that_drips_hides_no_driver(dripping, driver):
    driver.pages["/diagnosis"] = KNOWN

    assert ask(exporters=[driver.url], prometheus=dripping, seconds=5.0).diagnosis


@cases(
    "of, trouble",
    ("Prometheus", lambda url: {"prometheus": url}, "Prometheus did not answer a moment ago"),
    ("a driver", lambda url: {"exporters": [url]}, "{} did not answer a moment ago"),
)
def test_what_is_silent_is_not_asked_again_at_once(dripping, of, trouble):
    lookup = Lookup(**of(dripping), seconds=0.5)
    lookup.diagnose("daily_counts", "")

    assert lookup.diagnose("daily_counts", "").trouble == trouble.format(dripping)


def test_of_very_many_drivers_that_prometheus_names_few_are_asked(driver):
    driver.pages["/api/v1/query"] = instances(*(f"127.0.0.1:{port}" for port in range(1, 1000)))
    lookup = Lookup(prometheus=driver.url, seconds=5.0)
    lookup.diagnose("daily_counts", "")

    assert len(lookup._silent) <= MAX_DRIVERS


@pytest.mark.parametrize(
    "instance", ["[::1]evil.example:80", "x@localhost:80", "localhost/../x", "localhost:80#", "", 5, "a b"]
)
def test_what_is_no_host_and_port_is_not_asked(driver, instance):
    driver.pages["/api/v1/query"] = instances(instance)

    assert ask(prometheus=driver.url, seconds=5.0).trouble == "Prometheus knows no driver of daily_counts"


def test_half_a_character_of_a_driver_reaches_no_sender(driver):
    driver.pages["/diagnosis"] = {"queries": [{**DIAGNOSIS, "status": "\ud800"}]}

    assert ask(exporters=[driver.url], seconds=5.0).diagnosis["status"] == "?"


def test_the_driver_that_runs_the_query_is_believed_before_one_that_ran_it(driver, receiver):
    for each, health in ((driver, 10), (receiver, 90)):
        each.pages["/diagnosis"] = {"queries": [{**DIAGNOSIS, "health": health}]}
    driver.pages["/api/v1/query"] = instances(*(urlsplit(each.url).netloc for each in (driver, receiver)))

    assert ask(prometheus=driver.url).diagnosis["health"] == 10


@pytest.mark.parametrize(("app", "health"), [("billing", 10), ("reports", 90)])
def test_of_two_applications_with_equal_query_names_the_right_one_answers(driver, receiver, app, health):
    for each, its_app, its_health in ((driver, "billing", 10), (receiver, "reports", 90)):
        each.pages["/diagnosis"] = {"app": its_app, "queries": [{**DIAGNOSIS, "health": its_health}]}

    assert ask(app=app, exporters=[driver.url, receiver.url]).diagnosis["health"] == health


def test_no_diagnosis_is_better_than_that_of_another_application(driver):
    driver.pages["/diagnosis"] = {"app": "reports", "queries": [DIAGNOSIS]}

    found = ask(app="billing", exporters=[driver.url])

    assert (found.diagnosis, found.trouble) == (None, f"{driver.url} does not know daily_counts of billing")


def test_a_driver_that_does_not_name_its_application_is_believed(driver):
    driver.pages["/diagnosis"] = KNOWN

    assert ask(app="billing", exporters=[driver.url]).diagnosis == DIAGNOSIS


def test_prometheus_is_asked_for_drivers_of_the_application(driver):
    driver.pages["/api/v1/query"] = instances()

    ask(app="billing", prometheus=driver.url)

    assert asked(driver) == 'sort_desc(ledgerops_query_active{query="daily_counts", app="billing"})'


def test_a_job_cannot_change_the_question_to_prometheus(driver):
    driver.pages["/api/v1/query"] = instances()
    job = 'x"} or vector(1) or y{a="\n'

    ask(job, prometheus=driver.url)

    assert asked(driver) == f'sort_desc(ledgerops_query_active{{query="daily_counts", job={promql_text(job)}}})'
    assert '"x\\"}' in asked(driver)


@cases(
    "known, authorization",
    ("only by Prometheus", {}, ""),
    ("as one that may have it", {"token_hosts": ["127.0.0.*"]}, "Bearer secret"),
    ("as an exporter", {"exporters": ["http://127.0.0.2:1"]}, "Bearer secret"),
)
def test_the_token_goes_to_hosts_that_are_named(driver, elsewhere, known, authorization, secrets):
    driver.pages["/api/v1/query"] = instances(urlsplit(elsewhere.url).netloc)
    elsewhere.pages["/diagnosis"] = KNOWN

    ask(prometheus=driver.url, secrets=secrets, **known)

    assert elsewhere.authorization == [authorization]


def test_prometheus_gets_its_own_credentials_and_no_other(driver, elsewhere, secrets, tmp_path):
    (tmp_path / "password").write_text("geheim")
    driver.pages["/api/v1/query"] = instances()
    elsewhere.pages["/diagnosis"] = KNOWN
    own = Secrets(user="me", password_file=str(tmp_path / "password"))

    ask(prometheus=driver.url, prometheus_secrets=own, exporters=[elsewhere.url], secrets=secrets)

    assert (driver.authorization, elsewhere.authorization) == (["Basic bWU6Z2VoZWlt"], ["Bearer secret"])


def test_a_token_is_read_again_for_each_lookup(driver, secrets, tmp_path):
    driver.pages["/diagnosis"] = KNOWN
    lookup = Lookup(exporters=[driver.url], secrets=secrets)
    lookup.diagnose("daily_counts", "")
    (tmp_path / "token").write_text("rotated")
    lookup.diagnose("daily_counts", "")
    (tmp_path / "token").unlink()
    found = lookup.diagnose("daily_counts", "")

    assert driver.authorization == ["Bearer secret", "Bearer rotated"]
    assert found.diagnosis is None and "no such file or directory" in found.trouble
