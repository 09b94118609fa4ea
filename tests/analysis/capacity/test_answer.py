import pytest

from ledgerops.analysis.capacity.answer import Question, answer
from ledgerops.analysis.capacity.fit import Interval, observed
from ledgerops.diagnosis.harm import Harm
from tests.analysis.capacity.conftest import exact_line, situation, stage, stages
from tests.tables import cases

NOW = Question()


SATURATED = {"fit": observed([4000] * 6, [4.0] * 6), "cap": ("maxRowsPerTrigger", 4000.0), "arrival": 1500.0}
NO_LINE = {"fit": None, "reason": "batches have nearly the same size", "shown": 1000.0}


@cases(
    "known, question, told",
    ("a query with room keeps up", {}, NOW,
     {"batch": 0.4 + 2000 / 5000, "rows": 2000, "sustainable": 8000 / 2, "headroom": 4.0,
      "behaviour": "keeps_up", "sure": True, "unknown_because": ()}),
    ("the rest drains a backlog", {"backlog": 6000.0}, NOW, {"drain": 6000 / (4000 - 1000)}),
    ("twice the load", {}, Question(load=2.0), {"batch": 0.4 + 4000 / 5000, "headroom": 2.0}),
    # t = 0.4 + 4100 t / 5000
    ("between the sustainable and the utmost rate batches outlast the trigger", {}, Question(rows=4100),
     {"batch": 0.4 / (1 - 0.82), "behaviour": "outlasts", "breach": None, "growth": None}),
    ("batches as long as half the objective break it", {"fit": exact_line(20_000), "freshness": 4.0},
     Question(rows=4100), {"breach": 0.0}),
    ("beyond the utmost rate the backlog grows and breaks the objective", {"lag": 10.0}, Question(rows=10_000),
     {"behaviour": "grows", "sure": True, "growth": 10_000 - 5000, "breach": (60 - 10) / (1 - 5000 / 10_000),
      "batch": None,
      "unknown_because": ("batch time unknown: each batch would take longer than the one before",)}),
    ("a cap bounds the batch and the rate", {"cap": ("maxOffsetsPerTrigger", 3000.0)}, Question(rows=2000),
     {"batch": 0.4 + 3000 / 5000, "sustainable": 1500, "behaviour": "grows", "growth": 500,
      "limit": ("source_limit", "maxOffsetsPerTrigger allows 3,000 rows a batch")}),
    # 100,000 rows a batch are 5.2 s: at 2 s back to back a cap costs little, at 30 s most
    ("a cap limits by the interval that is asked about",
     {"fit": observed([100_000] * 6 + [1000] * 6, [5.2] * 6 + [0.25] * 6), "arrival": 8000.0, "trigger": 0.0,
      "cap": ("maxOffsetsPerTrigger", 100_000.0)},
     Question(trigger=30.0),
     {"limit": ("source_limit", "maxOffsetsPerTrigger allows 100,000 rows a batch"), "behaviour": "grows"}),
    ("another trigger changes what the overhead costs", {}, Question(trigger=1.0),
     {"batch": 0.4 + 1000 / 5000, "sustainable": 3000}),
    ("a trigger shorter than the overhead sustains nothing", {}, Question(trigger=0.3),
     {"sustainable": 0.0, "behaviour": "outlasts"}),
    ("back to back batches may last half the objective", {"trigger": 0.0, "freshness": 4.0}, NOW,
     {"batch": 0.4 / (1 - 1000 / 5000), "sustainable": (2 - 0.4) * 5000 / 2}),
    # 8 tasks of 0.4 s on 2 cores take 1.6 s, on 8 of them 0.4 s; 32,000 rows are far beyond
    ("more cores help the tasks only", {}, Question(cores=8),
     {"batch": 0.4 + 2000 / 20_000, "sustainable": None, "at_least": 3 * 4000 / 2,
      "limit": ("fixed_overhead", "fixed cost of 0.40 s, 80% of a batch of 2,000 rows")}),
    ("fewer cores cost", {}, Question(cores=1), {"batch": 0.4 + 2000 / 2500}),
    ("the present cores change nothing", {}, Question(cores=2), {"batch": 0.4 + 2000 / 5000}),
    ("too far beyond it tells at least what the line is trusted for", {"fit": exact_line(2000)}, NOW,
     {"sustainable": None, "at_least": 3 * 2000 / 2, "behaviour": "keeps_up"}),
    ("without a line it carries what it carries now", NO_LINE, NOW,
     {"at_least": 1000.0, "behaviour": "keeps_up", "batch": None}),
    ("without a line another load is not told", NO_LINE, Question(load=1.1),
     {"behaviour": "unknown", "at_least": 1000.0, "headroom": None}),
    ("nor another trigger", NO_LINE, Question(trigger=5.0), {"at_least": None}),
    ("what is harmed now does not keep up, whatever its batches say", {"harm": Harm("overrun", 9.0, 0.0)}, NOW,
     {"behaviour": "outlasts", "sure": True, "drain": None,
      "unknown_because": ("by its batches it would keep up; `ledgerops diagnose` says why not",)}),
    ("another load is told by the batches", {"harm": Harm("overrun", 9.0, 0.0)}, Question(load=2),
     {"behaviour": "keeps_up"}),
    ("nor what carries some rows and is harmed", NO_LINE | {"harm": Harm("behind", 2.0, 0.0)}, NOW,
     {"behaviour": "falls_behind", "at_least": 1000.0}),
    ("a saturated query of one batch size is told of that size", SATURATED, NOW,
     {"behaviour": "grows", "growth": 500, "batch": 4.0}),
    ("so is one whose trigger interval is not known", SATURATED | {"trigger": None}, NOW,
     {"behaviour": "grows", "batch": 4.0}),
)  # fmt: skip
def test_what_is_told(known, question, told):
    found = {name: getattr(answer(situation(**known), question), name) for name in told}

    assert {name: each.value if isinstance(each, Interval) else each for name, each in found.items()} == {
        name: pytest.approx(each) if isinstance(each, float | int) else each for name, each in told.items()
    }


