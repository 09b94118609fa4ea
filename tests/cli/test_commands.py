"""What holds for every command."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import shtab

from ledgerops import __version__
from ledgerops.cli import COMMANDS, GROUPS, build_parser, join_command, main
from ledgerops.cli.completion import SHELLS, known_names, whole_parser
from ledgerops.cli.exec import script_and_arguments
from tests.paths import RECORDED
from tests.serving import talking

NAMES = [command.name for command in COMMANDS]


def test_every_command_has_help_with_an_example_that_parses(subtests: pytest.Subtests):
    for command in COMMANDS:
        with subtests.test(command.name):
            module = import_module(command.module)
            assert module.__doc__
            found = re.findall(
                rf"(?:^ {{4}}.*|example: .*)\bledgerops ({command.name}\b[^`|>)\n]*)", module.__doc__, re.M
            )
            examples = [example for example in found if join_command(example.split())[0] == command.name]
            assert examples, f"{command.module} has no example"
            for example in examples:
                words = join_command(shlex.split(re.sub(r"\s#.*", "", example)))
                if "--launcher" in words:  # it prints a path and ends
                    continue
                args = build_parser(command.name).parse_args(words)
                assert callable(args.run)


def test_every_option_is_explained(subtests: pytest.Subtests):
    for command in COMMANDS:
        with subtests.test(command.name):
            [commands] = [action for action in build_parser(command.name)._actions if action.dest == "command"]

            assert [action.dest for action in commands.choices[command.name]._actions if not action.help] == []


def test_help_lists_the_commands_and_begins_with_what_a_user_needs(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out

    for command in COMMANDS:
        assert re.search(rf"^ +{command.name} +{re.escape(command.summary[:20])}", out, re.MULTILINE)
    assert [out.index(heading) for heading in GROUPS] == sorted(out.index(heading) for heading in GROUPS)
    assert out.index("\n  diagnose") < out.index("\n  run ") < out.index("\n  jars")
    assert "Begin with:\n    ledgerops diagnose\n" in out


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_80_columns_but_for_examples(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    out = capsys.readouterr().out

    assert ended.value.code == 0 and f"usage: ledgerops {name}" in out
    assert [line for line in out.splitlines() if len(line) > 80 and line[:4].strip()] == []


@pytest.mark.parametrize("command", ["diagnose", "capacity"])
@pytest.mark.parametrize("option", [[], ["--from"], ["--url"]], ids=["alone", "as --from", "as --url"])
def test_a_source_is_an_argument_and_keeps_its_older_names(command, option, capsys):
    place = str(RECORDED / "drills" / "overload" / "recording")
    main([command, place])
    expected = capsys.readouterr().out

    main([command, *option, place])
    assert capsys.readouterr().out == expected != ""


def test_help_imports_nothing_heavy():
    code = "import sys, ledgerops.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())

    assert loaded & {"pyspark", "pandas", "numpy", "pyarrow", "rich", "prometheus_client", "yaml"} == set()


def test_a_command_imports_spark_only_when_it_runs(subtests: pytest.Subtests):
    for command in COMMANDS:
        with subtests.test(command.name):
            tree = ast.parse(Path(import_module(command.module).__file__).read_text("utf-8"))
            imported = [
                name
                for node in tree.body
                if isinstance(node, ast.Import | ast.ImportFrom)
                for name in (
                    [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                )
            ]

            assert [name for name in imported if name and name.split(".")[0] in ("pyspark", "pandas", "rich")] == []


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert (ended.value.code, capsys.readouterr().out) == (0, f"ledgerops {__version__}\n")


def test_no_command_prints_the_help_and_is_refused(capsys):
    assert main([]) == 2
    assert "usage: ledgerops" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        pytest.param(["diagnos"], "no command 'diagnos'; did you mean diagnose?", id="a slip"),
        pytest.param(["xyz"], "no command 'xyz'; see ledgerops --help", id="no command at all"),
        pytest.param(
            ["status", "--nope"],
            "unrecognized arguments: --nope; see ledgerops status --help",
            id="an option that there is not",
        ),
        pytest.param(
            ["diagnose", "--form", "recording"],
            "unrecognized arguments: --form (did you mean --from?); see ledgerops diagnose --help",
            id="a misspelt option",
        ),
        pytest.param(
            ["load", "search", "daily_counts", "--quik"],
            "unrecognized arguments: --quik (did you mean --quick?); see ledgerops load search --help",
            id="a misspelt option of a command of two words",
        ),
        pytest.param(
            ["--verison"],
            "unrecognized arguments: --verison (did you mean --version?); see ledgerops --help",
            id="a misspelt option without a command",
        ),
        pytest.param(["version"], "no command 'version'; did you mean --version?", id="an option's word"),
        pytest.param(["diagnose", "a", "--from", "b"], "two sources: a and b; give one", id="two sources"),
        pytest.param(
            ["status", "run/recording"],
            "run/recording is not the address of an exporter; for a recording, run ledgerops diagnose run/recording",
            id="a recording where only an exporter will do",
        ),
        pytest.param(
            ["compare", "before", "after", "--form"],
            "unrecognized arguments: --form; see ledgerops compare --help",
            id="an option that is near none",
        ),
        pytest.param(
            ["completion", "csh"],
            "argument shell: invalid choice: 'csh' (choose from 'bash', 'zsh', 'fish'); "
            "see ledgerops completion --help",
            id="a value that there is not",
        ),
        pytest.param(
            ["status", "--url", "http://127.0.0.1:1"],
            "cannot reach an exporter at http://127.0.0.1:1: connection refused; is the application running?",
            id="an exporter that is not there",
        ),
        pytest.param(["plans", "whal"], "no plan 'whal'; did you mean whale?", id="a plan that is misspelt"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(refusal, argv, line):
    assert refusal(*argv) == line


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", "ssh-2.0-openssh_9.2", id="another protocol"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
            "the answer ended early: 98 bytes are missing",
            id="an exporter that ends while it answers",
        ),
        pytest.param(b"", "remote end closed connection without response", id="one that hangs up"),
    ],
)
def test_what_is_no_answer_of_an_exporter_is_one_line(refusal, answer, reason):
    def say(connection):
        connection.recv(65_536)
        connection.sendall(answer)

    with talking(say) as port:
        assert refusal("status", "--url", f"http://127.0.0.1:{port}", "--once") == (
            f"cannot reach an exporter at http://127.0.0.1:{port}: {reason}; is the application running?"
        )


@pytest.mark.parametrize("queries", [5, [5], [{}], [{"query": "q", "status": "healthy", "batch": "x"}]])
def test_a_document_of_another_server_is_one_line(refusal, receiver, queries):
    receiver.pages["/status"] = {"queries": queries}

    assert refusal("status", "--url", receiver.url, "--once") == (
        f"{receiver.url}/status did not return a status document; is this a ledgerops exporter?"
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:port", "nonnumeric port: 'port'"),
        ("http://my host", "url can't contain control characters. 'my host' (found at least ' ')"),
    ],
)
def test_an_address_that_is_none_is_one_line(refusal, url, reason):
    assert refusal("status", "--url", url) == (
        f"cannot reach an exporter at {url}: {reason}; is the application running?"
    )


def test_an_address_that_cannot_be_parsed_is_one_line(refusal):
    assert refusal("diagnose", "--from", "http://[") == (
        "cannot reach an exporter at http://[: invalid ipv6 url; start the application, or give a recording"
    )


@pytest.mark.parametrize(
    "own",
    [["--", "a"], ["a", "--", "b"], ["--help"], ["-x", "--json"], ["exec"], []],
    ids=["a separator first", "a separator", "its help", "its options", "a command's name", "nothing"],
)
@pytest.mark.parametrize("before", [[], ["--"]], ids=["plain", "behind a separator of ours"])
def test_a_script_is_given_all_that_stands_behind_it(before, own):
    assert script_and_arguments(build_parser("exec").parse_args(["exec", *before, "app.py", *own])) == ("app.py", own)


def test_a_script_must_be_named(refusal):
    assert refusal("exec") == ("the following arguments are required: SCRIPT; see ledgerops exec --help")


def test_a_file_that_cannot_be_read_is_told_by_its_own_name(refusal, tmp_path):
    assert refusal("notify", "--senders", str(tmp_path / "Senders.TXT")) == (
        f"cannot read {tmp_path}/Senders.TXT: no such file or directory"
    )


def test_files_that_cannot_be_written_are_one_line(refusal, tmp_path):
    (tmp_path / "file").write_text("in the way")

    assert refusal("render", "--out", str(tmp_path / "file")) == (f"cannot write to {tmp_path}/file: not a directory")


def test_a_check_writes_nothing_in_any_form(refusal, tmp_path):
    assert refusal("render", "--check", "--format", "kubernetes", "--out", str(tmp_path / "k8s")) == (
        "--check compares the committed files and cannot be combined with --format kubernetes"
    )
    assert not (tmp_path / "k8s").exists()


def test_an_interrupt_is_exit_code_130(monkeypatch):
    import ledgerops.cli.jobs as jobs

    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "run", interrupted)
    assert main(["jobs"]) == 130


def raising(error):
    def run(args):
        raise error

    return run


def test_a_file_that_this_user_may_not_use_is_one_line(monkeypatch, refusal):
    import ledgerops.cli.jobs as jobs

    monkeypatch.setattr(jobs, "run", raising(PermissionError(errno.EACCES, "Permission denied", "/others/recording")))
    assert refusal("jobs") == "cannot use /others/recording: permission denied"


@pytest.mark.parametrize("argv", [["diagnose", "--from"], ["verify"], ["state"], ["capacity", "--from"]])
def test_a_path_that_is_too_long_is_one_line(refusal, argv):
    assert refusal(*argv, "x" * 300).endswith(": file name too long")


@pytest.mark.parametrize("argv", [["diagnose", "--from"], ["verify"], ["state"], ["capacity", "--from"]])
def test_what_an_argument_holds_neither_breaks_the_line_nor_reaches_the_terminal(refusal, argv):
    assert "no\x1b[31m\nwhere".replace("\x1b", "?").replace("\n", " ") in refusal(*argv, "no\x1b[31m\nwhere")


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "No such file", "x"), PermissionError(errno.EPERM, "no")])
def test_an_error_that_nobody_foresaw_keeps_its_traceback(monkeypatch, error):
    import ledgerops.cli.jobs as jobs

    monkeypatch.setattr(jobs, "run", raising(error))
    with pytest.raises(OSError):
        main(["jobs"])


def test_a_reader_that_goes_away_is_no_traceback():
    command = f"{sys.executable} -m ledgerops rules | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)

    assert done.stderr == ""
    assert done.returncode in (0, 141)  # 0 when all was written before the reader left


def in_shell(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)


def test_without_docstrings_a_diagnosis_is_the_same_and_runbooks_are_refused_in_one_line():
    place = RECORDED / "drills" / "overload" / "recording"
    command = f"{sys.executable} -m ledgerops diagnose --from {place} --json"
    usual, done = in_shell(command), in_shell(f"PYTHONOPTIMIZE=2 {command}")

    assert (done.returncode, done.stdout, done.stderr) == (usual.returncode, usual.stdout, "")
    assert in_shell(f"PYTHONOPTIMIZE=2 {RULES_COMMAND}").stderr == (
        "ledgerops: rules reads docstrings, which -OO and PYTHONOPTIMIZE=2 remove; run it without them\n"
    )


RULES_COMMAND = f"{sys.executable} -m ledgerops rules"


def test_an_output_that_cannot_be_written_is_one_line_and_not_the_exit_code_of_a_finding():
    done = in_shell(f"{RULES_COMMAND} >/dev/full")

    assert done.returncode == 2
    assert done.stderr == "ledgerops: cannot write the output: no space left on device\n"


def test_an_error_that_cannot_be_written_keeps_its_exit_code():
    assert in_shell(f"{RULES_COMMAND} no-such-rule 2>/dev/full").returncode == 2


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(closed):
    done = in_shell(f"{RULES_COMMAND} {closed}")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert in_shell(f"{RULES_COMMAND} no-such-rule {closed}").returncode == 2


def test_a_file_does_not_get_the_number_of_a_closed_stream(tmp_path):
    place = RECORDED / "drills" / "overload" / "recording"
    document = in_shell(f"{sys.executable} -m ledgerops diagnose --from {place} --json <&- 2>&-").stdout

    assert json.loads(document)["queries"]


def test_a_terminal_that_lacks_a_sign_shows_another_one():
    place = RECORDED / "drills" / "overload" / "recording"
    done = subprocess.run(
        [sys.executable, "-m", "ledgerops", "capacity", "--from", str(place)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )

    assert done.stderr == ""
    assert "?" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_commands_options_and_jobs(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out

    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0
    for word in (*(word for name in NAMES for word in name.split()), "duration", "once", "daily_counts"):
        assert word in script


@pytest.fixture(scope="module")
def proposed():
    """What bash proposes for the last of some words, in a folder with the file `app.py` and the folder `run`."""
    script = shtab.complete(whole_parser(), shell="bash")

    def propose(folder, *typed):
        (folder / "app.py").touch()
        (folder / "run").mkdir()
        line = " ".join(shlex.quote(word) for word in ("ledgerops", *typed))
        asked = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(typed)}; _shtab_ledgerops\n"
        asked += 'printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, cwd=folder)
        assert done.stderr == ""
        return done.stdout.split()

    return propose


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        pytest.param(["dia"], ["diagnose"], id="a command"),
        pytest.param(["load", "cal"], ["calibrate"], id="a command of two words"),
        pytest.param(["run", "--dur"], ["--duration"], id="an option"),
        pytest.param(["run", "daily"], ["daily_counts"], id="a job"),
        pytest.param(["run", "daily_counts", "stateful"], ["stateful"], id="a group of jobs"),
        pytest.param(["run", "--sink", "post"], ["postgres"], id="a value of an option"),
        pytest.param(["run", "--plan", "wha"], ["whale"], id="a plan of an option"),
        pytest.param(["plans", "wha"], ["whale"], id="a plan"),
        pytest.param(["load", "rep"], ["replay"], id="the replay"),
        pytest.param(["load", "whale", "--dur"], ["--duration"], id="an option after a plan"),
        pytest.param(["load", "search", "daily"], ["daily_counts"], id="a job to search the rate of"),
        pytest.param(["load", "search", "daily_counts", "--qui"], ["--quick"], id="an option of two words' command"),
        pytest.param(["rules", "key-s"], ["key-skew"], id="a rule"),
        pytest.param(["exec", "a"], ["app.py"], id="a script"),
        pytest.param(["state", ""], ["run"], id="a folder"),
        pytest.param(["exec", "-"], ["-h", "--help", "--launcher"], id="options where one begins"),
        pytest.param(["jobs", "stateful"], ["stateful"], id="a group to list"),
        pytest.param(["jars", ""], [], id="nothing where there is nothing"),
        pytest.param(["render", "--config", "ap"], ["app.py"], id="a file of an option"),
        pytest.param(["diagnose", "--from", "r"], ["run"], id="a recording"),
    ],
)
def test_completion_proposes_what_fits(proposed, tmp_path, typed, expected):
    assert proposed(tmp_path, *typed) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("ledgerops dia", ["diagnose"]),
        ("ledgerops load search daily", ["daily_counts"]),
        ("ledgerops run --dur", ["--duration"]),
    ],
)
def test_completion_proposes_the_same_in_fish(tmp_path, typed, expected):
    if not shutil.which("fish"):
        pytest.skip("fish is absent")
    (tmp_path / "script").write_text(shtab.complete(whole_parser(), shell="fish"))
    asked = f"source {tmp_path / 'script'}; complete -C {shlex.quote(typed)}"
    done = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True)

    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == expected


def test_completion_does_without_the_ledger(monkeypatch):
    monkeypatch.setitem(sys.modules, "ledgerops.ledger.jobs", None)

    names = known_names()

    assert names["run", "jobs"] == []
    assert "key-skew" in names["rules", "slug"]


@pytest.mark.parametrize("name", ["query-stuck", "LedgerQueryStuck"])
def test_a_rule_is_found_by_its_name_and_by_that_of_its_alert(name, capsys):
    assert main(["rules", name]) == 0
    assert capsys.readouterr().out.startswith("query-stuck (critical)")


@pytest.fixture
def closed_port():
    """A port of this machine that nobody listens on, as long as it is bound."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize("command", ["diagnose", "status", "capacity"])
def test_the_exporter_is_asked_at_the_port_of_the_settings(command, closed_port, monkeypatch, capsys):
    monkeypatch.setenv("LEDGEROPS_PORT", str(closed_port))

    assert main([command]) == 2

    assert f"cannot reach an exporter at http://127.0.0.1:{closed_port}: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["diagnose", "status", "run", "jobs"])
def test_a_setting_with_an_impossible_value_is_one_line(command, monkeypatch, capsys):
    monkeypatch.setenv("LEDGEROPS_PORT", "abc")

    assert main([command]) == 2

    assert capsys.readouterr().err == "ledgerops: variable LEDGEROPS_PORT: port must be a whole number, not 'abc'\n"


def test_a_misspelt_setting_is_reported_and_the_command_goes_on(monkeypatch, capsys):
    monkeypatch.setenv("LEDGEROPS_PROT", "9564")

    assert main(["rules"]) == 0

    said = "ledgerops: variable LEDGEROPS_PROT is unknown and ignored; did you mean LEDGEROPS_PORT?\n"
    assert capsys.readouterr().err == said
