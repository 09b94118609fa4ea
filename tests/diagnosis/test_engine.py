"""The cause graph, what lingers, and what a verdict sums up, with rules made for the case."""

from collections.abc import Iterator

import pytest

from ledgerops.diagnosis.engine import AFTERMATH_SECONDS, ATTRIBUTION_SECONDS, Diagnoser
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import History
from ledgerops.signals.query_view import QueryView
from tests.build import batch
from tests.diagnosis.conftest import stage
from tests.tables import cases

NOW = 1_790_000_000.0
YES, NO = [True], [False]
NUMBER = (Evidence("x", 1.0, "count", "0", NOW),)
KEYED = {"keys": ("customer_id",), "stateful": True, "shuffle_partitions": 2}
EVEN = [stage("save", records=[500, 500], seconds=[0.4, 0.4], wall=0.5)]
HOT = {"phases": {"add_batch": 3.8}, "plan": {"keys": ("customer_id",), "stateful": True}}
ALL, ONE = frozenset({("slow-sink", None)}), frozenset({("slow-sink", "daily_counts")})


def rule(
    slug, active=YES, explains=(), severity="warning", because=None, linger=0.0, outlives=False, urgent=False,
    action=None, evidence=NUMBER, **said,
):  # fmt: skip
    """A rule that finds something while `active` (a list with one flag) says so, with what is `said` of it."""

    def check(seen: QueryView) -> Iterator[Finding]:
        if active[0]:
            steps = (Remedy(action, "it helps"),) if action else ()
            yield Finding(
                f"{slug} it is", Component("query", seen.query), evidence, steps, **{"confidence": 0.5} | said
            )

    ruled_out = None if because is None else lambda view: because
    return Rule(slug, severity, check, "Meaning", explains, ruled_out, linger, outlives, urgent=urgent)


def view(at: float = NOW, ended: float | None = None) -> QueryView:
    past = History("daily_counts")
    past.start(NOW - 100, "id", "run")
    if ended is not None:
        past.end(ended, "run", None, None)
    return QueryView(past, at)


def judged(*rules, **settings):
    return Diagnoser(rules, **settings)(view())


def roots(verdict):
    return [root.rule for root in verdict.root_causes]


@pytest.mark.parametrize("of_rule", ["critical", "warning", "info"])
@pytest.mark.parametrize("at_most", ["critical", "warning", "info"])
def test_a_finding_lowers_the_severity_of_its_rule_and_never_raises_it(of_rule, at_most):
    [finding] = judged(rule("slow-sink", severity=of_rule, at_most=at_most)).findings
    assert finding.severity == max(of_rule, at_most, key=["critical", "warning", "info"].index)


def test_what_nothing_explains_is_a_root_cause_as_severe_as_what_it_explains():
    verdict = judged(
        rule("falling-behind", severity="critical"),
        rule("trigger-overrun", YES, ("falling-behind",)),
        rule("key-skew", YES, ("trigger-overrun",)),
        rule("slow-sink", NO, ("trigger-overrun",), because="0.10 s of 5 s"),
        rule("late-data", NO, because="not asked: it explains nothing here"),
    )

    [root] = verdict.root_causes
    assert (root.rule, root.severity, root.explains) == ("key-skew", "critical", ("falling-behind", "trigger-overrun"))
    assert [(each.rule, each.because) for each in root.ruled_out] == [("slow-sink", "0.10 s of 5 s")]
    assert {each.rule: each.severity for each in verdict.findings}["key-skew"] == "warning"
    assert len(verdict.findings) == 3


@cases("because, expected", ("else not", None, [("a", ("c",))]), ("ruled out", "2 %", [("a", ()), ("c", ())]))
def test_an_inactive_rule_between_two_cuts_the_chain_only_where_it_is_ruled_out(because, expected):
    verdict = judged(rule("c"), rule("b", NO, ("c",), because=because), rule("a", YES, ("b",)))
    assert [(root.rule, root.explains) for root in verdict.root_causes] == expected


