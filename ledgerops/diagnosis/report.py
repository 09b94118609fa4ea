"""A verdict as a document (JSON) and as text for a person who was woken up."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ledgerops.common import format
from ledgerops.common.format import clean
from ledgerops.diagnosis.place import place
from ledgerops.diagnosis.proof import DIGITS, MAX_TOLD, amount, confidence, cure, proof, unit_of
from ledgerops.model.finding import SEVERITIES, Finding, Severity, Verdict
from ledgerops.model.spark_progress import format_instant, parse_instant

VERSION = 1
UNJUDGED = "; not judged: in continuous mode there are no batches, and Spark reports nothing"
UNTIMED = "trigger interval not recorded ({}): add --trigger 2s, for example, to judge batches by it"
ENDED_BY_ITSELF = "by itself"  # of an incident; others end with their run or the source
WORDS = re.compile(r"\s*\S+\s*|\s+")  # a word with the blanks around it
STYLES = {  # style -> parameters of the terminal's escape sequence
    "critical": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "healthy": "32",
    "idle": "32",
    "faint": "2",
    "strong": "1",
}
PLAIN = ("healthy", "idle", "starting", "stopped", "catching_up")
Line = list[tuple[str, str]]  # (text, style)


def document(verdicts: Iterable[Verdict], at: float, source: str, app: str | None = None) -> dict[str, Any]:
    """The diagnosis document: plain JSON types, instants in ISO 8601, queries by name; `app` where it is known."""
    queries = [_query(verdict) for verdict in sorted(verdicts, key=lambda verdict: verdict.query)]
    known = {"app": app} if app else {}
    return {"version": VERSION, "at": format_instant(at), "source": source, **known, "queries": queries}


def _query(verdict: Verdict) -> dict[str, Any]:
    return {
        "query": verdict.query,
        "status": verdict.status,
        "health": verdict.health,
        "root_causes": [finding_document(finding) for finding in verdict.root_causes],
        "findings": [finding_document(finding) for finding in verdict.findings],
        "ended_lately": [
            finding_document(each.finding) | {"until": format_instant(each.until)} for each in verdict.ended
        ],
        "muted": [finding_document(finding) for finding in verdict.muted],
        "forecast": {name: _rounded(seconds) for name, seconds in asdict(verdict.forecast).items()},
        "figures": {name: _rounded(value) for name, value in verdict.figures.items()},
        "attribution": [
            {"part": each.part, "seconds": _rounded(each.seconds), "share": _rounded(each.share)}
            for each in verdict.attribution
        ],
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding of the document."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "since": format_instant(finding.since),
        "confidence": round(finding.confidence, 2),
        "share": _rounded(finding.share),
        "saving_seconds": _rounded(finding.saving_seconds),
        "batches": list(finding.batches),
        "usual_batches": list(finding.usual_batches),
        "component": asdict(finding.component),
        "summary": finding.summary,
        "evidence": [
            asdict(each) | {"value": _rounded(each.value), "at": format_instant(each.at)} for each in finding.evidence
        ],
        "remedies": [
            {
                "action": each.action,
                "why": each.why,
                "command": each.command,
                "safe": each.safe,
                "prevents": each.prevents,
                "settings": [setting._asdict() for setting in each.settings],
            }
            for each in finding.remedies
        ],
        "explains": list(finding.explains),
        "ruled_out": [asdict(each) for each in finding.ruled_out],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def worst(document: Mapping[str, Any]) -> Severity | None:
    """The highest severity in a document; None when nothing was found."""
    found = [
        finding
        for query in document["queries"]
        for finding in (*query["root_causes"], *query["findings"], *query.get("ended", ()))
    ]
    severities = [each["severity"] for each in (*found, *document.get("incidents", ()))]
    return max((each for each in severities if each in SEVERITIES), key=SEVERITIES.index, default=None)


def text(
    document: Mapping[str, Any],
    colour: bool = False,
    lowest: Severity = "info",
    columns: int | None = None,
    verbose: bool = False,
) -> str:
    """The report: one block a query, a few lines a root cause, and one line to sum up.

    Queries with root causes come first, the least healthy on top. A source that has ended is answered with its
    incidents instead, the worst first, and a line for the state of each query at its end. `lowest` leaves out findings
    below it. `verbose` shows all evidence, why each step helps, and why other causes are ruled out. `columns` breaks
    lines between words at the width of a terminal, as many lines as that takes; None leaves them whole.
    """
    incidents = [each for each in document.get("incidents", ()) if _at_least(each["severity"], lowest)]
    notes = [] if verbose else [each for each in incidents if _is_note(each)]
    incidents = [each for each in incidents if each not in notes]
    told = {each["query"] for each in incidents}
    queries = sorted(document["queries"], key=lambda query: (not query["root_causes"], query["health"], query["query"]))
    by_name = {query["query"]: query for query in queries}
    lines: list[Line] = []
    for each in incidents:
        lines += [*_cause(each, by_name[each["query"]], document["at"], verbose), []]
    written = False
    for query in queries:
        shown = [cause for cause in query["root_causes"] if not incidents and _at_least(cause["severity"], lowest)]
        over = _earlier(query, lowest)
        if lines and not incidents and (shown or over or written):
            lines.append([])
        written = bool(shown or over)
        lines += [
            _head(query, shown),
            *(line for each in shown for line in _cause(each, query, document["at"], verbose)),
        ]
        for each in over:
            times = f"{each['since'][11:19]} to {str(each['until'])[11:19]} UTC"
            was = f"  was {each['severity']} {each['rule']}"
            lines.append([(was, "faint"), (f"  {times}: {clean(each['summary'])}", "")])
        muted = (each for each in query.get("muted", ()) if _at_least(each["severity"], lowest))
        lines += [[(f"  muted {each['rule']}: {clean(each['summary'])}", "faint")] for each in muted]
    if document.get("timeline", {}).get("events"):
        lines += [[], *([(clean(line), style)] for line, style in timeline_lines(document["timeline"]))]
    # a query that has failed is failed, whatever its interval
    if untimed := sum(_is_untimed(query) and query["status"] != "failed" for query in queries):
        lines.append([(UNTIMED.format(format.counted(untimed, "query", "queries")), "faint")])
    lines += [
        *_noted([each for each in notes if each["query"] not in told]),
        [],
        _sum_up_incidents(document, incidents) if "incidents" in document else _sum_up(document, lowest),
        *_lately(document, lowest),
    ]
    if columns is not None:
        lines = [part for line in lines for part in _broken(line, columns)]
    return as_text(lines, colour)


def _broken(line: Line, columns: int) -> Iterator[Line]:
    """A line as lines of at most so many characters where its words allow it, the later ones indented deeper."""
    plain = "".join(part for part, _ in line)
    labelled = len(line) == 2 and line[0][0].startswith("    ")
    indent = " " * (len(line[0][0]) if labelled else len(plain) - len(plain.lstrip()) + 2)
    shown: Line = []
    used = 0
    for word, style in ((word, style) for part, style in line for word in WORDS.findall(part)):
        if used + len(word.rstrip()) > columns and used > len(indent):
            yield shown
            shown, used = [(indent, "")], len(indent)
            word = word.lstrip()
        shown.append((word, style))
        used += len(word)
    yield shown


def _head(query: Mapping[str, Any], causes: Sequence[Mapping[str, Any]]) -> Line:
    status = str(query["status"])
    style = "healthy" if not causes and status in PLAIN else causes[0]["severity"] if causes else "warning"
    ends = [("; the end of its run was not recorded", "faint")] if query.get("end_recorded") is False else []
    ends += [(UNJUDGED, "warning")] if query.get("judged") is False else []
    if starts := query.get("unrecorded_ends"):
        ends.append((f"; nothing was recorded of how {_runs_before(starts)} ended", "warning"))
    return [
        (f"{clean(query['query']):<24} ", "strong"),
        (f"{status.replace('_', ' '):<15}", style),
        (f" health {query['health']:>3}  ", "faint"),
        (figures_of(query), "faint"),
        *ends,
    ]


def _runs_before(starts: Sequence[str]) -> str:
    last = format.instant(starts[-1])
    return f"the run before {last}" if len(starts) == 1 else f"{len(starts)} runs, the last before {last},"


def _is_untimed(query: Mapping[str, Any]) -> bool:
    """Whether batches could not be judged by their interval: the source neither says nor shows it."""
    return query.get("trigger_known") is False and "batch_seconds" in query["figures"]


def _earlier(query: Mapping[str, Any], lowest: Severity) -> Sequence[Mapping[str, Any]]:
    """What was a root cause and is over."""
    return [each for each in query.get("ended", ()) if _at_least(each["severity"], lowest) and not each["explained_by"]]


def figures_of(query: Mapping[str, Any]) -> str:
    """Rate, batch, backlog, lag and forecast of a query of the document, in a line."""
    known = query.get("figures", {})
    parts = []
    if "input_rows_per_second" in known:
        parts.append(f"{format.count(known['input_rows_per_second'])} rows/s in")
    if "batch_seconds" in known:
        interval = known.get("trigger_interval_seconds")
        trigger = f", trigger {format.duration(interval)}" if interval else ""
        parts.append(f"batch {format.duration(known['batch_seconds'])}{trigger}")
    if known.get("backlog_offsets"):
        parts.append(f"backlog {format.count(known['backlog_offsets'])}")
    if known.get("lag_seconds"):
        parts.append(f"lag {format.duration(known['lag_seconds'])}")
    drain, breach = query["forecast"]["drain_seconds"], query["forecast"]["seconds_to_slo_breach"]
    if drain and round(drain):  # less is what arrives while a batch is planned
        parts.append(f"backlog clears in {format.duration(drain)}")
    if breach is not None:
        parts.append(f"objective missed in {format.duration(breach)}" if breach > 0 else "objective missed")
    return ", ".join(parts)


def _cause(cause: Mapping[str, Any], query: Mapping[str, Any], at: str, verbose: bool) -> Iterator[Line]:
    """What happened, the first step, the numbers that prove it, since when, what was ruled out, the runbook."""
    where = place(cause["component"])
    yield [
        (f"  {cause['severity']} {cause['rule']}", cause["severity"]),
        (f"  {clean(query['query'])}{', ' + where if where else ''}", "strong"),
    ]
    yield [(f"    {clean(cause['summary'])}", "")]
    if cause["severity"] == "info" and _is_untimed(query):
        yield _labelled("severity", "info, because the trigger interval is not known: add --trigger 2s, for example")
    for remedy in cause["remedies"][:1]:
        yield _labelled("do first", _step(remedy, verbose))
        if remedy["command"]:
            yield _labelled("command", clean(remedy["command"]))
    for remedy in cause["remedies"][1:] if verbose else filter(None, [cure(cause["remedies"])]):
        yield _labelled("then", _step(remedy, verbose))
    if verbose:
        told = (
            f"{clean(each['name'])} {amount(each['value'], unit_of(each), each['expected'])} "
            f"(expected {clean(each['expected'])})"
            for each in cause["evidence"]
        )
        yield _labelled("evidence", "; ".join(told))
    elif why := proof(cause["evidence"]):
        yield _labelled("why", clean(why))
    sure = f"{cause['confidence']:.0%} sure" if verbose else f"confidence {confidence(cause['confidence'])}"
    yield _labelled("since" if "ended" not in cause else "when", f"{_when(cause, at)}; {sure}")
    if cause["explains"] and verbose:
        yield _labelled("explains", ", ".join(cause["explains"]))
    if cause["ruled_out"]:
        yield _labelled("ruled out", _ruled_out(cause["ruled_out"], verbose))
    yield _labelled("runbook", f"ledgerops rules {cause['rule']}")


def _step(remedy: Mapping[str, Any], verbose: bool) -> str:
    why = f" ({clean(remedy['why'])})" if verbose else ""
    return f"{clean(remedy['action'])}{why}{'' if remedy['safe'] else ' [risky]'}"


def _labelled(label: str, said: str) -> Line:
    return [(f"    {label + ':':<10} ", "faint"), (said, "")]


def _when(cause: Mapping[str, Any], at: str) -> str:
    """From when to when, and for how long; the date where it is not that of `at`, or it is over."""
    since = cause["since"]
    if "ended" in cause:
        length = format.duration(cause["seconds"])
        return f"{moment(since, '')} to {moment(cause['until'], since)} UTC, {length}, ended {cause['ended']}"
    began, now = parse_instant(since), parse_instant(at)
    length = f" ({format.duration(max(0.0, now - began))})" if began is not None and now is not None else ""
    return f"{moment(since, at)} UTC{length}"


def _ruled_out(others: Sequence[Mapping[str, Any]], verbose: bool) -> str:
    said = [f"{each['rule']}: {clean(each['because'])}" if verbose else each["rule"] for each in others]
    if verbose:
        return "; ".join(said)
    more = len(said) - MAX_TOLD
    return ", ".join(said[:MAX_TOLD]) + (f" and {more} more" if more > 0 else "")


def moment(instant: str, day: str) -> str:
    """The time of an instant, with its date where that is not the one of `day`; both in ISO 8601."""
    return instant[11:19] if instant[:10] == day[:10] else instant[:19].replace("T", " ")


def relative(seconds: float) -> str:
    """+0:34, -1:02, +1:00:09"""
    return f"{'-' if round(seconds) < 0 else '+'}{format.clock(abs(round(seconds)))}"


def timeline_lines(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(line, style) of a document's timeline: one line an event, one above each incident."""
    width = max((len(each["query"]) for each in document["events"]), default=0)
    headed: int | None = None
    day = ""
    for each in document["events"]:
        number = each["incident"]
        if number is not None and number != headed:
            yield _heading(document["incidents"][number]), "strong"
            day = each["at"][:10]
        elif each["at"][:10] != day:
            day = each["at"][:10]
            yield f"{day} UTC", "strong"
        headed = number if number is not None else headed
        clock = "" if each["seconds"] is None else relative(each["seconds"])
        style = each["severity"] if each["what"] == "begin" else "critical" if each["what"] == "fail" else ""
        yield f"  {each['at'][11:19]} {clock:>9}  {each['query']:<{width}}  {each['text']}", style or ""