@cases(
    "known, question, reason",
    ("no line", {"fit": None, "reason": "only 3 batches have rows after the run's warm-up; 8 are needed"}, NOW,
     "capacity unknown: only 3 batches have rows after the run's warm-up; 8 are needed"),
    ("far beyond what was seen", {"fit": exact_line(2000)}, NOW,
     "sustainable rate unknown: it needs batches of 8,000 rows, 4.0 times the largest observed (2,000 "
     "rows), and estimates are limited to 3 times"),
    ("a load far beyond what was seen", {"fit": exact_line(2000)}, Question(rows=3500),
     "batch time unknown: it needs batches of 7,000 rows, 3.5 times the largest observed (2,000 rows), "
     "and estimates are limited to 3 times"),
    ("no arrival", {"arrival": None}, Question(load=2.0),
     "behaviour under load unknown: no arrival rate is known; give it with --load, in rows per second"),
    ("no trigger", {"trigger": None}, NOW,
     "sustainable rate unknown: the trigger interval is not known; give it with --trigger"),
    ("no tasks", {"stages": None}, Question(cores=4),
     "effect of other core counts unknown: tasks were recorded for too few batches"),
    ("no cores", {"stages": stages(stage([0.4] * 8), cores=None)}, Question(cores=4),
     "effect of other core counts unknown: the current number of cores is not known"),
    ("far more cores", {}, Question(cores=16),
     "effect of 16 cores unknown: estimates go up to 4 times the current 2, because the measurements do not "
     "show how more cores share memory, disk and network"),
)  # fmt: skip
def test_what_the_data_do_not_support_is_not_told(known, question, reason):
    assert reason in answer(situation(**known), question).unknown_because


def test_question_texts():
    assert [Question().text, Question(2.0).text, Question(rows=5000).text, Question(2.0, None, 5.0, 8).text] == [
        "now", "load 2x", "load 5,000/s", "load 2x, trigger 5s, 8 cores",
    ]  # fmt: skip
