"""Drills drawn by seed: reproducible, from plain applications, with a truth that is read from the workload alone."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import ledgerops.drills as drills
from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.benchmark.export import CARD
from ledgerops.drills.drawn.draw import cases
from ledgerops.drills.drawn.faults import FAULTS
from ledgerops.drills.drawn.healthy import HEALTHY
from ledgerops.drills.harness import batches
from ledgerops.drills.harness.case import Case
from ledgerops.drills.scoring import drawn_page, sections
from ledgerops.drills.scoring.drawn import CaseResult, DiagnosisAt, Judgement, judge_answers, replayed
from tests import tables
from tests.drills.checkpoints import T0, checkpoint
from tests.paths import RECORDED

APPLICATIONS = Path(drills.__file__).parent / "applications"
SEEDS = range(1, 9)


def test_a_seed_gives_the_same_cases_each_time():
    assert cases(3) == cases(3)
    assert cases(3) != cases(4)
    assert cases(3, count=4) == cases(3, count=4)


def test_four_seeds_in_a_row_meet_every_fault_and_twenty_healthy_runs():
    for seeds in (range(1, 5), range(5, 9)):
        drawn = [case for seed in seeds for case in cases(seed)]
        assert {case.kind for case in drawn if not case.healthy} == set(FAULTS)
        assert len({case.kind for case in drawn if case.healthy}) == len(HEALTHY) >= 20


def test_every_case_names_known_rules_and_an_application_that_is_there():
    known = {rule.slug for rule in RULES} | {"executor-lost"}
    for case in (case for seed in SEEDS for case in cases(seed)):
        assert set(case.expected) | set(case.may) <= known
        assert bool(case.expected) is not case.healthy
        assert (APPLICATIONS / f"{case.app}.py").is_file()
        assert 30 <= case.seconds <= 150


def test_every_fault_has_a_place_that_the_data_card_explains_and_no_healthy_run_has_one():
    card = CARD.read_text("utf-8")
    [kinds] = re.findall(r"`component`: ([^;]+);", card)
    for case in (case for seed in SEEDS for case in cases(seed)):
        assert bool(case.place) is not case.healthy, case.kind
        if case.place:
            component, *named = case.place
            assert component in re.findall(r"\w+", kinds) and all(named) and len(named) <= 2
            assert component != "source" or named[0] in ("input", "second", case.source, case.app)
            assert component != "query" or named[0] != case.blamed


def test_a_case_is_read_back_as_it_was_written(tmp_path):
    for case in cases(1):
        case.save(tmp_path)
        assert Case.load(tmp_path) == case


@pytest.mark.parametrize("file", sorted(APPLICATIONS.glob("*.py")), ids=lambda file: file.stem)
def test_an_application_knows_nothing_of_the_observer(file):
    imported = re.findall(r"^\s*(?:from|import) (ledgerops\S*)", file.read_text("utf-8"), re.MULTILINE)

    # a job of the ledger is the workload, not the observer
    assert [name for name in imported if not name.startswith("ledgerops.ledger.")] == []


@tables.cases(
    "planned, trigger, what, level",
    ("each batch at its interval", range(0, 60, 2), 2.0, None, None),
    ("each batch a second too long", range(0, 60, 3), 2.0, "outlasts its trigger", "warning"),
    ("one long batch", [0, 2, 4, 6, 9, 10, 12, 14, *range(16, 60, 2)], 2.0, None, None),
    ("nothing after a few batches", [0, 2, 4, 6], 2.0, "makes no progress", "warning"),
    ("short batches back to back", [0.3 * each for each in range(200)], None, None, None),
    ("long ones back to back", [3.0 * each for each in range(20)], None, "costly batches", "info"),
    ("ever longer ones", [0, 1, 2, 4, 7, 12, 20, 33, 55], None, "cannot keep up", "warning"),
)
def test_the_harm_is_read_from_the_checkpoint(tmp_path, planned, trigger, what, level):
    found = batches.slow(checkpoint(tmp_path, planned, done=planned), trigger, T0, T0 + 60)
    assert (found.what, found.level) == (what, level) if what else found is None


def test_a_fault_without_effect_has_no_harm(tmp_path):
    case = Case(name="x", kind="failing", harm="failure", onset="birth", expected=("query-failed",))

    assert batches.harm(case, tmp_path, T0, T0 + 60) is None
    (tmp_path / "failures.jsonl").write_text(f'{{"at": {T0 + 5}, "error": "x"}}\n')
    assert batches.harm(case, tmp_path, T0, T0 + 60).at == T0 + 5


def test_a_query_that_failed_before_the_clock_of_its_drill_began_has_failed(tmp_path):
    (tmp_path / "failures.jsonl").write_text(f'{{"at": {T0 - 5}, "error": "x"}}\n')
    born, later = (
        Case(name="x", kind="failing", harm="failure", onset=onset, expected=("query-failed",))
        for onset in ("birth", "later")
    )

    assert batches.harm(born, tmp_path, T0, T0 + 60).at == T0 - 5
    assert batches.harm(later, tmp_path, T0, T0 + 60) is None


FAULT = Case(name="x", kind="slow-sink", onset="later", onset_seconds=20.0, expected=("slow-sink",))
HARM = batches.Harm(T0 + 24, "outlasts its trigger", "warning")


def answers(rules, since=30, until=60, severity="warning"):
    said = tuple((rule, severity) for rule in rules)
    return [
        DiagnosisAt(T0 + at, "q", said if since <= at < until else (), said if since <= at < until else ())
        for at in range(60)
    ]


@tables.cases(
    "given, judged",
    ("second", answers(["key-skew", "slow-sink"]), Judgement(6.0, False, "key-skew", ())),
    ("nothing", answers([]), Judgement(None, False, "", ())),
    ("only at info", answers(["slow-sink"], severity="info"), Judgement(None, False, "slow-sink", ())),
    ("before the fault", answers(["slow-sink"], since=10), Judgement(0.0, True, "slow-sink", ("slow-sink",))),
)
def test_an_answer_is_judged_by_the_truth(given, judged):
    assert judge_answers(FAULT, HARM, T0 + 20, given, others=0.0) == judged


def test_costly_batches_may_be_named_at_info():
    harm = HARM._replace(what="costly batches", level="info")
    assert judge_answers(FAULT, harm, T0 + 20, answers(["slow-sink"], severity="info"), others=0.0).cause_first


@pytest.mark.parametrize(("others", "alarms"), [(0.0, ("cpu-saturated",)), (0.6, ())])
def test_a_busy_machine_may_be_named_where_others_use_it(others, alarms):
    healthy = Case(name="x", kind="bursts", healthy=True)
    assert judge_answers(healthy, None, T0, answers(["cpu-saturated"]), others).alarms == alarms


def test_of_answers_at_one_instant_only_the_last_counts():
    """A log ends with what went wrong; what was known one record before it, at the same instant, is no answer."""
    given = list(replayed(RECORDED / "skewed-app"))

    assert len({(answer.at, answer.query) for answer in given}) == len(given)
    assert given[-1].roots[0][0] == "key-skew"


def drawn(*seeds: int) -> sections.Part:
    way = {name: Judgement(6.0, True, "slow-sink", ()) for name in ("live", "recording", "event log")}
    case = Case(name="1-x", kind="slow-sink", onset="later", strength="just")
    return drawn_page.part([CaseResult(replace(case, seed=seed), HARM, "", way) for seed in seeds])


UNSEEN = drawn_page.SEEN[-1] + 1
OTHERS = "| [by others](others.md) | 1 of 1 | 2 of 2 | most |\n"


def test_seeds_that_the_rules_have_seen_are_a_sample_of_their_own_and_count_not_in_the_summary(tmp_path):
    page = tmp_path / "diagnosis.md"
    page.write_text(f"| [drawn by seed]({drawn_page.ANCHOR}) | | | |\n")

    sections.publish(page, drawn(1, UNSEEN))
    text, drills = page.read_text(), (tmp_path / "diagnosis-drills.md").read_text()

    assert "of 1: live 1, recording 1, event log 1" in text
    assert text.count("| all faults          | live") == 2
    assert text.index("### Seeds never seen") < text.index(f"Seeds run: {UNSEEN}.") < text.index("### Seeds seen")
    assert f"{UNSEEN}-1-x" not in text
    assert drills.index(f"| {UNSEEN}-1-x") < drills.index("### Seeds seen") < drills.index("| 1-1-x")


def test_a_part_takes_its_place_and_its_row_and_leaves_what_was_written_by_hand(tmp_path):
    page = tmp_path / "page.md"
    summary = f"{OTHERS}| [steps](#steps) | | | |\n"
    page.write_text(f"# How often\n\n{summary}\n## Steps\n\nby hand\n\n<!-- steps -->\n<!-- end of steps -->\n\nmore\n")
    for number in (1, 2):
        row = ("[steps](#steps)", f"{number} of 2", "", "helps")
        sections.publish(page, sections.Part("steps", f"{number} steps\n", row, "rows\n"))

    assert page.read_text() == (
        f"# How often\n\n{OTHERS}| [steps](#steps) | 2 of 2 |  | helps |\n\n## Steps\n\nby hand\n\n"
        "<!-- steps -->\n\n2 steps\n\n<!-- end of steps -->\n\nmore\n"
    )
