"""The services that jobs ask: which a run opens, which it is given, and when that is refused."""

import sqlite3
from contextlib import ExitStack, closing

import pytest
import urllib3

from ledgerops.ledger.jobs.databases import sqlite_path
from ledgerops.ledger.run.services import open_services
from ledgerops.ledger.run.source import RunSource, choose_source
from ledgerops.servers.risk import RiskService
from tests.refusals import refusal_of

HEADER = "account_id,district_id,frequency,parseddate,year,month,day,date"


@pytest.fixture
def bank(tmp_path):
    """A folder of files to replay, and the feed that replays them."""
    (tmp_path / "transactions.csv").write_text("")
    (tmp_path / "accounts.csv").write_text(f"{HEADER}\nA1,5,,,,,,2013-01-01\n")
    return choose_source("replay", environ={"LEDGEROPS_DATA": str(tmp_path)})


def accounts(url):
    with closing(sqlite3.connect(sqlite_path(url))) as database:
        return database.execute("SELECT account_id FROM accounts").fetchall()


def test_nothing_is_opened_for_jobs_that_want_nothing(tmp_path):
    urls = open_services((), {"risk": "http://127.0.0.1:1"}, tmp_path / "work", choose_source("embedded"), ExitStack())
    assert (urls, (tmp_path / "work").exists()) == ({}, False)


def test_accounts_of_a_replay_are_the_files_and_those_of_a_plan_invented(tmp_path, bank):
    plan = choose_source("embedded", "default")
    of_files, of_plan = (
        open_services({"accounts"}, {}, tmp_path / feed.kind, feed, ExitStack()) for feed in (bank, plan)
    )
    assert set(of_files) == set(of_plan) == {"accounts"}
    assert accounts(of_files["accounts"]) == [("A1",)]
    assert len(accounts(of_plan["accounts"])) == plan.plan.keys.accounts


def test_without_plan_and_files_there_are_no_accounts(tmp_path, monkeypatch):
    monkeypatch.delenv("LEDGEROPS_DATA", raising=False)
    assert refusal_of(open_services, {"accounts"}, {}, tmp_path, RunSource("embedded", "x", "y"), ExitStack()) == (
        "no accounts to look up: give --accounts-url, or set LEDGEROPS_DATA to the folder that holds accounts.csv"
    )


def ask(url):
    """The status with which a risk service answers about one transaction."""
    question = {"transactions": [{"transaction_id": "T1", "amount": 1}]}
    return urllib3.request("POST", f"{url}/scores", json=question, retries=False, timeout=5.0).status


def test_a_local_risk_service_answers_until_it_is_closed(tmp_path, bank):
    with ExitStack() as opened:
        urls = open_services({"risk"}, {}, tmp_path, bank, opened)
        assert ask(urls["risk"]) == 200

    with pytest.raises(urllib3.exceptions.HTTPError):
        ask(urls["risk"])


def test_given_services_are_used_and_not_stopped(tmp_path, bank, monkeypatch):
    local = open_services({"accounts"}, {}, tmp_path / "work", bank, ExitStack())["accounts"]
    monkeypatch.chdir(tmp_path)
    relative = local.replace(f"{tmp_path}/", "")
    with RiskService() as risk:
        given = {"accounts": relative, "risk": risk.url}
        with ExitStack() as opened:
            assert open_services({"accounts", "risk"}, given, tmp_path / "x", bank, opened) == {
                "accounts": local,
                "risk": risk.url,
            }
        assert ask(risk.url) == 200
    assert not (tmp_path / "x").exists()


NO_URL = "the URL of the risk service must be http://host:port or https://host:port"
# given -> what is said of it
REFUSED = {
    "nobody listens": (
        {"risk": "http://me:secret@127.0.0.1:1"},
        "cannot reach the risk service at 127.0.0.1:1: connection refused; "
        "start it, or omit --risk-url to use a local one",
    ),
    "another protocol": ({"risk": "ftp://me:secret@127.0.0.1"}, NO_URL),
    "not a port": ({"risk": "http://127.0.0.1:port"}, NO_URL),
    "another database": (
        {"accounts": "mysql://me:secret@db/bank"},
        "cannot look up accounts in this database: expected postgresql://user@host:port/database or sqlite:///path",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_a_service_that_does_not_answer_is_refused_in_one_line(tmp_path, bank, given, message):
    assert refusal_of(open_services, set(given), given, tmp_path, bank, ExitStack()) == message


def test_a_run_is_refused_before_spark_starts_when_a_given_service_is_not_there(tmp_path, refusal):
    argv = ("run", "account_lookup", "--accounts-url", "sqlite:///none.sqlite", "--port", "0")
    assert refusal(*argv) == f"cannot look up accounts in {tmp_path}/none.sqlite: unable to open database file"


def test_a_local_risk_service_is_refused_where_executors_cannot_reach_it(tmp_path, bank):
    asked = {"risk"}, {}, tmp_path, bank
    assert refusal_of(open_services, *asked, ExitStack(), "spark://far:7077") == (
        "executors of spark://far:7077 cannot reach a risk service of this machine: give --risk-url"
    )
    with ExitStack() as opened:
        assert open_services(*asked, opened, "spark://127.0.0.1:7077")
