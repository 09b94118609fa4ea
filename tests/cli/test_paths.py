"""Every command that reads a path refuses at once what is no regular file: a FIFO, a device, a file without an end."""

import argparse
import os
from pathlib import Path

import pytest

from ledgerops.cli import COMMANDS, build_parser, main

# option -> the arguments with which a command reads the path that it names
READ = {
    ("run", "--plan"): "run large_credits --plan {}",
    ("run", "--kafka-config"): "run large_credits --source kafka --bootstrap-servers localhost:1 --kafka-config {}",
    ("run", "--properties-file"): "run large_credits --out {}-out --properties-file {}",
    ("exec", "script"): "exec {}",
    ("load", "plan"): "load {} --bootstrap-servers localhost:1",
    ("load", "--kafka-config"): "load default --bootstrap-servers localhost:1 --kafka-config {}",
    ("load test", "plan"): "load test {} --job large_credits --out {}-out",
    ("verify", "--manifest"): "verify {}-run --manifest {}",
    ("verify", "--kafka-config"): "verify {}-run --bootstrap-servers localhost:1 --kafka-config {} --manifest {}",
    ("diagnose", "source"): "diagnose {}",
    ("diagnose", "--from"): "diagnose --from {}",
    ("capacity", "source"): "capacity {}",
    ("capacity", "--from"): "capacity --from {}",
    ("state", "checkpoint"): "state {}-checkpoint",
    ("render", "--config"): "render --config {} --out {}-out",
    ("topics", "--kafka-config"): "topics --bootstrap-servers localhost:1 --kafka-config {}",
    ("topics", "--plan"): "topics --bootstrap-servers localhost:1 --plan {}",
    ("notify", "--senders"): "notify --senders {}",
    ("notify", "--token-file"): "notify --token-file {}",
    ("drill", "--held-back"): "drill --export {}-out --score {}-none --held-back {}",
}
# folders, what is written, and what another test covers (certificates: the TLS library reads them)
OTHER = {
    ("run", "--landing"), ("run", "--out"), ("run", "--executor-python"), ("load", "--to"), ("load", "--data"),
    ("load", "--manifest"), ("load", "--samples"), ("load search", "--out"), ("load test", "--manifest"),
    ("load test", "--recording"), ("load test", "--out"), ("verify", "run_folder"),
    ("verify", "--data"), ("diagnose", "--html"), ("drill", "--out"), ("drill", "--score"), ("drill", "--publish"),
    ("drill", "--save"), ("drill", "--export"), ("render", "--out"), ("topics", "--data"), ("broker", "--folder"),
    ("jars", "--settings"), ("notify", "--queue"), ("notify", "--tls-certificate"), ("notify", "--tls-key"),
    ("notify", "--tls-client-ca"),
    ("notify", "--exporter-token-file"), ("notify", "--exporter-password-file"), ("notify", "--prometheus-token-file"),
    ("notify", "--prometheus-password-file"), ("notify", "--client-certificate"), ("notify", "--client-key"),
    ("mcp", "source"), ("mcp", "--from"), ("mcp", "--before"),  # the reader of diagnose
    ("status", "source"), ("status", "--from"),  # a URL
}  # fmt: skip
REFUSED = (
    "odd: not a regular file",
    "odd: it has more than",
    "odd:1: a line of more than",
    "no such script: ",
    "offsets/1: not a",
)
WORDS = ("FILE", "PATH", "FOLDER", "PLACE", "SOURCE", "PLAN", "RUN", "SCRIPT", "CHECKPOINT")


def paths() -> set[tuple[str, str]]:
    found = set()
    for command in COMMANDS:
        parser = build_parser(command.name)
        [subs] = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        for action in subs.choices[command.name]._actions:
            if action.type is Path or any(word in str(action.metavar).replace("FILES", "") for word in WORDS):
                found.add((command.name, action.option_strings[0] if action.option_strings else action.dest))
    return found


def test_every_path_of_a_command_is_known_here():
    assert paths() == READ.keys() | OTHER
    assert not READ.keys() & OTHER


@pytest.fixture(params=["a FIFO", "a device", "a file of 3 GB"])
def odd(request, tmp_path):
    """A path that must not be read to its end."""
    path = tmp_path / "odd"
    match request.param:
        case "a FIFO":
            os.mkfifo(path)
        case "a device":
            path.symlink_to("/dev/zero")
        case _:
            with path.open("wb") as file:
                file.truncate(3 * 1024**3)
    (tmp_path / "odd-run" / "output" / "large_credits").mkdir(parents=True)
    for part in ("offsets", "commits", "state/0/0"):
        (tmp_path / "odd-checkpoint" / part).mkdir(parents=True)
    (tmp_path / "odd-checkpoint" / "metadata").write_text('{"id":"a"}')
    (tmp_path / "odd-checkpoint" / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0,"conf":{}}\n0')
    (tmp_path / "odd-checkpoint" / "offsets" / "1").symlink_to(path)
    (tmp_path / "odd-checkpoint" / "commits" / "1").touch()
    return path


@pytest.mark.timeout(60)
@pytest.mark.parametrize("arguments", READ.values(), ids=[" ".join(each) for each in READ])
def test_what_is_no_regular_file_is_refused_in_one_line(arguments, odd, monkeypatch, capsys):
    if arguments.startswith("exec") and odd.is_file():
        pytest.skip("a script may have any size")
    monkeypatch.chdir(odd.parent)
    monkeypatch.setenv("LEDGEROPS_NOTIFY_SENDERS", "json://localhost:1")
    code = main(arguments.replace("{}", str(odd)).split())
    errors = capsys.readouterr().err

    assert code == 2, errors
    assert any(reason in errors for reason in REFUSED), errors
    assert errors.startswith("ledgerops: ") and errors.count("\n") == 1, errors
