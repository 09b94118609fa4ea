"""The finding_history of an incident, from verdicts as the engine gives them."""

from dataclasses import replace

import pytest

from ledgerops.analysis.finding_history import Change, FindingHistory, settled
from ledgerops.analysis.session import Investigation
from ledgerops.analysis.timeline import events, incidents, timeline
from ledgerops.diagnosis.report import relative, timeline_lines
from ledgerops.model.finding import Component, Evidence, Finding, Verdict
from ledgerops.model.history import History
from ledgerops.model.spark_progress import format_instant
from tests.build import T0
from tests.paths import RECORDED
from tests.tables import cases

RANK = {
    "slow-sink": "warning", "falling-behind": "critical", "key-skew": "warning", "catching-up": "info",
    "query-stuck": "critical", "source-unreachable": "critical", "slow-source": "warning",
}  # fmt: skip


def found(rule, since, explains=(), severity=None, name="daily_counts", share=None):
    return Finding(
        f"{rule} it is", Component("query", name), (Evidence("x", 1.0, "count", "0", T0 + since),), rule=rule,
        severity=severity or RANK[rule], since=T0 + since, explains=explains, share=share,
    )  # fmt: skip


def look(history, finding_history, at, roots=(), symptoms=(), status="healthy"):
    verdict = Verdict(history.query, T0 + at, status, 50, tuple(roots), (*roots, *symptoms))
    finding_history.setdefault(history.query, FindingHistory(history.query)).take(verdict, history)


def started():
    """A query whose first run began, and its findings so far."""
    history = History("daily_counts")
    history.start(T0, "id", "run-1")
    return history, {}


def tell(*looks):
    """A finding_history of looks: (seconds, root causes, symptoms, status)."""
    history, finding_history = started()
    for each in looks:
        look(history, finding_history, *each)
    return finding_history


def lines(finding_history, **options):
    return [line for line, _ in timeline_lines(timeline(finding_history, **options))]


SINK, LATE = found("slow-sink", 60, ("falling-behind",)), found("falling-behind", 72)


@cases(
    "restarted, over, until, with_run",
    ("it lingers into a run after a driver that was killed", 130, 140, 130, True),
    ("long after a restart", 30, 140, 140, False),
    ("the run that ended it began two minutes before", 80, 200, 200, False),
    ("the run goes on", None, 140, 140, False),
)
def test_a_finding_that_goes_with_the_next_run_did_not_end_by_itself(restarted, over, until, with_run):
    history, finding_history = started()
    look(history, finding_history, 66, [SINK], (), "pressured")
    if restarted is not None:
        history.start(T0 + restarted, "id", "run-2")
    look(history, finding_history, over)
    [period] = finding_history["daily_counts"].periods

    assert (period.until, period.with_run) == (T0 + until, with_run)


def test_a_finding_that_is_gone_once_the_clock_was_set_back_lasted_no_time():
    finding_history = tell((66, [SINK], [], "pressured"), (-3500, [], [], "healthy"))

    [period] = finding_history["daily_counts"].periods
    assert period.until == period.began


def test_a_run_that_turns_out_to_be_of_another_session_was_no_restart():
    history, finding_history = started()
    look(history, finding_history, 66)
    mistaken = history.copy()
    mistaken.start(T0 + 70, "id", "run-of-another")
    look(mistaken, finding_history, 75)
    look(history, finding_history, 80)

    assert [run.run_id for run in finding_history["daily_counts"].runs] == ["run-1"]
    assert finding_history["daily_counts"].unrecorded_ends == []


def test_a_finding_that_comes_back_after_a_restart_goes_on():
    history, finding_history = started()
    look(history, finding_history, 66, [SINK], (), "pressured")
    history.start(T0 + 70, "id", "run-2")
    look(history, finding_history, 75)
    look(history, finding_history, 90, [SINK], (), "pressured")
    [period] = finding_history["daily_counts"].periods
    assert (period.until, period.with_run, period.times) == (None, False, 2)


