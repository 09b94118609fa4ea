"""The page: what is wrong in one sentence, what to do, how it came about, and the numbers that prove it.

Everything is in one file: style, plots as SVG, no script. What others wrote goes through `markup`, and a policy in the
page forbids the browser to load or run anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from ledgerops.analysis.html import parts
from ledgerops.analysis.html.headline import headline
from ledgerops.analysis.html.markup import Markup, join, tag, text
from ledgerops.analysis.html.plots import Mark, plots
from ledgerops.analysis.plot_series import Track
from ledgerops.common import format
from ledgerops.model.spark_progress import parse_instant
from ledgerops.version import __version__

Json = Mapping[str, Any]
AROUND = 1.0  # times its own length that is shown before and after an incident
LEAST_AROUND = 60.0  # seconds
SHOWN = 12  # queries with a section of their own: a page of more is not read at night
MARKED = 24  # findings that have a number in the plots


def page(document: Json, worst: Mapping[str, Json], tracks: Mapping[str, Track], since: float | None = None) -> str:
    """The report of a diagnosis document that has its timeline, as HTML.

    `worst` are the queries of which nothing is found now, as they were at their worst; `tracks` hold their figures.
    """
    told = headline(document, worst)
    sick = [(query, worst.get(query["query"])) for query in document["queries"]]
    sick = [each for each in sick if each[0]["root_causes"] or each[1] is not None]
    sick.sort(key=lambda each: (not each[0]["root_causes"], (each[1] or each[0])["health"]))
    numbers = _numbers(document)
    body = [
        tag("h1", told.sentence, class_=told.style),
        *([tag("p", told.summary, class_="lead")] if told.summary else []),
        *([parts.first_step(told.remedy)] if told.remedy else []),
        _meta(document),
        parts.timeline(document["timeline"], numbers),
        *(_section(now, then, document, tracks, numbers, since) for now, then in sick[:SHOWN]),
        *(
            [tag("p", f"{len(sick) - SHOWN} more queries with findings are in the text report", class_="faint")]
            if len(sick) > SHOWN
            else []
        ),
        parts.overview(document["queries"]),
    ]
    if not sick and len(document["queries"]) <= SHOWN:
        body += [_figure(query["query"], document, tracks, numbers, since) for query in document["queries"]]
    body.append(_foot(document))
    return framed(told.sentence, body)


def framed(title: str, body: list[Markup]) -> str:
    """A body in what all reports have around theirs."""
    template = Template(files("ledgerops.analysis.html").joinpath("report.html").read_text("utf-8"))
    return template.substitute(title=text(f"ledgerops: {title}"), body=join(body, "\n"))


def _meta(document: Json) -> Markup:
    count = len(document["queries"])
    queries = f"{count} {'query' if count == 1 else 'queries'}"
    at = format.instant(document["at"])
    return tag("p", f"As of {at}, {queries}, from ", tag("code", document["source"]), class_="meta")


def _foot(document: Json) -> Markup:
    return tag(
        "footer",
        f"ledgerops {__version__}; times are UTC; every number can be recomputed from the recording",
        class_="faint",
    )


def _numbers(document: Json) -> dict[int, int]:
    """Index of an event of the timeline -> its number in the plots: findings at warning or above that began."""
    begun = [
        index
        for index, each in enumerate(document["timeline"]["events"])
        if each["what"] == "begin" and each["severity"] != "info"
    ]
    return {index: number for number, index in enumerate(begun[:MARKED], 1)}


def _section(
    now: Json,
    then: Json | None,
    document: Json,
    tracks: Mapping[str, Track],
    numbers: Mapping[int, int],
    since: float | None,
) -> Markup:
    """One query: as it is now, or as it was at its worst where nothing is found any more."""
    query = then or now
    return tag(
        "section",
        tag("h2", now["query"]),
        parts.state(now, then),
        *(parts.cause(each) for each in query["root_causes"]),
        _figure(now["query"], document, tracks, numbers, since),
        parts.attribution(query.get("attribution")),
        parts.symptoms(query),
        *(parts.proof(each, len(query["root_causes"]) > 1) for each in query["root_causes"]),
    )


def _figure(
    query: str, document: Json, tracks: Mapping[str, Track], numbers: Mapping[int, int], since: float | None
) -> Markup:
    track = tracks.get(query)
    if track is None or not track.batches:
        return Markup("")
    bands = _bands(query, document)
    low, high = _window(track, bands, parse_instant(document["at"]) or 0.0, since)
    events: Sequence[Json] = document["timeline"]["events"]
    marks = [
        Mark(at, number, events[index]["severity"])
        for index, number in numbers.items()
        if events[index]["query"] == query and low <= (at := parse_instant(events[index]["at"]) or 0.0) <= high
    ]
    drawn = plots(track, low, high, bands, marks)
    if not drawn:
        return Markup("")
    caption = "The band is the incident, the numbers are those of the timeline." if bands else "No incident."
    return tag("figure", drawn, tag("figcaption", f"{query}: {caption}"))


def _bands(query: str, document: Json) -> list[tuple[float, float]]:
    end = parse_instant(document["at"]) or 0.0
    return [
        (began, (parse_instant(each["ended"]) if each["ended"] else None) or end)
        for each in document["timeline"]["incidents"]
        if query in each["queries"] and (began := parse_instant(each["began"])) is not None
    ]


def _window(track: Track, bands: Sequence[tuple[float, float]], end: float, since: float | None) -> tuple[float, float]:
    """The incidents with as much time around them as they took, within what was recorded."""
    first, last = track.batches[0].started, max(end, track.batches[-1].ended)
    if since is not None:
        return max(first, min(since, last - 1.0)), last
    if not bands:
        return first, last
    began, ended = bands[0][0], bands[-1][1]
    around = max(LEAST_AROUND, AROUND * (ended - began))
    return max(first, began - around), max(began + 1.0, min(last, ended + around))
