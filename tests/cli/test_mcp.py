"""The server as an assistant uses it: the SDK's own client, over stdin and stdout of a real process.

python -m tests.cli.test_mcp    writes the exchange of docs/guides/mcp.md
"""

import json
import re
import sys

import pytest

from ledgerops.analysis.answers import MAX_CHARACTERS, fit
from ledgerops.model.spark_progress import format_instant
from tests.paths import RECORDED, ROOT

anyio = pytest.importorskip("anyio")
pytest.importorskip("mcp")

from mcp.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

FAULT = RECORDED / "drills/overload/recording"
GUIDE = ROOT / "docs/guides/mcp.md"
EXCHANGE = re.compile(r"(<!-- exchange -->\n).*?(<!-- end of the exchange -->)", re.DOTALL)


def ask(*calls, place=FAULT, more=()):
    """The tools, and the answers to calls of them as (text, is it an error)."""

    async def talk():
        command = ["-m", "ledgerops", "mcp", "--from", str(place), *map(str, more)]
        server = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT)
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            found = [await client.call_tool(name, arguments) for name, arguments in calls]
            return tools, [(each.content[0].text, bool(each.is_error)) for each in found]

    return anyio.run(talk)


NAMES = {
    "list_queries", "diagnose", "timeline", "batch_profile", "capacity", "compare", "rule", "runbook", "metric",
}  # fmt: skip
QUERY = {"query": "faint_harbor"}
REFUSED = [
    ("compare", {}, "give change_at, or start the server with --before and another source"),
    ("diagnose", {"query": "no_such_query"}, "no query 'no_such_query' in"),
    ("rule", {"slug": "input-overlod"}, "no rule is called 'input-overlod'; did you mean input-overload?"),
    ("metric", {"name": "ledgerops_lag"}, "no metric is called 'ledgerops_lag'"),
    (
        "capacity",
        {**QUERY, "load_factor": -2.0},
        "load_factor is out of range: -2.0; give more than 0, and at most 1,000",
    ),
    ("capacity", {**QUERY, "cores": 0}, "cores is out of range: 0; give more than 0, and at most 100,000"),
    ("diagnose", {"at": "yesterday"}, "'yesterday' is not a time; write it like 2026-11-21T08:30:00Z"),
]


@pytest.fixture(scope="module")
def asked():
    """Everything that is asked of the recorded fault, once."""
    calls = [
        *exchange_calls(),
        ("timeline", {}),
        ("capacity", {**QUERY, "load_factor": 2.0}),
        ("runbook", {"slug": "input-overload"}),
        ("metric", {"name": "ledgerops_batches_total"}),
        *(call for *call, _ in REFUSED),
    ]
    tools, answers = ask(*calls)
    return tools, list(zip(calls, answers, strict=True))


def exchange_calls():
    """What the guide shows, at a moment of the recorded fault when it had long been found."""
    times = json.loads((FAULT.parent / "times.json").read_text())
    moment = format_instant((times["injected"] + times["repaired"]) / 2 + 10)
    return [
        ("list_queries", {}),
        ("diagnose", {**QUERY, "at": moment}),
        ("batch_profile", {**QUERY, "at": moment}),
        ("rule", {"slug": "input-overload"}),
    ]


def exchange(answers):
    """The exchange as the guide shows it: tools, arguments, answers, sizes."""
    parts = []
    for (name, arguments), (text, _) in answers:
        parts += [f"`{name}` {json.dumps(arguments)}: {len(text)} characters", "", "```text", text, "```", ""]
    return "\n".join(parts)


def answer_of(asked, name, **arguments):
    return next(answer for (called, given), answer in asked[1] if called == name and arguments.items() <= given.items())


def test_every_tool_only_reads_and_says_what_it_does(asked):
    tools, _ = asked
    assert {tool.name for tool in tools} == NAMES
    assert all(tool.annotations.read_only_hint and tool.description.endswith(".") for tool in tools)


def test_an_assistant_gets_the_cause_with_its_numbers_and_the_first_step(asked):
    text, failed = answer_of(asked, "diagnose", **QUERY)

    assert not failed
    assert "critical input-overload" in text
    assert re.search(r"rows/s arrive(?: \(usually [\d,]+\))?, [\d.]+ times the [\d,]+ rows/s that are processed", text)
    assert "why: " in text
    assert "do first:  ask the producer whether the load is intended; spread or reduce it" in text


def test_every_answer_is_small_and_holds_no_path_of_a_checkpoint(asked):
    for call, (text, failed) in asked[1]:
        assert 0 < len(text) <= MAX_CHARACTERS, call
        assert "checkpoint" not in text or call[0] in ("rule", "runbook"), call
        assert failed or "file:/" not in text, call


@pytest.mark.parametrize(("name", "arguments", "line"), REFUSED)
def test_what_cannot_be_answered_is_an_error_of_one_line(asked, name, arguments, line):
    text, failed = next(answer for call, answer in asked[1] if call == [name, arguments])
    assert failed and line in text and "\n" not in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("timeline", "input-overload began"),
        ("capacity", "faint_harbor"),
        ("runbook", "Mitigation:"),
        ("metric", "ledgerops_batches_total (counter): Micro-batches committed.\nfaint_harbor :"),
    ],
)
def test_the_other_tools_answer(asked, name, expected):
    text, failed = answer_of(asked, name)
    assert not failed and expected in text


def test_two_sources_are_compared():
    healthy = RECORDED / "drills/ordinary/recording"
    _, [(text, failed)] = ask(("compare", {}), place=healthy, more=("--before", healthy))
    assert not failed
    assert "worse" not in text.replace("0 worse", "")


def test_a_source_that_cannot_be_read_is_an_error_of_the_tool_and_not_of_the_server(tmp_path):
    _, answers = ask(("list_queries", {}), ("rule", {"slug": "key-skew"}), place=tmp_path / "absent")
    assert [failed for _, failed in answers] == [True, False]
    assert "no such file or folder" in answers[0][0]


def test_a_long_answer_ends_with_whole_lines_and_says_what_is_missing():
    text = fit(f"line {number} {'x' * 90}" for number in range(100))
    assert len(text) <= MAX_CHARACTERS
    assert re.search(r"x\n\(\d+ more lines are left out; ask for one query\)$", text)
    assert fit(["one", "two"]) == "one\ntwo"


def test_the_guide_shows_the_exchange_as_it_is(asked):
    """`python -m tests.cli.test_mcp` writes it anew."""
    shown = EXCHANGE.search(GUIDE.read_text("utf-8"))
    assert shown and exchange(asked[1][:4]) in shown[0]


if __name__ == "__main__":
    _, found = ask(*exchange_calls())
    page = GUIDE.read_text("utf-8")
    text = exchange(list(zip(exchange_calls(), found, strict=True)))
    GUIDE.write_text(EXCHANGE.sub(lambda match: f"{match[1]}{text}{match[2]}", page), "utf-8")