def test_a_finding_that_comes_back_in_other_words_is_the_same():
    steady, odd = (
        replace(SINK, component=Component("query", "daily_counts", detail)) for detail in ("periodic", "irregular")
    )
    finding_history = tell(
        (66, [steady], [], "pressured"), (80, [], [], "healthy"), (90, [replace(odd, since=T0 + 85)], [], "pressured")
    )

    assert [each.times for each in finding_history["daily_counts"].periods] == [2]


def test_the_story_tells_what_began_what_explains_it_and_what_ended():
    finding_history = tell(
        (5, [], [], "healthy"),
        (66, [SINK], [], "pressured"),
        (72, [SINK], [LATE], "falling_behind"),
        (120, [SINK], [LATE], "falling_behind"),
        (140, [SINK], [], "catching_up"),
        (160, [], [], "healthy"),
    )

    assert lines(finding_history) == [
        "incident at 2027-01-15 08:01:00 UTC, until 08:02:40, 1 query",
        "  08:00:00     -1:00  daily_counts  started",
        "  08:01:00     +0:00  daily_counts  warning slow-sink began, detected 6.0 s later: slow-sink it is",
        "  08:01:06     +0:06  daily_counts  status changed to pressured",
        "  08:01:12     +0:12  daily_counts  critical falling-behind began, explained by slow-sink: "
        "falling-behind it is",
        "  08:01:12     +0:12  daily_counts  status changed to falling behind",
        "  08:02:20     +1:20  daily_counts  falling-behind ended after 68 s",
        "  08:02:20     +1:20  daily_counts  status changed to catching up",
        "  08:02:40     +1:40  daily_counts  slow-sink ended after 1 min 40 s",
        "  08:02:40     +1:40  daily_counts  status changed to healthy",
    ]


def test_a_finding_that_comes_and_goes_is_one_trouble():
    looks = []
    for number in range(5):
        looks += [(60 + 30 * number, [found("slow-sink", 60 + 30 * number)], [], "pressured")]
        looks += [(72 + 30 * number, [], [], "healthy")]
    told = events(tell(*looks))

    assert [each.text for each in told if each.rule] == [
        "warning slow-sink began: slow-sink it is",
        "slow-sink ended after 2 min 12 s (5 times)",
    ]


def test_the_same_finding_after_a_long_quiet_is_a_second_incident():
    first, second = found("slow-sink", 60), found("slow-sink", 1000)
    finding_history = tell(
        (60, [first], [], "pressured"),
        (90, [], [], "healthy"),
        (1000, [second], [], "pressured"),
        (1030, [], [], "healthy"),
    )

    assert [(each.began - T0, each.ended - T0) for each in incidents(finding_history)] == [(60, 90), (1000, 1030)]
    assert lines(finding_history)[-4:] == [
        "  08:16:40     +0:00  daily_counts  warning slow-sink began: slow-sink it is",
        "  08:16:40     +0:00  daily_counts  status changed to pressured",
        "  08:17:10     +0:30  daily_counts  slow-sink ended after 30 s",
        "  08:17:10     +0:30  daily_counts  status changed to healthy",
    ]


def test_another_part_of_the_query_is_another_finding():
    finding_history = tell((60, [found("key-skew", 60, name="a"), found("key-skew", 60, name="b")], [], "pressured"))
    assert len([each for each in events(finding_history) if each.rule]) == 2


def test_a_change_of_the_root_cause_is_told_and_its_flapping_is_not():
    sink, skew = found("slow-sink", 10), found("key-skew", 40)
    steady = tell(
        (10, [sink], [], "pressured"), (40, [skew, sink], [], "pressured"), (80, [skew, sink], [], "pressured")
    )
    flapping = tell(
        (10, [sink], [], "pressured"), (40, [skew, sink], [], "pressured"), (45, [sink, skew], [], "pressured")
    )

    assert [each.text for each in events(steady) if each.what == "root"] == [
        "root cause changed from slow-sink to key-skew"
    ]
    assert [each.text for each in events(flapping) if each.what == "root"] == []


