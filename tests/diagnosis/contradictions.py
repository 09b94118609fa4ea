"""What in a verdict cannot be true beside the rest of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledgerops.diagnosis.proof import as_expected, expectation
from ledgerops.model.finding import Finding, Verdict

NEED_NO_FINDING = ("healthy", "idle", "starting", "stopped", "catching_up")
MIN_BUSY_RATIO = 0.5  # of the interval: below it more cores cannot be what a query needs
WAITING = ("waiting", "source_wait", "sink_wait")  # parts in which tasks do nothing
MIN_WAITING_SHARE = 0.6  # of a batch, beyond doubt
MAX_SUM_ERROR = 0.05  # of a batch, for the parts of its time
PART_OF_BATCH = re.compile(r"([\d.]+) s of a batch of ([\d.]+) s")
BELOW_FULL = re.compile(r"\b(?:near|close to|almost)\b[^.;:]*?(\d+)%")
MORE = (
    "add ",
    "give the ",
    "divide the rows",
    "raise spark.sql.shuffle.partitions",
)  # how a remedy begins that asks for machines
MACHINES = ("cores", "executors", "machines")
AMOUNT = r"-?\d(?:[\d,]*\d)?(?:\.\d+)?"
UNIT = r"(?:(?:ms|s|min|h|d|B|kB|MB|GB|TB|k|M|G)\b)"
TOLD = re.compile(  # as -v writes evidence
    rf"(?<!\S)(?!min |h |d )([a-z]\w+) ({AMOUNT})(?: ?({UNIT})| [a-z]\S*)? \(expected ([^()]+)\)"
)
PAIR = re.compile(  # as the default answer writes evidence
    rf" ({AMOUNT} ?{UNIT}?) \((usually|expected(?: at most| at least| below| above)?) ({AMOUNT} ?{UNIT}?)\)"
)
NOTHING = re.compile(
    r"(?<![\d.,])0\.0+ (?:s|min|[kMGT]?B)\b|\b0 \w+ (?:each|and \d)"
)  # a rounded number that says none
CLEARS = re.compile(r"clears in (?:about )?(?:0\.\d+ s|[\d.]+ ms)")
SHARE = re.compile(
    r"(?<![\d.])([\d.]+) (?:task seconds|s)\b((?:[^.;:()]|\.(?=\d))*?)(?: \(|, )(\d+)%(?:\)| of its ([\d.]+) s)"
)
WHOLE = re.compile(r"of (?:a batch of )?([\d.]+) s\b")
SAME = re.compile(r"(?<![\d.])([\d.]+ s) of a batch of ([\d.]+ s)")
OTHER_UNIT = re.compile(
    r"\d [KMGT]iB\b|\d\.\d (?:min|h|d)\b|(?<![\d.])(?<!at least )(?:\d{3,}|\d{1,3},\d{3})(?:\.\d+)? s\b(?!\))"
)
UNIT_TWICE = re.compile(rf"(?:\b|_)([a-z]{{3,}}) {AMOUNT}[kMG]? \1\b")
TIMES = re.compile(r"failed (\d+) times in \d")
BATCH = re.compile(r"\bof a batch of ([\d.]+) s\b")
MAX_ROUNDING_POINTS = 0.6  # by which a percentage may be off that of two exact numbers
MAX_FRESH_SECONDS = 5.0  # of arrival, that may be unread beside a lag of nothing: what came while the batch was planned


def contradictions(verdict: Verdict) -> Sequence[str]:
    """One line each; empty when status, health, findings, remedies and parts agree."""
    found = []
    causes = {root.rule for root in verdict.root_causes}
    if verdict.status not in NEED_NO_FINDING and not verdict.findings:
        found.append(f"{verdict.status} without a finding")
    if verdict.status not in NEED_NO_FINDING and verdict.health == 100:
        found.append(f"{verdict.status} with health 100")
    total = sum(part.share for part in verdict.attribution)
    if verdict.attribution and abs(total - 1) > MAX_SUM_ERROR:
        found.append(f"the parts of a batch add up to {total:.0%}")
    interval, seconds = (verdict.figures.get(name) for name in ("trigger_interval_seconds", "batch_seconds"))
    for root in verdict.root_causes:
        seconds = next((each.value for each in root.evidence if each.name == "profile_seconds"), seconds)
        for remedy in root.remedies:
            if "named root cause" in remedy.action:
                found.append(f"{root.rule} is the root cause and points to another")
            cores = remedy.action.startswith(MORE) and any(word in remedy.action for word in MACHINES)
            if cores and interval and seconds is not None and seconds < MIN_BUSY_RATIO * interval:
                found.append(f"{root.rule} asks for cores at {seconds:.1f} of {interval:g} s")
            waits = sum(part.share for part in verdict.attribution if part.part in WAITING)
            if cores and waits >= MIN_WAITING_SHARE:
                found.append(f"{root.rule} asks for cores while tasks wait for {waits:.0%} of a batch")
            if cores and "rate-limited" in causes:
                found.append(f"{root.rule} asks for cores while the source is capped")
    for finding in verdict.findings:
        found += [f"{finding.rule} says: {what}" for what in _impossible(finding)]
    return found


def _impossible(finding: Finding) -> Iterator[str]:
    """What a summary claims that its own figures refute."""
    for part, whole in PART_OF_BATCH.findall(finding.summary):
        if float(part) > float(whole) * (1 + MAX_SUM_ERROR) + 0.1:
            yield f"{part} s of {whole} s"
    for percent in BELOW_FULL.findall(finding.summary):
        if int(percent) > 100:
            yield f"near a limit at {percent}%"


def misstatements(text: str) -> Iterator[str]:
    """What a text about a finding says that cannot be so beside the rest of it, or reads as the opposite."""
    for name, value, unit, expected in TOLD.findall(text):
        if unit not in ("", "s"):
            continue  # its limit is in seconds, or in bytes
        number = float(value.replace(",", ""))
        wanted = expectation(expected)
        if wanted is not None and wanted.written.replace(",", "").lstrip("-").replace(".", "").isdigit():
            at_limit = number == wanted.limit and "." in value
            if at_limit or (as_expected(number, expected) and wanted.how not in ("about", "~", "the usual")):
                yield f"{name} {value} reads as expected: {expected}"
        elif expected.startswith("less") and number == 0:
            yield f"{name} {value} is not more than nothing"
    for value, how, limit in PAIR.findall(text):
        if value == limit and (not how.endswith((" below", " above")) or "." in value):
            yield f"{value} reads as what is expected of it: {how} {limit}"
    yield from (f"rounded to nothing: {found}" for found in NOTHING.findall(text))
    yield from (f"no time at all: {found}" for found in CLEARS.findall(text))
    yield from (f"another unit: {found}" for found in OTHER_UNIT.findall(text))
    yield from (f"a unit twice: {found}" for found in UNIT_TWICE.findall(text))
    yield from (f"all of a batch: {part}" for part, whole in SAME.findall(text) if part == whole)
    for part, between, percent, its in SHARE.findall(text):
        whole = its or next(iter(WHOLE.findall(between)), None)
        if whole and _off(part, whole, percent) > MAX_ROUNDING_POINTS:
            yield f"{part} of {whole} s is not {percent}%"


def _off(part: str, whole: str, percent: str) -> float:
    """Points by which a percentage is off that of two numbers, beyond what rounding these does. A part below a second
    must have two digits."""
    share = 100 * float(part) / float(whole)
    rounding = sum(
        min(0.5 * 10.0 ** -len(number.partition(".")[2]), 0.5 if float(number) >= 1 else 0.005) / float(number)
        for number in (part, whole)
        if float(number) > 0
    )
    return abs(share - float(percent)) - share * rounding


def disagreements(query: Mapping[str, Any]) -> Iterator[str]:
    """Where the figures of a query of the document, and a finding's sentence and evidence, disagree."""
    figures = query["figures"]
    backlog, rate = figures.get("backlog_offsets", 0), figures.get("input_rows_per_second", 0)
    if figures.get("lag_seconds") == 0 and backlog > MAX_FRESH_SECONDS * rate > 0:
        yield f"a backlog of {backlog:.0f} that is 0 s old"
    for finding in query["findings"]:
        evidence = {each["name"]: each["value"] for each in finding["evidence"]}
        for each in finding["evidence"]:
            if as_expected(each["value"], each["expected"]):
                yield f"{finding['rule']}: {each['name']} {each['value']:g} is as expected: {each['expected']}"
        told = evidence.get("ledgerops_source_backlog_offsets")
        if told == 0 and backlog > MAX_FRESH_SECONDS * rate > 0:
            yield f"{finding['rule']}: no backlog beside one of {backlog:.0f}"
        for times in TIMES.findall(finding["summary"]):
            restarts = evidence.get("ledgerops_query_restarts_total", 0)
            if restarts > int(times) and f"{restarts:.0f}" not in finding["summary"]:
                yield f"{finding['rule']}: failed {times} times beside {restarts:.0f} restarts"
        batches = {float(each) for each in BATCH.findall(finding["summary"])}
        if (whole := evidence.get("profile_seconds")) is not None:
            batches.add(whole)
        if batches and max(batches) - min(batches) > 0.06 * max(batches):
            yield f"{finding['rule']}: a batch of {', '.join(f'{each:g}' for each in sorted(batches))} s"
