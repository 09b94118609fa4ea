"""The parts of the page: timeline, root cause, evidence, what was ruled out, remedies, attribution, all queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledgerops.analysis.html.markup import Markup, Value, join, tag
from ledgerops.common import format
from ledgerops.diagnosis.report import amount, figures_of, relative

Json = Mapping[str, Any]
EVENTS = 80  # lines of the timeline: more is a log, not a story
NOTHING = Markup("")
SLICES = 7  # styles of the attribution's bar
SMALL = 0.01  # share of a batch below which a part is not told apart


def first_step(remedy: Json) -> Markup:
    return tag("p", tag("b", "Do first:"), *_remedy(remedy), class_="do")


def timeline(told: Json, numbers: Mapping[int, int]) -> Markup:
    """What began when, in UTC and from the beginning of its incident; the numbers are those of the plots."""
    events = list(enumerate(told["events"]))
    if told["incidents"]:
        events = [each for each in events if each[1]["incident"] is not None]
    if not events:
        return NOTHING
    several = len({each["query"] for _, each in events}) > 1
    rows = [
        tag(
            "tr",
            tag("td", _number(numbers.get(index), each)),
            tag("td", each["at"][11:19], class_="when"),
            tag("td", "" if each["seconds"] is None else relative(each["seconds"]), class_="amount"),
            *([tag("td", each["query"])] if several else []),
            tag("td", each["text"], class_="critical" if each["what"] == "fail" else None),
        )
        for index, each in events[:EVENTS]
    ]
    heads = ["", "UTC", "from begin", *(["query"] if several else []), "what"]
    left = len(events) - EVENTS
    more = [tag("p", f"{left} later events are in the text report", class_="faint")] if left > 0 else []
    return join([tag("h2", "How it came about"), table(heads, rows, amounts=("from begin",)), *more])


def _number(number: int | None, event: Json) -> Markup:
    if number is None:
        return NOTHING
    return tag("span", tag("span", str(number)), class_=f"round {event['severity']}")


def state(now: Json, then: Json | None) -> Markup:
    """Status, health and figures, in a line."""
    shown = then or now
    style = shown["root_causes"][0]["severity"] if shown["root_causes"] else "good"
    status = tag("span", shown["status"].replace("_", " "), class_=f"tagged {style}")
    told = figures_of(shown)
    line = f" health {shown['health']} of 100" + (f"; {told}" if told else "")
    if then is None:
        return tag("p", status, line)
    since = f" Over: now {now['status'].replace('_', ' ')}, health {now['health']}. Told below is its worst moment."
    return tag("p", status, line + ".", tag("b", since))


def cause(told: Json) -> Markup:
    component = told["component"]
    detail = f" ({component['detail']})" if component["detail"] else ""
    where = f", {component['kind']} {component['name']}{detail}" if component["kind"] != "query" else ""
    share = f", {told['share']:.0%} of the trouble" if told.get("share") is not None else ""
    meta = f"since {told['since'][11:19]} UTC, {told['confidence']:.0%} sure{share}"
    return tag(
        "div",
        tag("h3", tag("span", told["severity"], class_=f"tagged {told['severity']}"), f" {told['rule']}{where}"),
        tag("p", told["summary"]),
        tag("p", meta, class_="faint"),
        class_=f"cause {told['severity']}",
    )


def proof(told: Json, named: bool) -> Markup:
    """Evidence, what was ruled out, and what to do, of one root cause."""
    of = f": {told['rule']}" if named else ""
    evidence = [
        tag(
            "tr",
            tag("td", tag("code", each["name"])),
            tag("td", amount(each["value"], each["unit"]), class_="amount"),
            tag("td", each["expected"]),
            tag("td", each["at"][11:19], class_="when"),
        )
        for each in told["evidence"]
    ]
    parts = [
        tag("h3", f"What to do{of}"),
        tag("ol", *(tag("li", *_remedy(each)) for each in told["remedies"])) if told["remedies"] else NOTHING,
        tag("p", "Runbook: ", tag("code", f"ledgerops rules {told['rule']}"), class_="faint"),
        tag("h3", f"Evidence{of}"),
        table(["measured", "value", "expected", "at (UTC)"], evidence, amounts=("value",)),
    ]
    if told["ruled_out"]:
        out = [tag("li", tag("b", each["rule"]), f": {each['because']}") for each in told["ruled_out"]]
        parts += [tag("h3", f"What it is not{of}"), tag("ul", *out)]
    return join(parts)


def _remedy(remedy: Json) -> list[Value]:
    """What, why, and the command; what cannot be undone is marked."""
    told: list[Value] = [f"{remedy['action']} "]
    if remedy["command"]:
        told += [tag("code", remedy["command"]), " "]
    told.append(tag("span", f"({remedy['why']})", class_="faint"))
    if not remedy["safe"]:
        told += [" ", tag("span", "cannot be undone", class_="tagged warning")]
    return told


def symptoms(query: Json) -> Markup:
    """What else was found: the symptoms that the root causes explain."""
    roots = {each["rule"] for each in query["root_causes"]}
    rows = []
    for each in query["findings"]:
        if each["rule"] in roots:
            continue
        by = [root["rule"] for root in query["root_causes"] if each["rule"] in root["explains"]]
        rows.append(
            tag(
                "tr",
                tag("td", tag("span", each["severity"], class_=f"tagged {each['severity']}")),
                tag("td", each["rule"], class_="when"),
                tag("td", each["since"][11:19], class_="when"),
                tag("td", each["summary"]),
                tag("td", ", ".join(by), class_="when" if len(by) == 1 else None),
            )
        )
    if not rows:
        return NOTHING
    return join([tag("h3", "What it explains"), table(["", "symptom", "since", "what", "explained by"], rows)])


def attribution(told: Sequence[Json] | None) -> Markup:
    """Where the time of a typical batch goes: a bar of its parts, and a table that says the same."""
    known = sorted((each for each in told or () if (each.get("seconds") or 0) > 0), key=lambda each: -each["seconds"])
    total = sum(each["seconds"] for each in known)
    if total <= 0:
        return NOTHING
    large = [each for each in known if each["seconds"] >= SMALL * total][: SLICES - 1]
    rest = total - sum(each["seconds"] for each in large)
    known = [*large, *([{"part": "all other parts", "seconds": rest}] if rest > 0 else [])]
    bar, rows, left = [], [], 0.0
    for number, each in enumerate(known):
        width = 948.0 * each["seconds"] / total
        style = f"s{number if each in large else SLICES - 1}"
        bar.append(tag("rect", x=left + 0.5, y=0, width=max(0.5, width - 1.0), height=26, class_=style))
        left += width
        swatch = tag("svg", tag("rect", width=12, height=12, class_=style), width=12, height=12, style="width:12px")
        rows.append(
            tag(
                "tr",
                tag("td", swatch, class_="swatch"),
                tag("td", each["part"].replace("_", " ")),
                tag("td", format.duration(each["seconds"]), class_="amount"),
                tag("td", f"{each['seconds'] / total:.0%}", class_="amount"),
            )
        )
    picture = tag("svg", *bar, viewBox="0 0 948 26", role="img", aria_label="parts of a batch; the table says the same")
    listed = table(["", "part", "time", "share"], rows, amounts=("time", "share"))
    return join([tag("h3", "Where the time of a typical batch went"), tag("figure", picture), listed])


def overview(queries: Sequence[Json]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", each["query"]),
            tag("td", each["status"].replace("_", " "), class_=_style(each)),
            tag("td", str(each["health"]), class_="amount"),
            tag("td", ", ".join(cause["rule"] for cause in each["root_causes"])),
            tag("td", figures_of(each)),
        )
        for each in sorted(queries, key=lambda each: (each["health"], each["query"]))
    ]
    heads = ["query", "status", "health", "root causes", "figures"]
    return join([tag("h2", "All queries now"), table(heads, rows, amounts=("health",))])


def _style(query: Json) -> str | None:
    return query["root_causes"][0]["severity"] if query["root_causes"] else None


def table(heads: Sequence[str], rows: Sequence[Markup], amounts: Sequence[str] = ()) -> Markup:
    head = tag("tr", *(tag("th", each, class_="amount" if each in amounts else None) for each in heads))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), class_="scroll")
