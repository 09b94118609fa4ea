import re
from dataclasses import replace

from ledgerops.diagnosis import report
from ledgerops.model.finding import Component, Evidence, Finding, Forecast, Remedy, RuledOut, Verdict
from tests.tables import cases

NOW = 1_790_000_000.0
SKEW = Finding(
    "one of 2 tasks of stage 7 reads 90% of the records",
    Component("stage", "shuffle by customer_id", "customer_id"),
    (
        Evidence("largest_task_share", 0.9012345678, "ratio", "< 0.75", NOW),
        Evidence("largest_task_records", 48_120, "rows", "even", NOW),
    ),
    (Remedy("salt the key", "only splitting the key spreads its rows", "echo salt", safe=False), Remedy("b", "c")),
    confidence=0.934,
    rule="key-skew",
    severity="critical",
    since=NOW - 60,
    explains=("falling-behind",),
    ruled_out=(RuledOut("slow-sink", "no task runs in 0.1 s of a batch of 4.0 s (2%)"),),
)
SICK = Verdict(
    "daily_counts", NOW, "falling_behind", 41, (SKEW,), (SKEW,), Forecast(None, 120.0), {"lag_seconds": 12.0}
)
WELL = Verdict(
    "large\x1bcredits",
    NOW,
    "healthy",
    100,
    figures={"input_rows_per_second": 980.0, "batch_seconds": 1.2, "trigger_interval_seconds": 2.0},
)
BOTH = report.document([WELL, SICK], NOW, "a recording")


def test_a_cause_is_told_in_short_lines_and_a_healthy_query_in_one():

    assert report.text(BOTH) == (
        "daily_counts             falling behind  health  41  lag 12 s, objective missed in 2 min\n"
        "  critical key-skew  daily_counts, the shuffle by customer_id\n"
        "    one of 2 tasks of stage 7 reads 90% of the records\n"
        "    do first:  salt the key [risky]\n"
        "    command:   echo salt\n"
        "    why:       largest task share 0.90 (expected below 0.75)\n"
        "    since:     14:12:20 UTC (60 s); confidence high\n"
        "    ruled out: slow-sink\n"
        "    runbook:   ledgerops rules key-skew\n\n"
        "large?credits            healthy         health 100  980 rows/s in, batch 1.2 s, trigger 2.0 s\n"
        "\n"
        "2 queries at 2026-09-21 14:13:20 UTC: 1 with findings: daily_counts (key-skew)\n"
    )


def test_beside_a_step_that_only_prevents_a_loss_the_step_that_removes_the_cause_is_shown():
    keep = Remedy("raise retention.ms now", "rows will be deleted in 4 s", prevents="retention-risk")
    risky = replace(SKEW, remedies=(keep, *SKEW.remedies))
    text = report.text(report.document([replace(SICK, root_causes=(risky,))], NOW, "a recording"))
    assert "    do first:  raise retention.ms now\n    then:      salt the key [risky]\n    why:" in text


def incident(severity, ended, rule="slow-sink"):
    told = report.finding_document(replace(SKEW, rule=rule, severity=severity))
    return told | {"query": "q", "until": told["since"], "seconds": 60.0, "ended": ended}


def after(*incidents):
    return report.document([replace(WELL, query="q")], NOW, "a recording") | {"incidents": list(incidents)}


def test_what_did_no_harm_and_is_over_is_one_line_that_v_explains():
    found = after(incident("info", "by itself"), incident("info", "by itself", "long-batches"))
    text = report.text(found)

    assert text.splitlines()[1] == "harmless, and over by itself: slow-sink (q), long-batches (q) (-v tells more)"
    assert "do first" not in text and text.endswith(": nothing found\n")
    assert report.text(found, verbose=True).count("do first") == 2


def test_what_did_no_harm_is_not_told_of_a_query_that_was_harmed():
    found = after(incident("critical", "with the run"), incident("info", "by itself", "long-batches"))
    assert "harmless" not in report.text(found) and "long-batches" in report.text(found, verbose=True)

    found["incidents"][0] |= {"query": "harmed"}
    found["queries"].append(found["queries"][0] | {"query": "harmed"})
    assert "harmless, and over by itself: long-batches (q)" in report.text(found)


def test_other_incidents_are_told_in_full():
    text = report.text(after(incident("info", "with the run"), incident("warning", "by itself")))
    assert text.count("do first") == 2 and "harmless" not in text


