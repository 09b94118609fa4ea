from dataclasses import replace

import pytest

from ledgerops.diagnosis.rules.watermark_stalled import RULE
from tests.diagnosis.rules.retelling import retold

DELAY = 10.0


def joined(
    history, silent=14, count=24, sparse=None, first_is_silent=False, names=None, rows=500, one=False, state=0, **case
):
    """Two inputs of a join. From batch `silent` on the accounts send none; `sparse` = only each so many batches."""
    view = history(
        seconds=[1.0] * (count - 6),
        operators=[{"name": "symmetricHashJoin", "rows": 100 + state * n} for n in range(count - 6)],
        plan={"watermarks": {"event_time": DELAY, "opened": DELAY}},
        **case,
    )
    told = []
    newest = {"accounts": None, "transactions": None}
    for n, batch in enumerate(view.history.batches):
        sends = n < silent and (sparse is None or n % sparse == 0)
        known = [at for at in newest.values() if at is not None]
        mark = min(known) - DELAY if len(known) == 2 else None
        newest["transactions"] = batch.started
        if sends:
            newest["accounts"] = batch.started
        [source] = batch.sources
        both = (replace(source, name="transactions", rows=rows), replace(source, name="accounts", rows=rows * sends))
        if one:
            both = (replace(source, rows=rows * (1 + sends)),)
        seen = newest["accounts"] if first_is_silent else newest["transactions"]
        observed = {
            f"ledgerops_{name}": {"rows": rows, "event_time_max": at and f"2026-09-21 {_clock(at)}"}
            for name, at in newest.items()
            if names and (name != "accounts" or sends or names == "all")
        }
        told.append(
            {
                "sources": both,
                "rows": rows * (1 + sends),
                "watermark": mark,
                "event_time_max": seen if sends or not first_is_silent else None,
                "observed": observed,
            }
        )
    return retold(view, lambda n, batch: told[n])


def _clock(at):
    seconds = int(at) % 86400
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def test_the_silent_input_of_a_join_is_found(history):
    [finding] = RULE.check(joined(history))

    assert finding.summary == (
        "the watermark has not advanced for 18 s while 4,500 rows arrived: accounts, which sent none, stops it"
    )
    assert finding.component.name == "accounts"


def test_it_is_found_where_the_first_watermark_is_that_of_the_silent_input(history):
    [finding] = RULE.check(joined(history, first_is_silent=True))

    assert "watermark_behind_rows_seconds" not in [each.name for each in finding.evidence]


def test_an_input_that_seldom_sends_may_fall_silent_too(history):
    [finding] = RULE.check(joined(history, sparse=8, silent=33, count=56))

    assert [each.value for each in finding.evidence if each.name == "watermark_usually_still_seconds"] == [16.0]


def test_it_is_found_within_five_batches(history):
    assert len(list(RULE.check(joined(history, count=20)))) == 1


def test_state_that_grows_meanwhile_is_told(history):
    [finding] = RULE.check(joined(history, state=50))

    assert finding.summary.endswith("stops it; state grew from 500 to 950 rows meanwhile")


@pytest.mark.parametrize("names", ["all", "with rows"])
def test_an_input_is_told_apart_by_its_observation(history, names):
    [finding] = RULE.check(joined(history, names=names, one=True))

    assert finding.component.name == "accounts"
    assert "accounts, observed 20 s behind the other, stops it" in finding.summary


def test_a_source_bears_the_name_of_its_observation_too(history):
    [finding] = RULE.check(joined(history, names="all"))

    assert "accounts (observed as accounts), which sent none, stops it" in finding.summary
    assert finding.component.detail == "has the lowest watermark (observed as accounts)"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"silent": 99}, id="both send"),
        pytest.param({"silent": 21}, id="silent for three batches"),
        pytest.param({"silent": 21, "interval": 10.0}, id="silent for three batches of a long interval"),
        pytest.param({"interval": 0.5, "count": 21}, id="silent for some seconds, in many short batches"),
        pytest.param({"sparse": 8, "silent": 99, "count": 31}, id="an input that seldom sends"),
        pytest.param({"sparse": 8, "silent": 33, "count": 46}, id="silent for not much longer than it often is"),
        pytest.param({"one": True}, id="nothing tells the inputs apart"),
        pytest.param({"rows": 0}, id="no rows at all"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(joined(history, **case))) == []


def test_a_branch_that_passes_nothing_on_is_found_when_it_lasts(history):
    [finding] = RULE.check(joined(history, one=True, count=40))

    assert finding.component.name == "one input of the query"
    assert (
        "one input of the query (the watermarks are on event_time, opened), which passes on no newer rows"
        in finding.summary
    )


def test_rows_that_do_not_go_on_in_event_time_stall_nothing(history):
    view = joined(history)
    day = view.history.batches[13].started

    assert list(RULE.check(retold(view, lambda n, batch: {"event_time_max": day if n > 13 else batch.started}))) == []


@pytest.mark.parametrize("case", [{"warm": 0}, {"idle": True}, {"seconds": [1.0] * 20}])
def test_a_query_without_a_watermark_has_none(history, case):
    assert list(RULE.check(history(**case))) == []


def test_an_input_that_never_sent_a_row_is_found(history):
    [finding] = RULE.check(joined(history, silent=0))

    assert finding.summary == (
        "there has been no watermark for 46 s while 11,500 rows arrived: accounts, which sent none, keeps it from "
        "starting; state grew from 0 to 100 rows meanwhile"
    )
    assert [each.name for each in finding.evidence] == [
        "watermark_still_seconds", "rows_read_meanwhile", "rows_of_the_silent_input"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"silent": 0, "count": 8}, id="the query has only begun"),
        pytest.param({"silent": 0, "rows": 0}, id="no input sends"),
        pytest.param({"silent": 24}, id="both inputs send"),
    ],
)
def test_a_watermark_that_need_not_be_there_yet_is_not_missed(history, case):
    assert list(RULE.check(joined(history, **case))) == []
