"""The cause graph, what lingers, and what a verdict sums up, with rules made for the case."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ledgerops.diagnosis.engine import AFTERMATH_SECONDS, ATTRIBUTION_SECONDS, Diagnoser
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import History
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import stage
from tests.tables import cases

NOW = 1_790_000_000.0


def rule(
    slug, active, explains=(), severity="warning", confidence=0.5, because=None, linger=0.0, outlives=False, share=None
):
    """A rule that finds something while `active` (a list with one flag) says so."""

    def check(view: QueryView) -> Iterator[Finding]:
        if active[0]:
            evidence = (Evidence("x", 1.0, "count", "0", view.now),)
            where = Component("query", view.query)
            yield Finding(f"{slug} it is", where, evidence, confidence=confidence, share=share)

    ruled_out = None if because is None else lambda view: because
    return Rule(slug, severity, check, "Meaning", explains, ruled_out, linger, outlives)


@pytest.mark.parametrize(
    ("of_rule", "at_most", "expected"),
    [
        ("critical", "critical", "critical"),
        ("critical", "warning", "warning"),
        ("critical", "info", "info"),
        ("warning", "critical", "warning"),
        ("info", "warning", "info"),
    ],
)
def test_a_finding_lowers_the_severity_of_its_rule_and_never_raises_it(of_rule, at_most, expected):
    def check(seen: QueryView) -> Iterator[Finding]:
        evidence = (Evidence("x", 1.0, "count", "0", seen.now),)
        yield Finding("it is", Component("query", seen.query), evidence, at_most=at_most)

    [finding] = Diagnoser((Rule("slow-sink", of_rule, check, "Meaning"),))(view()).findings
    assert finding.severity == expected


def view(at: float = NOW, ended: float | None = None) -> QueryView:
    past = History("daily_counts")
    past.start(NOW - 100, "id", "run")
    if ended is not None:
        past.end(ended, "run", None, None)
    return QueryView(past, at)


YES, NO = [True], [False]


def test_what_nothing_explains_is_a_root_cause_as_severe_as_what_it_explains():
    rules = (
        rule("falling-behind", YES, severity="critical"),
        rule("trigger-overrun", YES, ("falling-behind",)),
        rule("key-skew", YES, ("trigger-overrun",)),
        rule("slow-sink", NO, ("trigger-overrun",), because="0.10 s of 5 s"),
        rule("late-data", NO, because="not asked: it explains nothing here"),
    )
    verdict = Diagnoser(rules)(view())

    [root] = verdict.root_causes
    assert (root.rule, root.severity, root.explains) == ("key-skew", "critical", ("falling-behind", "trigger-overrun"))
    assert [(each.rule, each.because) for each in root.ruled_out] == [("slow-sink", "0.10 s of 5 s")]
    assert {each.rule: each.severity for each in verdict.findings}["key-skew"] == "warning"
    assert len(verdict.findings) == 3


def test_an_inactive_rule_between_two_does_not_cut_the_chain():
    rules = (rule("c", YES), rule("b", NO, ("c",)), rule("a", YES, ("b",)))
    assert [root.rule for root in Diagnoser(rules)(view()).root_causes] == ["a"]


def test_an_inactive_rule_that_is_ruled_out_cuts_the_chain():
    rules = (
        rule("late", YES),
        rule("collector", NO, ("late",), because="2 %"),
        rule("growth", NO, ("collector",)),
        rule("unbounded", YES, ("growth",)),
    )
    verdict = Diagnoser(rules)(view())

    assert [(root.rule, root.explains) for root in verdict.root_causes] == [("late", ()), ("unbounded", ())]


def test_root_causes_are_ranked_by_severity_then_reach_then_confidence():
    rules = (
        rule("symptom", YES),
        rule("unsure", YES, confidence=0.4),
        rule("sure", YES, confidence=0.9),
        rule("explains", YES, ("symptom",), confidence=0.1),
        rule("critical", YES, severity="critical", confidence=0.1),
    )

    assert [root.rule for root in Diagnoser(rules)(view()).root_causes] == ["critical", "explains", "sure", "unsure"]


def test_independent_causes_are_kept_apart_and_ranked_by_their_share_in_the_trouble():
    rules = (
        rule("trigger-overrun", YES),
        rule("key-skew", YES, ("trigger-overrun",), share=0.25, confidence=0.95),
        rule("slow-sink", YES, ("trigger-overrun",), share=0.7, confidence=0.6),
        rule("slow-source", YES, ("trigger-overrun",), confidence=0.95),
        rule("late-data", YES, severity="critical", share=0.1),
    )
    verdict = Diagnoser(rules)(view())

    assert [root.rule for root in verdict.root_causes] == ["late-data", "slow-sink", "key-skew", "slow-source"]
    assert [root.explains for root in verdict.root_causes] == [(), *[("trigger-overrun",)] * 3]


def found(slug, action, severity="critical", share=None, urgent=False):
    def check(seen: QueryView) -> Iterator[Finding]:
        evidence = (Evidence("x", 1.0, "count", "0", seen.now),)
        where, step = Component("query", seen.query), Remedy(action, "it helps")
        yield Finding(f"{slug} it is", where, evidence, (step,) if action else (), share=share)

    return Rule(slug, severity, check, "Meaning", urgent=urgent)


def test_what_prevents_a_loss_is_done_before_what_removes_the_cause_which_stays_the_cause():
    cap = found("rate-limited", "raise the cap", share=0.6)
    deleted = found("retention-risk", "raise the retention", urgent=True)
    late = found("late-data", "find the producer", severity="warning")
    first, second, third = Diagnoser((late, deleted, cap))(view()).root_causes

    assert [first.rule, second.rule, third.rule] == ["rate-limited", "retention-risk", "late-data"]
    assert [(each.action, each.why, each.prevents) for each in first.remedies] == [
        ("raise the retention", "retention-risk it is", "retention-risk"),
        ("raise the cap", "it helps", None),
    ]
    assert [each.action for each in second.remedies] == ["raise the retention"]
    assert [each.action for each in third.remedies] == ["find the producer"]


@cases(
    "other",
    ("it can be undone", found("retention-risk", "raise the retention")),
    ("nothing is known that prevents it", found("data-loss", "", urgent=True)),
    ("it comes first anyway", found("data-loss", "raise the retention", share=0.9, urgent=True)),
)
def test_other_causes_keep_their_own_first_step(other):
    roots = Diagnoser((other, found("rate-limited", "raise the cap", share=0.6)))(view()).root_causes

    assert [[each.action for each in root.remedies] for root in roots if root.rule == "rate-limited"] == [
        ["raise the cap"]
    ]


def test_a_finding_keeps_its_beginning_and_lingers_for_a_while():
    active = [True]
    judge = Diagnoser((rule("a", active, linger=10.0),))

    assert judge(view(NOW)).findings[0].since == NOW
    assert judge(view(NOW + 5)).findings[0].since == NOW
    active[0] = False
    assert judge(view(NOW + 14)).findings[0].since == NOW
    assert judge(view(NOW + 15)).findings == ()
    active[0] = True
    assert judge(view(NOW + 16)).findings[0].since == NOW + 16


def test_a_rule_that_raises_is_counted_and_the_others_are_heard():
    def broken(view: QueryView) -> Iterator[Finding]:
        raise ZeroDivisionError
        yield

    rules = (Rule("broken", "critical", broken, ""), rule("a", YES))
    judge = Diagnoser(rules)

    assert [finding.rule for finding in judge(view()).findings] == ["a"]
    assert judge.errors == {"broken": 1}


@pytest.mark.parametrize(
    "evidence", [(), (Evidence("x", float("nan"), "count", "0", NOW),)], ids=["none", "not finite"]
)
def test_without_evidence_there_is_no_finding(evidence):
    def check(view: QueryView) -> Iterator[Finding]:
        yield Finding("a guess", Component("query", view.query), evidence)

    assert Diagnoser((Rule("guess", "critical", check, ""),))(view()).findings == ()


def test_what_was_wrong_at_the_end_is_told_for_a_while_after_it():
    rules = (rule("a", YES), rule("b", YES, outlives=True))
    judge = Diagnoser(rules)

    assert [f.rule for f in judge(view(NOW + 10, ended=NOW)).findings] == ["a", "b"]
    assert [f.rule for f in judge(view(NOW + AFTERMATH_SECONDS + 1, ended=NOW)).findings] == ["b"]


def test_health_falls_with_severity_and_confidence():
    assert Diagnoser(())(view()).health == 100
    assert Diagnoser((rule("a", YES, confidence=0.8),))(view()).health == 80
    assert Diagnoser((rule("a", YES, severity="critical", confidence=1.0),))(view()).health == 40


@cases(
    "case, status",
    ("no batch yet", {"warm": 0}, "starting"),
    ("quiet", {}, "healthy"),
    ("idle", {"idle": True}, "idle"),
    ("stopped", {"stopped": True}, "stopped"),
    ("failed", {"exception": "boom"}, "failed"),
    ("hangs", {"running": 40}, "stuck"),
    ("batches outlast the interval", {"seconds": [4] * 20}, "pressured"),
    ("overload", {"seconds": [2] * 8, "backlog": [1000 * n for n in range(1, 9)]}, "falling_behind"),
    (
        "a backlog that shrinks",
        {"seconds": [2] * 8, "backlog": [9000, 9000, 9000, 8000, 7000, 6000, 5500, 5000]},
        "catching_up",
    ),
)
def test_the_status_in_a_word(history, case, status):
    assert Diagnoser()(history(**case)).status == status


def test_overload_is_the_root_of_falling_behind_and_its_rivals_are_ruled_out(history):
    seen = [[stage(records=[480, 520], seconds=[1.6, 1.7], wall=1.8)]] * 8
    phases = [{"latest_offset": 0.02, "get_batch": 0.01, "add_batch": 2.3}] * 8
    view = history(seconds=[2.5] * 8, backlog=[1500 * n for n in range(1, 9)], phases=phases, stages=seen, cores=2)
    verdict = Diagnoser()(view)

    [root] = verdict.root_causes
    assert (root.rule, root.severity) == ("input-overload", "critical")
    assert "falling-behind" in root.explains
    assert {"slow-source": "0.03 s of 2.5 s (1%)", "gc-pressure": "0 s of 2.5 s (0%)"}.items() <= {
        each.rule: each.because for each in root.ruled_out
    }.items()
    assert verdict.forecast.seconds_to_slo_breach > 0


def test_a_slow_sink_is_the_root_and_overload_is_not(history):
    quick = [[stage(seconds=[0.3, 0.3], wall=0.3)]] * 8
    verdict = Diagnoser()(history(seconds=[5] * 8, backlog=[1500 * n for n in range(1, 9)], stages=quick, cores=2))

    assert [root.rule for root in verdict.root_causes] == ["slow-sink"]
    assert "falling-behind" in verdict.root_causes[0].explains


def test_a_hot_key_that_costs_the_capacity_is_the_root_and_overload_is_not(history):
    uneven = [[stage(records=[100, 900], seconds=[0.4, 3.6], wall=3.7)]] * 8
    verdict = Diagnoser()(
        history(
            seconds=[4] * 8,
            backlog=[600 * n for n in range(1, 9)],
            stages=uneven,
            phases={"add_batch": 3.8},
            cores=2,
            plan={"keys": ("customer_id",), "stateful": True},
        )
    )

    assert [root.rule for root in verdict.root_causes] == ["key-skew"]
    assert "falling-behind" in verdict.root_causes[0].explains


KEYED = {"keys": ("customer_id",), "stateful": True, "shuffle_partitions": 2}
EVEN = [stage("save", records=[500, 500], seconds=[0.4, 0.4], wall=0.5)]


@cases(
    "sink, ranked",
    ("the sink takes more", 4.0, ["slow-sink", "key-skew"]),
    ("the key takes more", 2.5, ["key-skew", "slow-sink"]),
)
def test_a_slow_sink_and_a_hot_key_at_once_are_both_named_and_ranked_by_what_they_cost(history, sink, ranked):
    whale = [stage("save", records=[100, 900], seconds=[0.5, 5.5], wall=5.6)]
    batch = 5.6 + sink + 0.3
    view = history(
        warm=14,
        warm_stages=EVEN,
        seconds=[batch] * 4,
        phases={"add_batch": 5.6 + sink, "query_planning": 0.1},
        stages=whale,
        plan=KEYED,
        cores=2,
    )
    roots = Diagnoser()(view).root_causes

    assert [root.rule for root in roots] == ranked


def test_a_hot_key_alone_does_not_make_the_sink_slow(history):
    whale = [stage("save", records=[100, 900], seconds=[0.5, 4.5], wall=4.6)]
    view = history(
        warm=14,
        warm_stages=EVEN,
        seconds=[5.2] * 4,
        phases={"add_batch": 4.9, "query_planning": 0.1},
        stages=whale,
        plan=KEYED,
        cores=2,
    )

    assert [root.rule for root in Diagnoser()(view).root_causes] == ["key-skew"]


@pytest.mark.parametrize(("told", "kept"), [(1.8, 1.0), (-1.8, 0.0), (float("nan"), 0.0), (0.4, 0.4)])
def test_confidence_and_share_stay_between_none_and_all(told, kept):
    verdict = Diagnoser((rule("a", [True], confidence=told, share=told),))(view())
    assert (verdict.findings[0].confidence, verdict.findings[0].share) == (kept, kept)
    assert 0 <= verdict.health <= 100


def test_a_root_cause_that_is_over_is_remembered_for_an_hour_unless_it_was_only_information():
    bad, mild = [True], [True]
    judge = Diagnoser((rule("slow-sink", bad, linger=0.0), rule("worth-knowing", mild, severity="info", linger=0.0)))

    assert judge(view(NOW)).ended == ()
    bad[0] = mild[0] = False
    [over] = judge(view(NOW + 5)).ended
    assert (over.finding.rule, over.finding.since, over.until) == ("slow-sink", NOW, NOW)
    assert judge(view(NOW + 3000)).ended == (over,)
    assert judge(view(NOW + 3700)).ended == ()


def test_a_root_cause_that_another_explains_now_is_not_over():
    late, sink = [True], [False]
    judge = Diagnoser((rule("late", late, linger=0.0), rule("slow-sink", sink, ("late",), linger=0.0)))

    assert [root.rule for root in judge(view(NOW)).root_causes] == ["late"]
    sink[0] = True
    verdict = judge(view(NOW + 5))
    assert ([root.rule for root in verdict.root_causes], verdict.ended) == (["slow-sink"], ())
    late[0] = sink[0] = False
    assert [over.finding.rule for over in judge(view(NOW + 10)).ended] == ["slow-sink"]


def muting(muted, *rules):
    return Diagnoser(rules, muted=frozenset(muted))(view())


def test_a_muted_finding_is_set_apart_and_what_it_explained_stands_for_itself():
    late = rule("trigger-overrun", YES, severity="critical")
    verdict = muting({("slow-sink", "daily_counts")}, late, rule("slow-sink", YES, ("trigger-overrun",)))

    assert [each.rule for each in verdict.root_causes] == ["trigger-overrun"]
    assert [each.rule for each in verdict.findings] == ["trigger-overrun"]
    assert [(each.rule, each.summary) for each in verdict.muted] == [("slow-sink", "slow-sink it is")]


def test_a_query_of_which_all_is_muted_is_healthy():
    verdict = muting({("slow-sink", None)}, rule("slow-sink", YES))
    assert (verdict.findings, verdict.root_causes, verdict.health) == ((), (), 100)
    assert verdict.status != "pressured"


@cases(
    "muted",
    ("of another query", {("slow-sink", "payments")}),
    ("another rule", {("key-skew", None)}),
    ("nothing", set()),
)
def test_what_is_not_muted_is_found_as_ever(muted):
    verdict = muting(muted, rule("slow-sink", YES))
    assert [each.rule for each in verdict.root_causes] == ["slow-sink"]
    assert verdict.muted == ()


def test_a_muted_rule_that_finds_nothing_is_not_mentioned():
    assert muting({("slow-sink", None)}, rule("slow-sink", NO)).muted == ()


def test_what_is_muted_does_not_end():
    active = [True]
    judge = Diagnoser((rule("slow-sink", active),), muted=frozenset({("slow-sink", None)}))
    judge(view())
    active[0] = False
    assert judge(view(NOW + 1)).ended == ()


@cases(
    "seconds, later, fresh",
    ("nothing is wrong", 0.4, ATTRIBUTION_SECONDS / 2, False),
    ("nothing is wrong, some seconds later", 0.4, 2 * ATTRIBUTION_SECONDS, True),
    ("batches outlast their interval", 9.0, ATTRIBUTION_SECONDS / 2, True),
)
def test_where_the_time_goes_is_some_seconds_old_where_nothing_is_wrong(history, seconds, later, fresh):
    before = history(seconds=[seconds] * 8, interval=2.0)
    after = history(seconds=[*[seconds] * 8, *[1.8 * seconds] * 12], interval=2.0)
    judge = Diagnoser(rules=())
    told = judge(before).attribution

    assert (judge(after.at(before.now + later)).attribution != told) is fresh
