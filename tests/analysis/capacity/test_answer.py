from __future__ import annotations

import pytest

from ledgerops.analysis.capacity.answer import Question, answer
from ledgerops.analysis.capacity.fit import observed
from tests.analysis.capacity.conftest import exact_line, stage, stages

NOW = Question()


def test_a_query_with_room_keeps_up(situation):
    told = answer(situation(), NOW)

    assert told.batch is not None and told.batch.value == pytest.approx(0.4 + 2000 / 5000)
    assert told.rows == pytest.approx(2000)
    assert told.sustainable is not None and told.sustainable.value == pytest.approx(8000 / 2)
    assert told.headroom == pytest.approx(4.0)
    assert (told.behaviour, told.sure, told.unknown_because) == ("keeps_up", True, ())


def test_a_backlog_is_drained_by_what_is_left_over(situation):
    assert answer(situation(backlog=6000.0), NOW).drain == pytest.approx(6000 / (4000 - 1000))


def test_twice_the_load(situation):
    told = answer(situation(), Question(load=2.0))
    assert told.batch is not None and told.batch.value == pytest.approx(0.4 + 4000 / 5000)
    assert told.headroom == pytest.approx(2.0)


def test_a_load_between_the_sustainable_and_the_utmost_outlasts_the_trigger(situation):
    told = answer(situation(), Question(rows=4100))

    # t = 0.4 + 4100 t / 5000
    assert told.batch is not None and told.batch.value == pytest.approx(0.4 / (1 - 0.82))
    assert (told.behaviour, told.breach, told.growth) == ("outlasts", None, None)


def test_batches_as_long_as_half_the_objective_break_it(situation):
    known = situation(fit=exact_line(20_000), freshness=4.0)
    assert answer(known, Question(rows=4100)).breach == 0.0


def test_a_load_beyond_the_utmost_rate_grows_and_breaks_the_objective(situation):
    told = answer(situation(lag=10.0), Question(rows=10_000))

    assert told.behaviour == "grows" and told.sure
    assert told.growth == pytest.approx(10_000 - 5000)
    assert told.breach == pytest.approx((60 - 10) / (1 - 5000 / 10_000))
    assert told.batch is None
    assert told.unknown_because == ("batch time unknown: each batch would take longer than the one before",)


def test_a_cap_bounds_the_batch_and_the_rate(situation):
    told = answer(situation(cap=("maxOffsetsPerTrigger", 3000.0)), Question(rows=2000))

    assert told.batch is not None and told.batch.value == pytest.approx(0.4 + 3000 / 5000)
    assert told.sustainable is not None and told.sustainable.value == pytest.approx(1500)
    assert told.behaviour == "grows" and told.growth == pytest.approx(500)
    assert told.limit == ("source_limit", "maxOffsetsPerTrigger allows 3,000 rows a batch")


def test_another_trigger_changes_what_the_overhead_costs(situation):
    told = answer(situation(), Question(trigger=1.0))
    assert told.batch is not None and told.batch.value == pytest.approx(0.4 + 1000 / 5000)
    assert told.sustainable is not None and told.sustainable.value == pytest.approx(3000)


def test_a_trigger_shorter_than_the_overhead_sustains_nothing(situation):
    told = answer(situation(), Question(trigger=0.3))
    assert told.sustainable is not None and told.sustainable.value == 0.0
    assert told.behaviour == "outlasts"


def test_back_to_back_batches_may_last_half_the_objective(situation):
    told = answer(situation(trigger=0.0, freshness=4.0), NOW)
    assert told.batch is not None and told.batch.value == pytest.approx(0.4 / (1 - 1000 / 5000))
    assert told.sustainable is not None and told.sustainable.value == pytest.approx((2 - 0.4) * 5000 / 2)


def test_more_cores_help_the_tasks_only(situation):
    # 8 tasks of 0.4 s on 2 cores take 1.6 s, on 8 of them 0.4 s
    told = answer(situation(), Question(cores=8))

    assert told.batch is not None and told.batch.value == pytest.approx(0.4 + 2000 / 20_000)
    assert told.sustainable is None and told.at_least == pytest.approx(3 * 4000 / 2)  # 32,000 rows are far beyond
    assert told.limit is not None and told.limit.what == "fixed_overhead"