@cases(
    "ended, told",
    ("it failed", 30, [(30, "failed: BOOM"), (40, "restarted, run 2")]),
    ("it was killed", None, [(40, "restarted, run 2"), (40, "nothing was recorded of how the run before ended")]),
)
def test_a_restart_and_why_the_run_before_it_ended_are_told(ended, told):
    history, finding_history = started()
    look(history, finding_history, 5)
    if ended is not None:
        history.end(T0 + ended, "run-1", "java.lang.Boom: x", "BOOM")
        look(history, finding_history, ended, status="failed")
    history.start(T0 + 40, "id", "run-2")
    look(history, finding_history, 50)

    assert [(each.at - T0, each.text) for each in events(finding_history)] == [(0, "started"), *told]


def test_of_a_crash_loop_the_first_and_last_failures_are_told_and_how_many_there_were():
    history, finding_history = History("daily_counts"), {}
    for number in range(40):
        history.start(T0 + 10 * number, "id", f"run-{number}")
        look(history, finding_history, 10 * number + 1, status="starting")
        history.end(T0 + 10 * number + 8, f"run-{number}", "Boom", "BOOM")
        look(history, finding_history, 10 * number + 8, status="failed")

    assert [(each.at - T0, each.text) for each in events(finding_history)] == [
        (0, "started"),
        (8, "failed: BOOM"),
        (10, "restarted, run 2"),
        (18, "failed: BOOM"),
        (20, "restarted, run 3"),
        (28, "failed 37 more times within 6 min"),
        (390, "restarted, run 40"),
        (398, "failed: BOOM"),
    ]


def test_two_restarts_a_day_are_told_one_by_one():
    history, finding_history = History("daily_counts"), {}
    for number in range(6):
        history.start(T0 + 4000 * number, "id", f"run-{number}")
        look(history, finding_history, 4000 * number + 1)
        history.end(T0 + 4000 * number + 3000, f"run-{number}", None, None)
    assert len([each for each in events(finding_history) if each.what == "restart"]) == 5


def test_what_ends_with_its_run_is_over_but_not_told_to_have_ended():
    history, finding_history = started()
    look(history, finding_history, 10, [found("slow-sink", 10)], (), "pressured")
    history.end(T0 + 30, "run-1", None, None)
    look(history, finding_history, 40, [found("slow-sink", 10)], (), "stopped")
    look(history, finding_history, 400, status="stopped")

    assert [each.text for each in events(finding_history)][-1] == "stopped"
    assert [each.ended - T0 for each in incidents(finding_history)] == [30]


@cases(
    "changes",
    ("one", [(0, "healthy")]),
    ("taken back at once", [(0, "healthy"), (100, "pressured"), (104, "healthy")]),
    ("all of them calm", [(0, "starting"), (4, "healthy"), (90, "idle"), (200, "healthy")]),
)
def test_a_status_that_says_nothing_new_is_not_told(changes):
    assert len(settled([Change(*each) for each in changes], alike=("healthy", "idle", "starting"))) == 1


def test_information_alone_is_no_incident():
    finding_history = tell((10, [found("catching-up", 10)], [], "catching_up"))
    assert incidents(finding_history) == [] and lines(finding_history)[0] == "2027-01-15 UTC"


def test_what_was_over_before_a_moment_is_left_out():
    finding_history = tell(
        (60, [SINK], [], "pressured"), (90, [], [], "healthy"), (400, [found("key-skew", 400)], [], "pressured")
    )
    told = timeline(finding_history, since=T0 + 300)

    assert [each["rule"] for each in told["events"] if each["what"] == "begin"] == ["key-skew"]
    assert [each["began"] for each in told["incidents"]] == ["2027-01-15T08:06:40.000Z"]


def test_an_event_in_json_carries_both_times():
    [_, told, *_] = timeline(tell((66, [SINK], [LATE], "pressured")))["events"]

    assert told == {
        "at": "2027-01-15T08:01:00.000Z", "seconds": 0.0, "incident": 0, "query": "daily_counts", "what": "begin",
        "rule": "slow-sink", "severity": "warning", "explained_by": [],
        "text": "warning slow-sink began, detected 6.0 s later: slow-sink it is",
    }  # fmt: skip


@pytest.mark.parametrize(("seconds", "said"), [(0, "+0:00"), (-13, "-0:13"), (3609.4, "+1:00:09"), (-0.2, "+0:00")])
def test_times_are_told_from_the_beginning(seconds, said):
    assert relative(seconds) == said


