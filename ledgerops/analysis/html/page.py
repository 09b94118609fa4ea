"""The report of a diagnosis as one HTML file: what is wrong, what to do, how it developed, and the numbers behind it.

Everything is in the file: style and plots, no script. What others wrote is escaped (`render`), and a policy in the page
forbids the browser to load or run anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ledgerops.analysis.html.headline import headline
from ledgerops.analysis.html.plot import Mark
from ledgerops.analysis.html.query_plot import PHASES, query_plot
from ledgerops.analysis.html.render import render
from ledgerops.analysis.plot_series import Track
from ledgerops.diagnosis.batch_parts import CONTENTION
from ledgerops.diagnosis.proof import in_words
from ledgerops.diagnosis.report import figures_of
from ledgerops.diagnosis.runbook import PAGES
from ledgerops.model.spark_progress import parse_instant
from ledgerops.signals.query_view import QueryView

Json = Mapping[str, Any]
NO_VIEWS: Mapping[str, QueryView] = {}
MARGIN_SHARE = 1.0  # times its own length that is shown before and after an incident
MIN_MARGIN_SECONDS = 60.0
MAX_SECTIONS = 12  # queries with a section of their own: a page of more is not read at night
MAX_MARKS = 24  # findings that have a number in the plots
MAX_EVENTS = 80  # lines of the timeline
MAX_SLICES = 7  # of a batch's time: more cannot be told apart
MIN_SLICE_SHARE = 0.01  # of a batch: smaller parts are shown together
SHADE = 0.72  # of the colour of the part before it in the same phase
OF_NO_PHASE = (*CONTENTION, "unattributed")  # other parts than the phases are of `add_batch`


def page(
    document: Json, worst: Mapping[str, Json], tracks: Mapping[str, Track], since: float | None = None,
    views: Mapping[str, QueryView] = NO_VIEWS,
) -> str:  # fmt: skip
    """The report of a diagnosis document that has its timeline, as HTML. `worst` are the queries without a finding now,
    as they were at their worst; `tracks` hold the series of their plots, which begin at `since` (epoch seconds) where
    it is given; `views` are the queries as they are now."""
    title = headline(document, worst)
    affected = [(query, worst.get(query["query"])) for query in document["queries"]]
    affected = [each for each in affected if each[0]["root_causes"] or each[1] is not None]
    affected.sort(key=lambda each: (not each[0]["root_causes"], (each[1] or each[0])["health"]))
    numbers = _numbers(document)
    events = _events(document, numbers)
    overview = sorted(document["queries"], key=lambda each: (each["health"], each["query"]))
    plotted = () if affected or len(document["queries"]) > MAX_SECTIONS else document["queries"]
    return render(
        "diagnosis.html", pages=PAGES, title=title.sentence, headline=title,
        applications=sorted({_application(view) for view in views.values()} - {""}), document=document,
        events=events[:MAX_EVENTS], more_events=max(0, len(events) - MAX_EVENTS),
        several=len({each["query"] for each in events}) > 1,
        sections=[_section(*each, document, tracks, numbers, since, views) for each in affected[:MAX_SECTIONS]],
        more_sections=max(0, len(affected) - MAX_SECTIONS), overview=[(query, figures_of(query)) for query in overview],
        muted=[(query["query"], each) for query in overview for each in query.get("muted", ())],
        figures=[_figure(query["query"], document, tracks, numbers, since) for query in plotted],
    )  # fmt: skip


def _application(view: QueryView) -> str:
    """The application of a query, and its Spark: `shop (Spark 4.2.0)`; empty where it is not known."""
    name, spark = view.plan.app_name or "", view.plan.spark_version
    return f"{name} (Spark {spark})" if name and spark else name


def _route(view: QueryView) -> str:
    """What a query reads and writes to, as far as it is known."""
    sources = ", ".join(each.name for each in view.last.sources) if view.last else ""
    sink = view.plan.sink or (view.last.sink if view.last else "")
    return ", ".join([*([f"reads {sources}"] if sources else []), *([f"writes to {sink}"] if sink else [])])


def _numbers(document: Json) -> dict[int, int]:
    """Index of an event of the timeline -> its number in the plots: findings at warning or above that began."""
    begun = [
        index
        for index, each in enumerate(document["timeline"]["events"])
        if each["what"] == "begin" and each["severity"] != "info"
    ]
    return {index: number for number, index in enumerate(begun[:MAX_MARKS], 1)}


def _events(document: Json, numbers: Mapping[int, int]) -> list[Json]:
    """Events of the incidents, with their numbers; all events where there was no incident."""
    timeline = document["timeline"]
    return [
        {**each, "number": numbers.get(index)}
        for index, each in enumerate(timeline["events"])
        if each["incident"] is not None or not timeline["incidents"]
    ]


def _section(
    now: Json, then: Json | None, document: Json, tracks: Mapping[str, Track], numbers: Mapping[int, int],
    since: float | None, views: Mapping[str, QueryView],
) -> Json:  # fmt: skip
    """What the template shows of one query: as it is now, or as it was at its worst where nothing is found any more."""
    shown = then or now
    roots = shown["root_causes"]
    return {
        "now": now, "over": then is not None, "shown": shown, "figures": figures_of(shown),
        "route": _route(views[now["query"]]) if now["query"] in views else "",
        "plot": _figure(now["query"], document, tracks, numbers, since),
        "slices": slices(shown.get("attribution")),
        "symptoms": [
            (each, [root["rule"] for root in roots if each["rule"] in root["explains"]])
            for each in shown["findings"]
            if each["rule"] not in {root["rule"] for root in roots}
        ],
    }  # fmt: skip


def slices(parts: Sequence[Json] | None) -> list[Json]:
    """The parts of a typical batch, largest first, each with its seconds, `share`, `start` (0 to 1), and phase. Parts
    of a phase have its colour of the plots as `style`, each in a lighter `shade` (0 to 1) than the one before."""
    known = sorted((each for each in parts or () if (each.get("seconds") or 0) > 0), key=lambda each: -each["seconds"])
    total = sum(each["seconds"] for each in known)
    large = [each for each in known if each["seconds"] >= MIN_SLICE_SHARE * total][: MAX_SLICES - 1]
    rest = sum(each["seconds"] for each in known) - sum(each["seconds"] for each in large)
    shown = [(in_words(each["part"]), each["seconds"], _phase(each["part"])) for each in large]
    if rest > 0:
        shown.append(("all other parts", rest, ""))
    found: list[Json] = []
    for name, seconds, phase in shown:
        same = sum(each["phase"] == phase for each in found)
        start = sum(each["seconds"] for each in found)
        found.append(
            {
                "part": name, "phase": phase, "seconds": seconds, "share": seconds / total, "start": start / total,
                "style": f"p-{phase or 'rest'}", "shade": round(SHADE**same, 2),
            }
        )  # fmt: skip
    return found


def _phase(part: str) -> str:
    """The phase in which a part passes; empty for what passes in any, or in none."""
    return part if part in PHASES else "" if part in OF_NO_PHASE else "add_batch"


def _figure(
    query: str, document: Json, tracks: Mapping[str, Track], numbers: Mapping[int, int], since: float | None
) -> tuple[Markup, str]:
    """The plot of a query and its caption; empty markup when no batch of it is known."""
    track = tracks.get(query)
    if track is None or not track.batches:
        return Markup(""), ""
    incidents = _incidents(query, document)
    low, high = _window(track, incidents, parse_instant(document["at"]) or 0.0, since)
    events: Sequence[Json] = document["timeline"]["events"]
    marks = [
        Mark(at, number, events[index]["severity"])
        for index, number in numbers.items()
        if events[index]["query"] == query and low <= (at := parse_instant(events[index]["at"]) or 0.0) <= high
    ]
    caption = "the shaded band marks the incident; numbers refer to the timeline." if incidents else "no incident."
    return query_plot(track, low, high, incidents, marks), f"{query}: {caption}"


def _incidents(query: str, document: Json) -> list[tuple[float, float]]:
    end = parse_instant(document["at"]) or 0.0
    return [
        (began, (parse_instant(each["ended"]) if each["ended"] else None) or end)
        for each in document["timeline"]["incidents"]
        if query in each["queries"] and (began := parse_instant(each["began"])) is not None
    ]


def _window(
    track: Track, incidents: Sequence[tuple[float, float]], end: float, since: float | None
) -> tuple[float, float]:
    """The incidents with as much time around them as they took, within what was recorded."""
    first, last = track.batches[0].started, max(end, track.batches[-1].ended)
    if since is not None:
        return max(first, min(since, last - 1.0)), last
    if not incidents:
        return first, last
    began, ended = incidents[0][0], incidents[-1][1]
    margin = max(MIN_MARGIN_SECONDS, MARGIN_SHARE * (ended - began))
    return max(first, began - margin), max(began + 1.0, min(last, ended + margin))
