"""One first step for one cause and context: whoever says it says the same words, wherever a person reads them."""

import re
import string
import time

import pytest

from ledgerops.analysis.html.headline import headline
from ledgerops.cli import main
from ledgerops.cli.live_view import plain_line
from ledgerops.diagnosis.batch_parts import PARTS
from ledgerops.diagnosis.do_first import MAX_LISTED, do_first, section
from ledgerops.diagnosis.facts.known_failures import KNOWN
from ledgerops.diagnosis.report import document, text
from ledgerops.diagnosis.rules import RULES
from ledgerops.metrics.cause_texts import CAUSE_TEXTS
from ledgerops.metrics.first_steps import BY_LARGEST_PART, FIRST_STEPS, GENERAL, first_step, sentence
from ledgerops.metrics.verdict import ROOT_CAUSE_INFO
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.problems import CASES, problem_pages
from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site
from ledgerops.model.finding import Component, Evidence, Finding, Verdict
from ledgerops.notify.incident import parse_webhook
from ledgerops.notify.message import compose
from ledgerops.runtime.status import _finding
from tests.notify.build import alert, webhook

EVERY = [(rule, context) for rule, steps in FIRST_STEPS.items() for context in steps]
LOSES = re.compile(r"new checkpoint|delete|drop |failOnDataLoss|filter out|restart|policy max", re.IGNORECASE)
PAGES = problem_pages()
CAUSES_FILE = rule_files(Site())["causes.yaml"]
every = pytest.mark.parametrize(
    ("rule", "context"), EVERY, ids=[f"{rule}-{context or 'any'}" for rule, context in EVERY]
)


def step_of(rule, context):
    """The step, with a name or a number for each of its braces."""
    names = [name for _, name, _, _ in string.Formatter().parse(FIRST_STEPS[rule][context].text) if name]
    return first_step(rule, context, "it is so", **{name: f"{name} seventeen" for name in names})


def verdict_of(rule, context):
    cause = Finding(
        f"{rule} is found",
        Component("query", "orders"),
        (Evidence("tasks", 9.0, "count", "<= 6", 100.0),),
        (step_of(rule, context),),
        confidence=0.9,
        rule=rule,
        severity="warning",
        since=100.0,
    )
    return Verdict("orders", 160.0, "pressured", 70, (cause,), (cause,))


def test_each_rule_has_first_steps_and_no_other_has():
    assert set(FIRST_STEPS) == set(CAUSE_TEXTS) == {rule.slug for rule in RULES}
    assert all(GENERAL in steps for steps in FIRST_STEPS.values())


@every
def test_terminal_live_page_report_and_page_message_say_the_step_of_the_finding(rule, context):
    verdict = verdict_of(rule, context)
    [cause], found = verdict.root_causes, document([verdict], 160.0, "here")
    said = cause.remedies[0].action
    [query] = found["queries"]
    status = {"query": "orders", "status": "pressured", "verdict": _finding(cause), "findings": [_finding(cause)]}
    status |= {"batch": None, "state": None, "skew": None, "backlog": None, "drain_seconds": None}
    status |= {"watermark_lag": None, "rates": {"arrival": None, "input": None, "processed": None}}
    message = compose(parse_webhook(webhook(alert(query="orders"))), {"orders": query}, time.time())

    assert f"    do first:  {said}\n" in text(found)
    assert f"do first: {said};" in plain_line(status) + ";"
    assert headline(found, {}).remedy["action"] == said
    assert f"do first: {said} (it is so)" in message.text.splitlines()


@every
def test_metric_page_and_command_say_it_without_names_and_numbers(rule, context, capsys):
    step, verdict = FIRST_STEPS[rule][context], verdict_of(rule, context)
    [labels] = ROOT_CAUSE_INFO.read(verdict)
    said = sentence(step.general)
    own, page = step_pattern(step), PAGES[f"{rule}.md"]
    main(["rules", rule])
    listed = capsys.readouterr().out

    assert labels[-1] == said
    assert own.fullmatch(verdict.root_causes[0].remedies[0].action) and own.fullmatch(step.general)
    for text_of_page in (page, listed):
        assert said.lower() in " ".join(text_of_page.lower().split())
    assert said in [each.text for each in do_first(rule)]


def test_of_many_cases_the_general_step_comes_first_and_the_page_folds_the_cases():
    many = {rule for rule in FIRST_STEPS if len(do_first(rule)) > MAX_LISTED + 1}

    assert {"trigger-overrun", "falling-behind", "query-failed"} <= many and "slow-sink" not in many
    for rule in FIRST_STEPS:
        general, (step, *cases) = do_first(rule)[-1].text, section(rule).splitlines()
        assert (step == general and len(cases) > MAX_LISTED) is (rule in many)
        assert (f"<summary>{CASES}</summary>" in PAGES[f"{rule}.md"]) is (rule in many)


def test_a_symptom_has_a_step_for_each_part_of_a_batch():
    assert BY_LARGEST_PART.keys() == set(PARTS)


def step_pattern(step):
    """What a step can be with any names and numbers."""
    parts = string.Formatter().parse(step.text)
    return re.compile("".join(re.escape(before) + (".*" if name else "") for before, name, _, _ in parts))


def test_the_alert_of_a_cause_asks_the_metric_for_the_step_and_else_says_the_general_one():
    flat = " ".join(CAUSES_FILE.replace("''", "'").split())

    tickets = [each.rule for each in ALERTS if each.of_cause]
    assert len(tickets) > 30
    for slug in tickets:
        assert f'rule=\\"{slug}\\"' in flat
        asked = "{{ range . }}{{ .Labels.action }}{{ end }}"
        assert f"{asked}{{{{ else }}}}{CAUSE_TEXTS[slug].action}{{{{ end }}}}" in flat
    assert flat.count(".Labels.action") == len(tickets)


def test_a_first_step_loses_and_repeats_nothing_and_names_no_number():
    steps = [step.general for steps in FIRST_STEPS.values() for step in steps.values()]

    for step in (*steps, *BY_LARGEST_PART.values(), *(known.first_step.action for known in KNOWN)):
        assert len(step) <= 120, step
        assert not LOSES.search(step) or step.startswith(("find ", "stop ", "raise ")), step
    assert [step for step in (*steps, *BY_LARGEST_PART.values()) if re.search(r"\d|add cores", step)] == []


def test_a_step_cannot_be_said_in_a_context_that_is_not_defined():
    with pytest.raises(KeyError):
        first_step("slow-source", "source pigeons", "it is so")
