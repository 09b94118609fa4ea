"""Steps that are taken: which application is started again how, and when its harm has ended."""

import json
from dataclasses import replace

import pytest

from ledgerops.cli import main
from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.harness.case import Case
from ledgerops.drills.remedies.harm import MEASURES, Harm
from ledgerops.drills.remedies.page import Taken, part
from ledgerops.drills.remedies.step import CONTROLS, KINDS, Step, advised, remedy_cases, treated
from ledgerops.errors import UserError
from ledgerops.model.finding import CORES, DELAY_SECONDS, REPARTITION, TRIGGER_SECONDS, Setting
from tests.build import T0, batch

CASE = Case(name="binding-cap-4", kind="binding-cap", trigger=2.0, query="orders", expected=("rate-limited",))
STEP = Step("rate-limited", "raise maxOffsetsPerTrigger", (Setting("maxOffsetsPerTrigger", 590),), None)
BAD, GOOD = Harm("batch", 4.3, 2.0, "s"), Harm("batch", 0.7, 2.0, "s")


def test_a_seed_gives_the_same_cases_each_time_and_every_kind_is_met_twice():
    assert remedy_cases(31) == remedy_cases(31) != remedy_cases(32)
    assert [case.kind for case in remedy_cases(31)] == [kind for kind in KINDS for _ in range(2)]


def test_every_case_has_an_interval_and_a_name_and_rules_that_are_there():
    known = {rule.slug for rule in RULES}
    for case in remedy_cases(31):
        assert case.trigger and case.query and not case.healthy
        assert set(case.expected) <= known


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([Setting("maxOffsetsPerTrigger", 590)], {"options": {"cap": 590}}),
        ([Setting("maxFilesPerTrigger", 4)], {"options": {"cap": 4}}),
        ([Setting("spark.sql.shuffle.partitions", 6)], {"options": {"shuffle": 6}}),
        ([Setting(REPARTITION, 7), Setting(CORES, 7)], {"options": {"repartition": 7}, "master": "local[7]"}),
        ([Setting(DELAY_SECONDS, 60)], {"options": {"delay": "60 seconds"}}),
        ([Setting(DELAY_SECONDS, None)], {"options": {"delay": "10 seconds"}}),
        ([Setting(TRIGGER_SECONDS, 10)], {"trigger": 10.0}),
        ([Setting(TRIGGER_SECONDS, 20)], {"trigger": 20.0, "seconds": 160.0}),
        ([Setting("spark.speculation", "true")], {"conf": {"spark.speculation": "true"}}),
    ],
)
def test_an_application_is_started_again_as_the_verdict_says(settings, expected):
    """It runs half as long again as before, so that what piled up while it started is read before it is judged."""
    assert treated(CASE, settings) == replace(CASE, **{"seconds": 90.0, **expected})


def test_a_setting_that_no_application_takes_is_refused():
    with pytest.raises(UserError, match="no application takes streaming-max-files-per-micro-batch"):
        treated(CASE, [Setting("streaming-max-files-per-micro-batch", 4)])


def test_a_cache_is_as_large_in_a_larger_heap():
    case = replace(CASE, conf={"spark.driver.memory": "600m"}, changes=((38.0, {"heap_left": 45}),))
    assert treated(case, [Setting("spark.driver.memory", "1200m")]).changes == ((38.0, {"heap_left": 645}),)
    assert treated(case, [Setting("spark.driver.memory", "1g")]).changes == ((38.0, {"heap_left": 469}),)
    assert treated(case, [Setting(CORES, 4)]).changes == case.changes


def _answer(rule, *remedies, query="orders"):
    cause = {"rule": rule, "remedies": list(remedies), "saving_seconds": 1.5}
    return json.dumps({"at": T0, "diagnosis": {"queries": [{"query": query, "root_causes": [cause]}]}})


LOOK = {"action": "time one write", "settings": []}
SET = {"action": "raise it", "settings": [{"name": "maxOffsetsPerTrigger", "value": 590}]}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([_answer("rate-limited", LOOK, SET)], Step("rate-limited", "raise it", STEP.settings, 1.5)),
        ([_answer("rate-limited", LOOK, LOOK, SET)], Step("rate-limited", "time one write", (), 1.5)),
        (
            [_answer("rate-limited", SET), _answer("slow-sink", LOOK)],
            Step("rate-limited", "raise it", STEP.settings, 1.5),
        ),
        ([_answer("slow-sink", SET)], None),
        ([_answer("rate-limited", SET, query="another")], None),
        ([json.dumps({"at": T0, "problem": "refused"})], None),
    ],
)
def test_the_newest_verdict_that_names_the_fault_says_what_to_set(tmp_path, lines, expected):
    (tmp_path / "live.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    assert advised(CASE, tmp_path) == expected


def test_a_step_is_found_again_where_it_was_saved(tmp_path):
    STEP.save(tmp_path)
    assert Step.load(tmp_path) == STEP


@pytest.mark.parametrize(
    ("step", "before", "after", "expected"),
    [
        (STEP, BAD, GOOD, "helped"),
        (STEP, BAD, BAD, "did not help"),
        (STEP, BAD, None, "look"),
        (None, BAD, None, "not named"),
        (STEP, GOOD, GOOD, "no harm"),
    ],
)
def test_what_a_step_is_counted_as(step, before, after, expected):
    assert Taken(CASE, step, before, after).kind == expected


def test_the_page_counts_only_what_could_be_set_and_shows_controls_apart():
    found = [
        Taken(CASE, STEP, BAD, GOOD),
        Taken(CASE, STEP, BAD, BAD),
        Taken(CASE, STEP, BAD, None),
        Taken(CASE, STEP, BAD, BAD, control="late-rows"),
    ]
    published = part(found)

    assert "ended the harm in 1 of 2 cases" in published.text
    assert published.row[1] == "harm ended in 1 of 2"
    assert "3.6 s" in published.drills  # saved
    assert published.drills.index("Controls") < published.drills.index("of late-rows")


def _batches(*rows_and_more):
    return [batch(number, started=T0 + 2.0 * number, **more) for number, more in enumerate(rows_and_more)]


def test_rows_that_no_batch_reads_are_harm_and_a_backlog_that_is_read_is_none():
    case = replace(CASE, control={"load": {"rate": 100.0}})
    unread = MEASURES["binding-cap"]
    assert unread(case, _batches(*[{"rows": 100}] * 6), T0, T0 + 12).value == pytest.approx(0.5)
    assert unread(case, _batches(*[{"rows": 200}] * 6), T0, T0 + 12).ended
    assert unread(case, _batches(*[{"rows": 400}] * 6), T0, T0 + 12).ended
    assert not unread(case, [], T0, T0 + 12).ended


def test_a_watermark_that_stands_is_harm_and_one_that_moves_is_none():
    still = MEASURES["idle-branch"]
    moving = _batches(*[{"watermark": T0 + number} for number in range(20)])
    standing = _batches(*[{"watermark": T0}] * 20)
    assert still(CASE, moving, T0, T0 + 40).ended
    assert still(CASE, standing, T0, T0 + 40).value == 40


def test_the_control_of_a_fault_is_the_step_of_another():
    assert all(giver != taker and {giver, taker} <= set(KINDS) for giver, taker in CONTROLS)


def test_a_kind_that_has_no_step_to_set_is_refused_with_those_that_have(capsys):
    assert main(["drill", "--remedies", "broker-down"]) == 2
    assert "binding-cap, too-many-tasks" in capsys.readouterr().err
