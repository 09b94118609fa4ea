"""The first steps of a rule as its runbook lists them: for which queries, and what to do."""

from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.diagnosis.facts.known_failures import JOINED_FILE_GONE, KNOWN
from ledgerops.diagnosis.proof import in_words
from ledgerops.diagnosis.symptom import SYMPTOMS
from ledgerops.metrics.first_steps import BY_LARGEST_PART, FIRST_STEPS, GENERAL, MAX_LISTED, ONE_LONG_BATCH, sentence

OTHERWISE = "otherwise"


class Step(NamedTuple):
    """`where` is a clause without a capital; "" for a step that is the only one."""

    where: str
    text: str  # a sentence


def do_first(rule: str) -> list[Step]:
    """In the order in which they are looked for: what is special before what is general."""
    steps = FIRST_STEPS[rule]
    special = [*_special(rule), *(Step(each.where, each.general) for name, each in steps.items() if name != GENERAL)]
    general = steps[GENERAL]
    last = Step(general.where or (OTHERWISE if special else ""), general.general)
    return [Step(each.where, sentence(each.text)) for each in (*special, last)]


def _special(rule: str) -> Iterator[Step]:
    if rule == "query-failed":
        yield from (Step(known.happened, known.first_step.action) for known in (*KNOWN, JOINED_FILE_GONE))
    if rule in SYMPTOMS:
        running = FIRST_STEPS["query-stuck"][GENERAL].general
        yield Step("a batch runs for far longer than usual", running)
        yield Step("one batch took far longer than usual", ONE_LONG_BATCH)
        line = FIRST_STEPS["slow-sink"]["line"].general
        yield Step("the largest part is the driver's, and the line of the function of foreachBatch is known", line)
        yield from (Step(f"the largest part is {in_words(part)}", step) for part, step in BY_LARGEST_PART.items())


def section(rule: str) -> str:
    """As Markdown, without a heading. Of many cases the general step comes first, as a paragraph of its own."""
    *cases, general = do_first(rule)
    if len(cases) > MAX_LISTED:
        return f"{general.text}\n\n{''.join(map(_item, cases))}"
    if not cases and not general.where:
        return f"{general.text}\n"
    return "".join(map(_item, (*cases, general)))


def _item(step: Step) -> str:
    return f"- {step.where[:1].upper()}{step.where[1:]}: {step.text[:1].lower()}{step.text[1:]}\n"