def test_fewer_cores_cost(situation):
    told = answer(situation(), Question(cores=1))
    assert told.batch is not None and told.batch.value == pytest.approx(0.4 + 2000 / 2500)


def test_the_present_cores_change_nothing(situation):
    assert answer(situation(), Question(cores=2)).batch == answer(situation(), NOW).batch


@pytest.mark.parametrize(
    ("known", "question", "reason"),
    [
        pytest.param(
            {"fit": None, "reason": "only 3 batches have rows; 8 are needed"}, NOW,
            "capacity unknown: only 3 batches have rows; 8 are needed", id="no line",
        ),
        pytest.param(
            {"fit": exact_line(2000)}, NOW,
            "sustainable rate unknown: it needs batches of 8,000 rows, 4.0 times the largest observed (2,000 "
            "rows), and estimates are limited to 3 times", id="far beyond what was seen",
        ),
        pytest.param(
            {"fit": exact_line(2000)}, Question(rows=3500),
            "batch time unknown: it needs batches of 7,000 rows, 3.5 times the largest observed (2,000 rows), "
            "and estimates are limited to 3 times", id="a load far beyond what was seen",
        ),
        pytest.param(
            {"arrival": None}, Question(load=2.0),
            "behaviour under load unknown: no arrival rate is known; give it with --load, in rows per second",
            id="no arrival",
        ),
        pytest.param(
            {"trigger": None}, NOW,
            "sustainable rate unknown: the trigger interval is not known; give it with --trigger",
            id="no trigger",
        ),
        pytest.param(
            {"stages": None}, Question(cores=4),
            "effect of other core counts unknown: tasks were recorded for too few batches", id="no tasks",
        ),
        pytest.param(
            {"stages": stages(stage([0.4] * 8), cores=None)}, Question(cores=4),
            "effect of other core counts unknown: the current number of cores is not known", id="no cores",
        ),
        pytest.param(
            {}, Question(cores=16),
            "effect of 16 cores unknown: estimates go up to 4 times the current 2, because the measurements do not "
            "show how more cores share memory, disk and network", id="far more cores",
        ),
    ],
)  # fmt: skip
def test_what_the_data_do_not_support_is_not_told(situation, known, question, reason):
    assert reason in answer(situation(**known), question).unknown_because


def test_too_far_beyond_it_tells_at_least_what_the_line_is_trusted_for(situation):
    told = answer(situation(fit=exact_line(2000)), NOW)

    assert told.sustainable is None
    assert told.at_least == pytest.approx(3 * 2000 / 2)
    assert told.behaviour == "keeps_up"


def test_without_a_line_it_carries_what_it_carries_now(situation):
    told = answer(situation(fit=None, reason="batches have nearly the same size", shown=1000.0), NOW)
    assert (told.at_least, told.behaviour, told.batch) == (1000.0, "keeps_up", None)


def test_without_a_line_another_load_is_not_told(situation):
    known = situation(fit=None, reason="batches have nearly the same size", shown=1000.0)

    more = answer(known, Question(load=1.1))
    assert (more.behaviour, more.at_least, more.headroom) == ("unknown", 1000.0, None)
    assert answer(known, Question(trigger=5.0)).at_least is None


def test_a_saturated_query_of_one_batch_size_is_told_of_that_size(situation):
    line = observed([4000] * 6, [4.0] * 6)
    told = answer(situation(fit=line, cap=("maxRowsPerTrigger", 4000.0), arrival=1500.0), NOW)

    assert told.behaviour == "grows" and told.growth == pytest.approx(500)
    assert told.batch is not None and told.batch.value == pytest.approx(4.0)


def test_question_texts():
    assert [Question().text, Question(2.0).text, Question(rows=5000).text, Question(2.0, None, 5.0, 8).text] == [
        "now", "load 2x", "load 5,000/s", "load 2x, trigger 5s, 8 cores",
    ]  # fmt: skip