def test_a_run_that_vanished_is_told_as_such_and_not_as_stopped():
    history, finding_history = started()
    look(history, finding_history, 5)
    history.end(T0 + 60, "run-1", None, None, lost=True)
    look(history, finding_history, 80, [found("query-failed", 60, severity="critical")], (), "lost")

    assert any("vanished without a report of its end" in line for line in lines(finding_history))
    assert not any("stopped" in line for line in lines(finding_history))


@pytest.mark.parametrize("drill", ["broker-down", "masked-sink"])
def test_the_incidents_are_the_same_with_and_without_a_timeline(drill):
    place = str(RECORDED / "drills" / drill / "recording")
    told = Investigation(place, with_timeline=True).diagnose()["incidents"]
    assert told == Investigation(place).diagnose()["incidents"] != []


HANG, TOOK = found("query-stuck", 60), found("slow-sink", 60, share=0.98)
SKEWED = [(at, [found("key-skew", 60, ("slow-sink",))], [TOOK]) for at in (125, 130)]


@cases(
    "looks, causes",
    ("what took the time of a batch that hung is known after its end", [(90, [HANG]), (120, [TOOK])], ("slow-sink",)),
    ("it took little of it", [(90, [HANG]), (120, [found("slow-sink", 60, share=0.2)])], ()),
    ("it began in a later batch", [(90, [HANG]), (120, [found("slow-sink", 100, share=0.98)])], ()),
    ("it was known before the batch hung", [(70, [TOOK]), (90, [TOOK, HANG]), (120, [TOOK])], ()),
    ("another explained that then", [(90, [HANG]), (120, [TOOK]), *SKEWED], ()),
    ("it is no harm", [(90, [HANG]), (120, [found("slow-sink", 60, severity="info", share=0.98)])], ()),
    ("a symptom takes no time", [(90, [HANG]), (120, [found("falling-behind", 60, share=0.98)])], ()),
)
def test_a_batch_that_hung_is_explained_by_what_took_its_time(looks, causes):
    history = tell(*looks, (150, ()))["daily_counts"]
    [hang] = [each for each in history.periods if each.finding.rule == "query-stuck"]
    assert history.causes(hang) == causes


@cases(
    "until, causes",
    ("it held for most of the time", 100, ("source-unreachable",)),
    ("it was over long before", 70, ()),
)
def test_a_cause_that_was_over_explains_what_began_with_it(until, causes):
    away, slow = found("source-unreachable", 60), found("slow-source", 60, share=0.6)
    history = tell((65, [away]), (until, [slow]), (120, [slow]), (125, ()))["daily_counts"]
    [period] = [each for each in history.periods if each.finding.rule == "slow-source"]
    assert history.causes(period) == causes


@pytest.mark.parametrize(
    ("drill", "rule", "explained"),
    [
        ("hung-sink", "slow-sink", "query-stuck"),
        ("hung-worker", "slow-source", "query-stuck"),
        ("broker-down", "source-unreachable", "slow-source"),
    ],
)
def test_after_the_fact_one_trouble_is_one_incident(drill, rule, explained):
    document = Investigation(str(RECORDED / "drills" / drill / "recording"), with_timeline=True).diagnose()
    [incident] = [each for each in document["incidents"] if each["severity"] != "info"]
    assert (incident["rule"], incident["severity"]) == (rule, "critical") and explained in incident["explains"]
    begun = {each["rule"]: each for each in document["timeline"]["events"] if each["what"] == "begin"}
    assert begun[explained]["explained_by"] == [rule] and begun[rule]["explained_by"] == []


@pytest.mark.parametrize("drill", ["sink-and-whale", "broker-and-late"])
def test_two_troubles_are_two_incidents(drill):
    found = Investigation(str(RECORDED / "drills" / drill / "recording")).diagnose()["incidents"]
    assert len([each for each in found if each["severity"] != "info"]) == 2


def test_the_day_is_said_where_an_incident_goes_on_to_the_next():
    told = lines(tell((90, (SINK,), (LATE,)), (86_400, (SINK,), (LATE,)), (86_420, (), ())))
    day = format_instant(T0 + 86_400)[:10]
    assert f"until {day} " in told[0] and f"{day} UTC" in told