@cases("slug, told", ("what batches that ended took", "slow-sink", False), ("anything else", "rate-limited", True))
def test_batches_that_ended_rule_out_nothing_of_one_that_hangs(slug, told):
    clears = rule(slug, NO, ("trigger-overrun",), because="0.10 s of 5 s")
    for hung in (rule("query-stuck", explains=("trigger-overrun",)), rule("key-skew", explains=("trigger-overrun",))):
        [root] = judged(rule("trigger-overrun"), hung, clears).root_causes
        assert bool(root.ruled_out) is (told or root.rule == "key-skew")


def test_what_fills_the_heap_explains_a_batch_that_hangs_whatever_batches_before_it_collected():
    chain = rule("gc-pressure", NO, ("query-stuck",), because="0.2 s of 1.2 s")
    verdict = judged(rule("query-stuck"), chain, rule("unbounded-state", YES, ("gc-pressure",)))
    assert roots(verdict) == ["unbounded-state"]


def test_root_causes_are_ranked_by_severity_then_reach_then_confidence():
    verdict = judged(
        rule("symptom"),
        rule("unsure", confidence=0.4),
        rule("sure", confidence=0.9),
        rule("explains", YES, ("symptom",), confidence=0.1),
        rule("critical", severity="critical", confidence=0.1),
    )
    assert roots(verdict) == ["critical", "explains", "sure", "unsure"]


def test_independent_causes_are_kept_apart_and_ranked_by_their_share_in_the_trouble():
    verdict = judged(
        rule("trigger-overrun"),
        rule("key-skew", YES, ("trigger-overrun",), share=0.25, confidence=0.95),
        rule("slow-sink", YES, ("trigger-overrun",), share=0.7, confidence=0.6),
        rule("slow-source", YES, ("trigger-overrun",), confidence=0.95),
        rule("late-data", severity="critical", share=0.1),
    )

    assert roots(verdict) == ["late-data", "slow-sink", "key-skew", "slow-source"]
    assert [root.explains for root in verdict.root_causes] == [(), *[("trigger-overrun",)] * 3]


CAPPED = rule("rate-limited", severity="critical", action="raise the cap", share=0.6)
DELETED = {"severity": "critical", "action": "raise the retention"}


def test_what_prevents_a_loss_is_done_before_what_removes_the_cause_which_stays_the_cause():
    late = rule("late-data", action="find the producer")
    first, second, third = judged(late, rule("retention-risk", urgent=True, **DELETED), CAPPED).root_causes

    assert [first.rule, second.rule, third.rule] == ["rate-limited", "retention-risk", "late-data"]
    assert [(each.action, each.why, each.prevents) for each in first.remedies] == [
        ("raise the retention", "retention-risk it is", "retention-risk"),
        ("raise the cap", "it helps", None),
    ]
    assert [each.action for each in second.remedies] == ["raise the retention"]
    assert [each.action for each in third.remedies] == ["find the producer"]


@cases(
    "other",
    ("it can be undone", rule("retention-risk", **DELETED)),
    ("nothing is known that prevents it", rule("data-loss", severity="critical", urgent=True)),
    ("it comes first anyway", rule("data-loss", share=0.9, urgent=True, **DELETED)),
)
def test_other_causes_keep_their_own_first_step(other):
    [limited] = [root for root in judged(other, CAPPED).root_causes if root.rule == "rate-limited"]
    assert [each.action for each in limited.remedies] == ["raise the cap"]


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

    judge = Diagnoser((Rule("broken", "critical", broken, ""), rule("a")))
    assert [finding.rule for finding in judge(view()).findings] == ["a"]
    assert judge.errors == {"broken": 1}


@cases("evidence", ("none", ()), ("not finite", (Evidence("x", float("nan"), "count", "0", NOW),)))
def test_without_evidence_there_is_no_finding(evidence):
    assert judged(rule("guess", evidence=evidence)).findings == ()


@cases("after, told", ("soon after it", 10, ["a", "b"]), ("long after it", AFTERMATH_SECONDS + 1, ["b"]))
def test_what_was_wrong_at_the_end_is_told_for_a_while_after_it(after, told):
    judge = Diagnoser((rule("a"), rule("b", outlives=True)))
    assert [finding.rule for finding in judge(view(NOW + after, ended=NOW)).findings] == told


