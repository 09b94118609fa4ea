"""`ledgerops notify` as a command: its options reach the parts that they are for."""

from __future__ import annotations

import pytest

from ledgerops.cli import main
from tests.notify.build import DIAGNOSIS
from tests.notify.receiver import Receiver


@pytest.fixture
def driver():
    """A driver on an address that is not trusted by itself."""
    made = Receiver("127.0.0.2")
    made.pages["/diagnosis"] = {"version": 1, "queries": [DIAGNOSIS]}
    made.pages["/api/v1/query"] = {"data": {"result": [{"metric": {"instance": made.url.removeprefix("http://")}}]}}
    yield made
    made.close()


@pytest.mark.parametrize(
    ("more", "sent"), [([], ""), (["--token-host", "127.0.0.*"], "Bearer s3cret")], ids=["unnamed host", "named host"]
)
def test_a_test_alert_is_sent_with_its_cause_and_the_token_goes_to_named_hosts(
    receiver, driver, tmp_path, capsys, more, sent
):
    (tmp_path / "token").write_text("s3cret\n")
    options = ["--prometheus", driver.url, "--exporter-token-file", str(tmp_path / "token"), *more]

    assert main(["notify", "--send", receiver.url, *options, "--test", "daily_counts"]) == 0

    assert "cause: key-skew" in receiver.got[0]["body"]
    assert driver.authorization == ["", sent]
    assert "sent: webhook 127.0.0.1 1" in capsys.readouterr().out


@pytest.mark.parametrize("causes", [7, "none", [None], [{}], [{**DIAGNOSIS["root_causes"][0], "confidence": "x"}]])
def test_a_test_alert_is_sent_without_a_diagnosis_that_is_none(receiver, driver, capsys, causes):
    driver.pages["/diagnosis"] = {"version": 1, "queries": [{**DIAGNOSIS, "root_causes": causes}]}

    assert main(["notify", "--send", receiver.url, "--exporter", driver.url, "--test", DIAGNOSIS["query"]]) == 0

    assert "diagnosis: none (the driver returned an invalid diagnosis)" in receiver.got[0]["body"]
    assert capsys.readouterr().err == ""


def test_without_a_sender_one_line_says_what_to_give(monkeypatch, capsys):
    monkeypatch.delenv("LEDGEROPS_NOTIFY_SENDERS", raising=False)

    assert main(["notify"]) == 2
    assert capsys.readouterr().err == (
        "ledgerops: no sender configured; give --send URL, --senders FILE or the variable LEDGEROPS_NOTIFY_SENDERS\n"
    )