def _heading(incident: Mapping[str, Any]) -> str:
    began, ended = incident["began"], incident["ended"]
    queries = len(incident["queries"])
    until = "ongoing" if ended is None else f"until {moment(ended, began)}"
    return f"incident at {format.instant(began)}, {until}, {format.counted(queries, 'query', 'queries')}"


def _sum_up(document: Mapping[str, Any], lowest: Severity) -> Line:
    queries = document["queries"]
    counted = f"{_counted(queries)} at {format.instant(document['at'])}"
    sick = [
        _grouped((query["query"], cause["rule"]) for cause in query["root_causes"])
        for query in queries
        if any(_at_least(cause["severity"], lowest) for cause in query["root_causes"])
    ]
    over = _grouped((query["query"], each["rule"]) for query in queries for each in _earlier(query, lowest))
    if not sick and over:
        return [(f"{counted}: nothing found now; ended: {over}", "healthy")]
    if not sick:
        return [(f"{counted}: nothing found", "healthy")]
    return [(f"{counted}: {len(sick)} with findings: {', '.join(sick)}", worst(document) or "")]


def _counted(queries: Sequence[Mapping[str, Any]]) -> str:
    """How many there are, and of how many nothing can be found."""
    unjudged = sum(query.get("judged") is False for query in queries)
    return format.counted(len(queries), "query", "queries") + (f" ({unjudged} not judged)" if unjudged else "")


