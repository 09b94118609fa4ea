"""What is shown of a root cause: one sentence and one safe first step for each rule, and no number."""

import re
from dataclasses import replace

import pytest

from ledgerops.diagnosis.rules import RULES
from ledgerops.metrics.cause_texts import CAUSE_TEXTS
from ledgerops.metrics.verdict import ROOT_CAUSE_INFO, ROOT_CAUSE_SINCE
from ledgerops.model.finding import Component, Finding, Part, Remedy, Verdict

RISKY = re.compile(r"\b(delete (?!no)|drop |restart the|kill|remove )", re.IGNORECASE)


def test_texts_are_short_sentences_without_numbers_and_the_first_step_breaks_nothing():
    missing = [rule.slug for rule in RULES if rule.slug not in CAUSE_TEXTS]
    assert missing == [], "add a line for each to ledgerops/metrics/cause_texts.py"
    for rule, (summary, action) in CAUSE_TEXTS.items():
        for text, longest in ((summary, 60), (action, 120)):
            assert re.fullmatch(r"[A-Z](?:[^.0-9]|\.(?=[a-z]))*\.", text), rule
            assert len(text) <= longest, rule
        assert not RISKY.search(action), rule


def cause(rule, severity, since):
    return Finding("", Component("query", "q"), (), rule=rule, severity=severity, since=since)


def verdict(*causes, **changes):
    return Verdict("q", 100.0, "stuck", 40, causes, **changes)


def test_root_causes_are_ranked_in_their_order_with_severity_text_and_instant():
    found = verdict(cause("slow-sink", "warning", 70.0), cause("key-skew", "info", 80.0))
    assert ROOT_CAUSE_INFO.read(found) == {
        ("slow-sink", "warning", "1", *CAUSE_TEXTS["slow-sink"]): 1.0,
        ("key-skew", "info", "2", *CAUSE_TEXTS["key-skew"]): 1.0,
    }
    assert ROOT_CAUSE_SINCE.read(found) == {("slow-sink",): 70.0, ("key-skew",): 80.0}


PARTS = (Part("waiting", 3.3, 0.94), Part("cpu", 0.2, 0.06))


@pytest.mark.parametrize(("parts", "named"), [(PARTS, " Largest part: waiting."), ((), "")], ids=["known", "unknown"])
def test_of_a_symptom_the_part_that_is_known_is_named_with_its_step(parts, named):
    step = Remedy("take a dump of executor 7", "the tasks wait", general="take a thread dump of an executor")
    known = replace(cause("trigger-overrun", "warning", 70.0), remedies=(step,))
    [told] = ROOT_CAUSE_INFO.read(verdict(known, attribution=parts))
    summary = f"Batches take longer than the trigger interval.{named}"
    assert told[-2:] == (summary, "Take a thread dump of an executor.")


def test_without_a_cause_there_is_no_series():
    assert ROOT_CAUSE_INFO.read(verdict()) == ROOT_CAUSE_SINCE.read(verdict()) == {}