@cases(
    "rules, health",
    ("nothing is found", (), 100),
    ("a warning that is rather sure", (rule("a", confidence=0.8),), 80),
    ("something critical that is sure", (rule("a", severity="critical", confidence=1.0),), 40),
)
def test_health_falls_with_severity_and_confidence(rules, health):
    assert judged(*rules).health == health


@cases(
    "case, status",
    ("no batch yet", {"warm": 0}, "starting"),
    ("two batches, of which one pays for warm-up", {"warm": 0, "seconds": [31.0, 15.0]}, "starting"),
    ("three", {"warm": 0, "seconds": [1.0] * 3}, "healthy"),
    ("few batches that prove enough", {"warm": 0, "seconds": [31.0, 45.0]}, "pressured"),
    ("quiet", {}, "healthy"),
    ("idle", {"idle": True}, "idle"),
    ("stopped", {"stopped": True}, "stopped"),
    ("failed", {"exception": "boom"}, "failed"),
    ("hangs", {"running": 40}, "stuck"),
    ("batches outlast the interval", {"seconds": [4] * 20}, "pressured"),
    ("overload", {"seconds": [2] * 8, "backlog": [1000 * n for n in range(1, 9)]}, "falling_behind"),
    ("backlog shrinks", {"seconds": [2] * 8, "backlog": [9000] * 3 + [8000, 7000, 6000, 5500, 5000]}, "catching_up"),
)
def test_the_status_in_a_word(history, case, status):
    assert Diagnoser()(history(**case)).status == status


@cases(
    "seen, status", ("its start was seen", True, "starting"), ("its start is not in the recording", False, "healthy")
)
def test_a_query_starts_only_where_its_start_was_seen(seen, status):
    history, first = History("daily_counts"), batch(7)
    if seen:
        history.start(first.started, "id-1", "run-1")
    for each in (first, last := batch(8)):
        history.add(each)
    assert Diagnoser()(QueryView(history, last.ended + 1.0)).status == status


def test_overload_is_the_root_of_falling_behind_and_its_rivals_are_ruled_out(history):
    seen = [stage(records=[480, 520], seconds=[1.6, 1.7], wall=1.8)]
    phases = {"latest_offset": 0.02, "get_batch": 0.01, "add_batch": 2.3}
    view = history(seconds=[2.5] * 8, backlog=[1500 * n for n in range(1, 9)], phases=phases, stages=seen, cores=2)
    verdict = Diagnoser()(view)

    [root] = verdict.root_causes
    assert (root.rule, root.severity) == ("input-overload", "critical")
    assert "falling-behind" in root.explains
    assert {"slow-source": "0.03 s of 2.5 s (1%)", "gc-pressure": "0 s of 2.5 s (0%)"}.items() <= {
        each.rule: each.because for each in root.ruled_out
    }.items()
    assert verdict.forecast.seconds_to_slo_breach > 0


@cases(
    "case, ran, cause",
    ("a slow sink", {"seconds": [5] * 8}, stage(seconds=[0.3, 0.3], wall=0.3), "slow-sink"),
    ("a hot key", {"seconds": [4] * 8} | HOT, stage(records=[100, 900], seconds=[0.4, 3.6], wall=3.7), "key-skew"),
)
def test_what_costs_the_capacity_is_the_root_and_overload_is_not(history, case, ran, cause):
    [root] = Diagnoser()(history(**case, backlog=[600 * n for n in range(1, 9)], stages=[ran], cores=2)).root_causes
    assert root.rule == cause
    assert "falling-behind" in root.explains


@cases(
    "sink, ranked",
    ("the sink takes more", 4.0, ["slow-sink", "key-skew"]),
    ("the key takes more", 2.5, ["key-skew", "slow-sink"]),
    ("a hot key alone does not make the sink slow", 0.3, ["key-skew"]),
)
def test_a_slow_sink_and_a_hot_key_at_once_are_both_named_and_ranked_by_what_they_cost(history, sink, ranked):
    whale = [stage("save", records=[100, 900], seconds=[0.5, 5.5], wall=5.6)]
    phases = {"add_batch": 5.6 + sink, "query_planning": 0.1}
    past, now = {"warm": 14, "warm_stages": EVEN}, {"seconds": [5.9 + sink] * 4, "phases": phases, "stages": whale}
    assert roots(Diagnoser()(history(**past, **now, plan=KEYED, cores=2))) == ranked