def test_all_of_it_is_shown_where_it_is_asked_for():
    text = report.text(report.document([SICK], NOW, "a recording"), verbose=True)

    assert (
        "    do first:  salt the key (only splitting the key spreads its rows) [risky]\n"
        "    command:   echo salt\n"
        "    then:      b (c)\n"
        "    evidence:  largest_task_share 0.90 (expected < 0.75); largest_task_records 48k rows (expected even)\n"
        "    since:     14:12:20 UTC (60 s); 93% sure\n"
        "    explains:  falling-behind\n"
        "    ruled out: slow-sink: no task runs in 0.1 s of a batch of 4.0 s (2%)\n"
    ) in text


def test_what_began_on_another_day_has_its_date():
    document = report.document([replace(SICK, root_causes=(replace(SKEW, since=NOW - 86_400),))], NOW, "a recording")
    assert "since:     2026-09-20 14:13:20 UTC (24 h); confidence high" in report.text(document)


def test_colour_is_only_paint():
    painted = report.text(BOTH, colour=True)
    assert "\x1b[1;31m" in painted
    bare = "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", painted).splitlines()) + "\n"
    assert bare == report.text(BOTH)


def test_lines_are_broken_between_words_at_the_width_of_a_terminal():
    whole, broken = report.text(BOTH), report.text(BOTH, columns=80)
    one_word = report.document([Verdict("q" * 60, NOW, "healthy", 100)], NOW, "a recording")

    assert max(map(len, broken.splitlines())) <= 80 < max(map(len, whole.splitlines()))
    assert broken.split() == whole.split()
    assert "largest_task_records\n" + " " * 15 + "48k rows" in report.text(BOTH, columns=80, verbose=True)
    assert report.text(BOTH, columns=200) == whole
    assert "q" * 60 in report.text(one_word, columns=40)


@cases("verdict, severity", ("a sick query", SICK, "critical"), ("a query that is well", WELL, None))
def test_the_worst_severity_decides(verdict, severity):
    assert report.worst(report.document([verdict], NOW, "x")) == severity


def test_findings_below_the_wanted_severity_are_left_out():
    mild = Verdict("a", NOW, "healthy", 98, root_causes=(replace(SKEW, severity="info"),))
    text = report.text(report.document([mild], NOW, "x"), lowest="warning")
    assert "key-skew" not in text and text.endswith("1 query at 2026-09-21 14:13:20 UTC: nothing found\n")


GIVE = "add --trigger 2s, for example"
NOT_RECORDED = f"trigger interval not recorded (1 query): {GIVE}, to judge batches by it"
ONLY_INFO = f"    severity:  info, because the trigger interval is not known: {GIVE}"
MILD, LONG = replace(SKEW, severity="info"), replace(SICK, figures={"batch_seconds": 14.0})


@cases(
    "query, known, line, said",
    ("a query", WELL, False, NOT_RECORDED, True),
    ("it is known", WELL, True, NOT_RECORDED, False),
    ("no batch yet", replace(WELL, figures={}), False, NOT_RECORDED, False),
    ("it has failed", replace(WELL, status="failed"), False, NOT_RECORDED, False),
    ("it would be worse if the batch were late", replace(LONG, root_causes=(MILD,)), False, ONLY_INFO, True),
    ("no harm", replace(LONG, root_causes=(MILD,)), True, ONLY_INFO, False),
    ("harm without it", LONG, False, ONLY_INFO, False),
)
def test_an_unknown_trigger_interval_is_said_with_how_to_give_it(query, known, line, said):
    document = report.document([query], NOW, "an event log")
    document["queries"][0]["trigger_known"] = known
    assert (line in report.text(document).splitlines()) is said


def test_unknown_trigger_intervals_are_said_once_for_all_queries():
    document = report.document([replace(WELL, query=name) for name in "abc"], NOW, "an event log")
    for query in document["queries"]:
        query["trigger_known"] = query["query"] == "b"
    said = [line for line in report.text(document).splitlines() if "--trigger" in line]
    assert said == [NOT_RECORDED.replace("1 query", "2 queries")]


def test_a_query_of_which_nothing_can_be_found_is_not_said_to_be_well():
    document = report.document([WELL, replace(WELL, query="b")], NOW, "a recording")
    document["queries"][1]["judged"] = False
    lines = report.text(document).splitlines()
    assert [line.endswith(report.UNJUDGED) for line in lines[:2]] == [False, True]
    assert lines[-1] == "2 queries (1 not judged) at 2026-09-21 14:13:20 UTC: nothing found"


def test_what_is_muted_is_a_line_and_no_finding():
    muted = replace(WELL, muted=(replace(SKEW, summary="one\x1b task"),))
    document = report.document([muted], NOW, "a recording")

    assert [each["rule"] for each in document["queries"][0]["muted"]] == ["key-skew"]
    assert report.text(document).splitlines()[1:] == [
        "  muted key-skew: one? task",
        "",
        "1 query at 2026-09-21 14:13:20 UTC: nothing found",
    ]
    assert report.worst(document) is None
