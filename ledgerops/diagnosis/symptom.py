"""What a symptom without a known cause says: where the time of a batch goes, and a first step that fits."""

from dataclasses import replace

from ledgerops.common.format import duration
from ledgerops.diagnosis.batch_parts import DRIVER
from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.facts.context import function_place
from ledgerops.diagnosis.facts.waiting import seen_doing, steps
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.diagnosis.profile import profile
from ledgerops.diagnosis.proof import in_words
from ledgerops.metrics.first_steps import BY_LARGEST_PART, ONE_LONG_BATCH, first_step
from ledgerops.model.finding import Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import ROOM_SHARE

SYMPTOMS = ("falling-behind", "trigger-overrun", "freshness-breach", "long-batches")
BY_WATERMARK = first_step(
    "freshness-breach",
    "event time",
    "rows that come late, or an input that sends none, hold results back without a slow batch",
)
BY_ROWS = first_step("freshness-breach", "rows", "rows that were late on arrival stay late")
ONE_LONG = Remedy(ONE_LONG_BATCH, "a typical batch is far shorter", general=ONE_LONG_BATCH)
IN_FUNCTION = (*DRIVER, "tasks_unknown")  # the line tells more than stages that nobody read
LARGEST = "no other part of a batch takes as long"


def with_largest_part(finding: Finding, view: QueryView) -> Finding:
    """A symptom without a cause, with the largest part of a batch and a remedy that fits it, or where none is known
    with what the running one is seen to do; others as they are."""
    if finding.rule not in SYMPTOMS or (finding.rule == "freshness-breach" and view.run.is_idle):
        return finding  # no batch runs that could take the time
    found, interval, running = profile(view), view.interval, view.run.unfinished_seconds or 0.0
    kept = (each for each in finding.remedies if each.settings)  # the symptom's own beside the look for its cause
    if found is None or not found.parts:
        if running <= interval:
            return finding
        return replace(finding, summary=finding.summary + seen_doing(view), remedies=(steps(view)[0], *kept))
    part, typical = max(found.parts.values(), key=lambda part: part.now), found.duration
    first = BY_LARGEST_PART[part.name]
    step = Remedy(first, LARGEST, general=first)
    where = f"the largest part of a batch is {in_words(part.name)}: {duration(part.now)} of {duration(typical)}"
    line = function_place(view, since=found.splits[0].batch.started) if part.name in IN_FUNCTION else None
    if line is not None:
        where = f"{where}, and the function of foreachBatch is mostly at {line}"
        step = first_step("slow-sink", "line", LARGEST, line=line)
    longest = max([running, *(batch.duration for batch in view.batches[-RECENT_BATCHES:])])
    if longest > max(FAR_TIMES * typical, interval):
        took = "has run for" if longest == running else "took"
        where = f"a batch {took} {duration(longest)}, a typical one takes {duration(typical)}"
        where, step = (where + seen_doing(view), steps(view)[0]) if longest == running else (where, ONE_LONG)
    elif finding.rule == "freshness-breach" and typical < ROOM_SHARE * interval:
        where = f"batches take {duration(typical)}, the trigger interval is {interval:g} s"
        where = f"{where}: their time is not what makes results old"
        step = BY_WATERMARK if state_cost.has_watermark(view) else BY_ROWS
    return replace(finding, summary=f"{finding.summary}; {where}", remedies=(step, *kept))