def _is_note(incident: Mapping[str, Any]) -> bool:
    """Whether an incident did no harm and was over before its source ended: nobody has to do anything about it."""
    return (incident["severity"], incident["ended"]) == ("info", ENDED_BY_ITSELF)


def _noted(notes: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """Incidents without harm that are over, of queries of which nothing else is told, in a line."""
    if notes:
        named = _grouped((each["rule"], each["query"]) for each in notes)
        yield [(f"harmless, and over by itself: {named} (-v tells more)", "faint")]


def _lately(document: Mapping[str, Any], lowest: Severity) -> Iterator[Line]:
    """What ended in the last hour, in a line."""
    shown = (each for each in document.get("ended_lately", ()) if _at_least(each["severity"], lowest))
    ended = [f"{clean(each['query'])} ({each['rule']}, until {each['until'][11:16]})" for each in shown]
    if ended:
        yield [(f"ended in the last hour: {', '.join(ended)}", "faint")]


def _sum_up_incidents(document: Mapping[str, Any], incidents: Sequence[Mapping[str, Any]]) -> Line:
    counted = f"{_counted(document['queries'])} until {format.instant(document['at'])}"
    if not incidents:
        return [(f"{counted}: nothing found", "healthy")]
    named = _grouped((each["query"], each["rule"]) for each in incidents)
    return [(f"{counted}: {format.counted(len(incidents), 'incident')}: {named}", worst(document) or "")]


def _grouped(pairs: Iterable[tuple[str, str]]) -> str:
    """daily_counts (key-skew, slow-sink), transfers (slow-sink): each of them once, in their order."""
    found: dict[str, dict[str, None]] = {}
    for name, member in pairs:
        found.setdefault(clean(name), {})[clean(member)] = None
    return ", ".join(f"{name} ({', '.join(members)})" for name, members in found.items())


def _at_least(severity: str, lowest: Severity) -> bool:
    return SEVERITIES.index(severity) >= SEVERITIES.index(lowest)


def as_text(lines: Sequence[Line], colour: bool) -> str:
    """Lines as text, with the colours of a terminal or without."""
    if not colour:
        return "\n".join("".join(part for part, _ in line).rstrip() for line in lines) + "\n"
    codes = {style: f"\x1b[{code}m" for style, code in STYLES.items()}
    return "".join(
        "".join(f"{codes[style]}{text}\x1b[0m" if text and style in codes else text for text, style in line) + "\n"
        for line in lines
    )