@cases(
    "dropped, ranked",
    ("a few rows", 100, ["slow-sink", "late-data"]),
    ("nearly all rows", 950, ["late-data", "slow-sink"]),
)
def test_rows_that_are_dropped_and_time_that_is_lost_are_ranked_by_their_shares(history, dropped, ranked):
    phases = {"add_batch": 9.6, "query_planning": 0.1}
    stages = [stage("save", records=[500, 500], seconds=[2.0, 2.0], wall=2.0)]
    drops = {"name": "dedupe", "dropped_rows": dropped}
    now = {"seconds": [9.9] * 8, "phases": phases, "stages": stages, "operators": drops}
    assert roots(Diagnoser()(history(warm=14, warm_stages=EVEN, **now, cores=2))) == ranked


def test_a_source_that_takes_time_does_not_explain_rows_that_were_sent_late(history):
    drops, phases = {"name": "dedupe", "dropped_rows": 50}, {"latest_offset": 2.4, "add_batch": 0.5}
    now = {"seconds": [3.0] * 8, "phases": phases, "operators": drops}
    late, source = Diagnoser()(history(warm=14, **now, interval=0.0)).root_causes
    assert (late.rule, late.explains, late.severity) == ("late-data", ("rows-dropped",), "warning")
    assert (source.rule, source.severity) == ("slow-source", "info")


@pytest.mark.parametrize(("told", "kept"), [(1.8, 1.0), (-1.8, 0.0), (float("nan"), 0.0), (0.4, 0.4)])
def test_confidence_and_share_stay_between_none_and_all(told, kept):
    verdict = judged(rule("a", confidence=told, share=told))
    assert (verdict.findings[0].confidence, verdict.findings[0].share) == (kept, kept)
    assert 0 <= verdict.health <= 100


def test_a_root_cause_that_is_over_is_remembered_for_an_hour_unless_it_was_only_information():
    bad, mild = [True], [True]
    judge = Diagnoser((rule("slow-sink", bad), rule("worth-knowing", mild, severity="info")))

    assert judge(view(NOW)).ended == ()
    bad[0] = mild[0] = False
    [over] = judge(view(NOW + 5)).ended
    assert (over.finding.rule, over.finding.since, over.until) == ("slow-sink", NOW, NOW)
    assert judge(view(NOW + 3000)).ended == (over,)
    assert judge(view(NOW + 3700)).ended == ()


def test_a_root_cause_that_another_explains_now_is_not_over():
    late, sink = [True], [False]
    judge = Diagnoser((rule("late", late), rule("slow-sink", sink, ("late",))))

    assert roots(judge(view(NOW))) == ["late"]
    sink[0] = True
    verdict = judge(view(NOW + 5))
    assert (roots(verdict), verdict.ended) == (["slow-sink"], ())
    late[0] = sink[0] = False
    assert [over.finding.rule for over in judge(view(NOW + 10)).ended] == ["slow-sink"]


def test_a_muted_finding_is_set_apart_and_what_it_explained_stands_for_itself():
    late, sink = rule("trigger-overrun", severity="critical"), rule("slow-sink", YES, ("trigger-overrun",))
    verdict = judged(late, sink, muted=ONE)
    assert roots(verdict) == [each.rule for each in verdict.findings] == ["trigger-overrun"]
    assert [(each.rule, each.summary) for each in verdict.muted] == [("slow-sink", "slow-sink it is")]


@cases(
    "muted, found",
    ("of another query", {("slow-sink", "payments")}, True),
    ("another rule", {("key-skew", None)}, True),
    ("all", ALL, False),
)
def test_what_is_not_muted_is_found_as_ever_and_a_query_of_which_all_is_muted_is_healthy(muted, found):
    active = [True]
    judge = Diagnoser((rule("slow-sink", active),), muted=frozenset(muted))
    verdict = judge(view())
    assert (roots(verdict), bool(verdict.muted)) == (["slow-sink"] * found, not found)
    assert (verdict.health == 100) is not found

    active[0] = False
    over = judge(view(NOW + 1))
    assert (bool(over.ended), over.muted) == (found, ()), "what is muted does not end, nor is it mentioned then"


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
