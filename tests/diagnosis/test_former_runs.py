"""A query that ends by itself, started every five minutes: what its former runs say of the present one."""

from dataclasses import replace

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.facts.hang import limits
from ledgerops.diagnosis.harm import harm
from ledgerops.model.history import History
from ledgerops.model.records import Plan, Running
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch
from tests.tables import cases

MINUTE, PERIOD = 60.0, 300.0


def scheduled(seconds, rows=1000, starts=None, running=None, exception=None, trigger="available_now"):
    """One run after another, each of one batch of so many seconds, in its period or when the one before has ended; then
    one whose first batch has been running for so long. Former runs may have ended with an exception."""
    past, at = History("loads"), T0
    runs = [*seconds, *([running] if running is not None else [])]
    for number, took in enumerate(runs):
        at = max(at, T0 + (PERIOD * number if starts is None else starts[number]))
        run, newest = f"run-{number}", number == len(runs) - 1
        past.start(at, "id-1", run)
        past.plan = Plan(run, trigger=trigger)
        if newest and running is not None:
            past.set_running(Running(at + took, run, at, "Processing new data"))
            return QueryView(past, at + took)
        each = rows if isinstance(rows, int) else rows[number]
        past.add(batch(number, run_id=run, started=at, duration=took, rows=each, phases={"add_batch": took - 0.4}))
        at += took
        past.end(at, run, None if newest else exception, None)
    return QueryView(past, at)


SLOW = [*[MINUTE] * 4, 6 * MINUTE]


@cases(
    "case",
    ("one run after four", {"seconds": SLOW}),
    ("runs that have delayed the next ones already", {"seconds": [*SLOW, 7 * MINUTE, 8 * MINUTE]}),
    ("one starts each minute", {"seconds": [20.0] * 4 + [80.0], "starts": [0.0, 59.9, 120.0, 179.9, 239.8]}),
    ("a few rows more", {"seconds": SLOW, "rows": [1000] * 4 + [1500]}),
    ("an event log does not tell the trigger", {"seconds": SLOW, "trigger": None}),
)
def test_a_run_that_outlasts_the_period_of_its_scheduler_is_harm(case):
    verdict = Diagnoser()(scheduled(**case))
    assert ("trigger-overrun", "warning") in [(each.rule, each.severity) for each in verdict.findings]


def test_the_run_is_told_with_its_period_and_what_is_usual():
    [finding] = [each for each in Diagnoser()(scheduled(SLOW)).findings if each.rule == "trigger-overrun"]
    told = "the run took 6 min, and one begins every 5 min; as many rows usually take 60 s"
    assert finding.summary.startswith(told)


@cases(
    "case",
    ("it is the only run", {"seconds": [6 * MINUTE]}),
    ("two runs came before it", {"seconds": [MINUTE, MINUTE, 6 * MINUTE]}),
    ("those before it failed", {"seconds": SLOW, "exception": "boom"}),
    ("longer than usual, and within the period", {"seconds": [*[MINUTE] * 4, 4.9 * MINUTE]}),
    ("as much longer as it has more rows", {"seconds": SLOW, "rows": [1000] * 4 + [6000]}),
    ("a backfill", {"seconds": [*[MINUTE] * 4, 60 * MINUTE], "rows": [1000] * 4 + [90_000]}),
    ("the first run read all history", {"seconds": [60 * MINUTE, *[MINUTE] * 4], "rows": [90_000] + [1000] * 4}),
    ("they always take so long", {"seconds": [6 * MINUTE] * 5}),
    ("runs that leave hardly any time between them", {"seconds": [*[4 * MINUTE] * 4, 6.5 * MINUTE]}),
    ("a loop, which pauses for a moment", {"seconds": [2.0] * 8 + [3.3], "starts": [2.3 * n for n in range(9)]}),
    ("a loop, whose runs take a minute", {"seconds": [60.0] * 8 + [95.0], "starts": [70.0 * n for n in range(9)]}),
    ("a loop, which pauses for longer", {"seconds": [2.0] * 8 + [30.0], "starts": [12.0 * n for n in range(9)]}),
    ("somebody starts it now and then", {"seconds": SLOW, "starts": [0, 400, 5000, 5200, 9000]}),
    ("it is to run all the time", {"seconds": SLOW, "trigger": "processing_time"}),
)
def test_others_are_not(case):
    assert harm(scheduled(**case)) is None


@cases(
    "case, minutes",
    ("after quick runs", {"seconds": [MINUTE] * 4}, 10),
    ("after very quick ones", {"seconds": [5.0] * 4}, 5),
    ("after a pause of three periods", {"seconds": [MINUTE] * 4, "starts": [0, 300, 600, 900, 1800]}, 30),
    ("after long runs", {"seconds": [40 * MINUTE] * 4}, 160),
    ("after two runs", {"seconds": [MINUTE] * 2}, 60),
    ("after failures", {"seconds": [MINUTE] * 4, "exception": "boom"}, 60),
)
def test_former_runs_say_when_a_run_hangs(case, minutes):
    """Ten times as long as a usual run; without three of them after an hour."""
    assert limits(scheduled(**case, running=1.0)).stuck == minutes * MINUTE
    stuck = [Diagnoser()(scheduled(**case, running=(minutes + more) * MINUTE)).status for more in (-0.2, 0.2)]
    assert stuck == ["starting", "stuck"]


@cases(
    "tasks, usual, minutes",
    ("a backfill, of which each task takes long", {"tasks": 8, "tasks_done": 0, "tasks_running": 4}, 20.0, 60),
    ("after long runs", {"tasks": 8, "tasks_done": 0, "tasks_running": 4}, 40 * MINUTE, 160),
    ("no task runs", {"tasks": 8, "tasks_done": 8, "tasks_running": 0}, 20.0, 5),
    ("no job runs", {"tasks": 0, "tasks_done": 0, "tasks_running": 0}, 20.0, 5),
)
def test_a_run_whose_tasks_compute_may_last_longer_than_its_former_ones(tasks, usual, minutes):
    stuck = []
    for more in (-0.2, 0.2):
        view = scheduled([usual] * 4, running=(minutes + more) * MINUTE)
        seen = replace(view.history.running, jobs=1, **tasks)
        for at in (seen.since, seen.at):  # nothing ended between these looks
            view.history.set_running(replace(seen, at=at))
        stuck.append(Diagnoser()(QueryView(view.history, view.now)).status)
    assert stuck == ["starting", "stuck"]
