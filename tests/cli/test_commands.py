"""What holds for every command."""

import ast
import errno
import json
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
from tests.tables import cases

NAMES = [command.name for command in COMMANDS]
OVERLOAD = RECORDED / "drills" / "overload" / "recording"


def test_every_command_has_help_with_an_example_that_parses(subtests: pytest.Subtests):
    for command in COMMANDS:
        with subtests.test(command.name):
            module = import_module(command.module)
            assert module.__doc__
            example = rf"(?:^ {{4}}.*|example: .*)\bledgerops ({command.name}\b[^`|>)\n]*)"
            found = re.findall(example, module.__doc__, re.M)
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
def test_a_source_is_an_argument_and_keeps_its_older_names(command, option, ledgerops):
    assert ledgerops(command, *option, OVERLOAD) == (told := ledgerops(command, OVERLOAD))
    assert told.out != ""


def test_help_imports_nothing_heavy():
    code = "import sys, ledgerops.cli as c\ntry: c.main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded & {"pyspark", "pandas", "numpy", "pyarrow", "rich", "prometheus_client", "yaml"} == set()


def test_a_command_imports_spark_only_when_it_runs(subtests: pytest.Subtests):
    for command in COMMANDS:
        with subtests.test(command.name):
            tree = ast.parse(Path(import_module(command.module).__file__).read_text("utf-8"))
            imported = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
            imported += [each.name for node in tree.body if isinstance(node, ast.Import) for each in node.names]

            assert {name.split(".")[0] for name in imported} & {"pyspark", "pandas", "rich"} == set()


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"ledgerops {__version__}\n")


def test_no_command_prints_the_help_and_is_refused(capsys):
    assert main([]) == 2
    assert "usage: ledgerops" in capsys.readouterr().out


REFUSED = {
    "diagnos": "no command 'diagnos'; did you mean diagnose?",
    "xyz": "no command 'xyz'; see ledgerops --help",
    "version": "no command 'version'; did you mean --version?",
    "status --nope": "unrecognized arguments: --nope; see ledgerops status --help",
    "--verison": "unrecognized arguments: --verison (did you mean --version?); see ledgerops --help",
    "diagnose --form recording": "unrecognized arguments: --form (did you mean --from?); see ledgerops diagnose --help",
    "load search daily_counts --quik": (
        "unrecognized arguments: --quik (did you mean --quick?); see ledgerops load search --help"
    ),
    "compare before after --form": "unrecognized arguments: --form; see ledgerops compare --help",
    "completion csh": (
        "argument shell: invalid choice: 'csh' (choose from 'bash', 'zsh', 'fish'); see ledgerops completion --help"
    ),
    "diagnose a --from b": "two sources: a and b; give one",
    "capacity a --from b": "two sources: a and b; give one",
    "status run/recording": (
        "run/recording is not the address of an exporter; for a recording, run ledgerops diagnose run/recording"
    ),
    "status --url http://127.0.0.1:1": (
        "cannot reach an exporter at http://127.0.0.1:1: connection refused; is the application running?"
    ),
    "status --url http://127.0.0.1:port": (
        "cannot reach an exporter at http://127.0.0.1:port: nonnumeric port: 'port'; is the application running?"
    ),
    "status --url 'http://my host'": (
        "cannot reach an exporter at http://my host: url can't contain control characters. 'my host' (found at least "
        "' '); is the application running?"
    ),
    "diagnose --from http://[": (
        "cannot reach an exporter at http://[: invalid ipv6 url; start the application, or give a recording"
    ),
    "plans whal": "no plan 'whal'; did you mean whale?",
    "rules key-skow": "no rule 'key-skow'; did you mean key-skew?",
    "exec": "the following arguments are required: SCRIPT; see ledgerops exec --help",
    "notify --senders Senders.TXT": "cannot read Senders.TXT: no such file or directory",
    "render --out /dev/null": "cannot write to /dev/null: not a directory",
    "render --check --format kubernetes --out k8s": (
        "--check compares the committed files and cannot be combined with --format kubernetes"
    ),
}


@pytest.mark.parametrize(("command", "line"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(refusal, tmp_path, command, line):
    assert refusal(*shlex.split(command)) == line
    assert list(tmp_path.iterdir()) == []


@cases(
    "answer, reason",
    ("another protocol", b"SSH-2.0-OpenSSH_9.2\r\n", "ssh-2.0-openssh_9.2"),
    (
        "an exporter that ends while it answers",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        "the answer ended early: 98 bytes are missing",
    ),
    ("one that hangs up", b"", "remote end closed connection without response"),
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
    "own",
    [["--", "a"], ["a", "--", "b"], ["--help"], ["-x", "--json"], ["exec"], []],
    ids=["a separator first", "a separator", "its help", "its options", "a command's name", "nothing"],
)
@pytest.mark.parametrize("before", [[], ["--"]], ids=["plain", "behind a separator of ours"])
def test_a_script_is_given_all_that_stands_behind_it(before, own):
    assert script_and_arguments(build_parser("exec").parse_args(["exec", *before, "app.py", *own])) == ("app.py", own)


@pytest.fixture
def raising(monkeypatch):
    """Lets `ledgerops jobs` raise an error."""

    def prepare(error):
        def run(args):
            raise error

        monkeypatch.setattr("ledgerops.cli.jobs.run", run)

    return prepare


def test_an_interrupt_is_exit_code_130(raising):
    raising(KeyboardInterrupt())
    assert main(["jobs"]) == 130


def test_a_file_that_this_user_may_not_use_is_one_line(raising, refusal):
    raising(PermissionError(errno.EACCES, "Permission denied", "/others/recording"))
    assert refusal("jobs") == "cannot use /others/recording: permission denied"


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "No such file", "x"), PermissionError(errno.EPERM, "no")])
def test_an_error_that_nobody_foresaw_keeps_its_traceback_and_is_no_finding(raising, error, capsys):
    raising(error)
    assert main(["jobs"]) == 2
    assert f"Error: {error}" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("argv", [["diagnose", "--from"], ["verify"], ["state"], ["capacity", "--from"]])
def test_a_path_is_told_in_one_line_however_long_and_whatever_it_holds(refusal, argv):
    assert refusal(*argv, "x" * 300).endswith(": file name too long")
    assert "no?[31m where" in refusal(*argv, "no\x1b[31m\nwhere")


RULES_COMMAND = f"{sys.executable} -m ledgerops rules"
DIAGNOSE_COMMAND = f"{sys.executable} -m ledgerops diagnose --from {OVERLOAD} --json"


def in_shell(command):
    """Exit code, stdout and stderr."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_a_reader_that_goes_away_is_no_traceback():
    code, _, err = in_shell(f"{RULES_COMMAND} | true; exit ${{PIPESTATUS[0]}}")
    assert (code in (0, 141), err) == (True, "")  # 0 when all was written before the reader left


def test_without_docstrings_a_diagnosis_is_the_same_and_runbooks_are_refused_in_one_line():
    code, out, _ = in_shell(DIAGNOSE_COMMAND)

    assert in_shell(f"PYTHONOPTIMIZE=2 {DIAGNOSE_COMMAND}") == (code, out, "")
    assert in_shell(f"PYTHONOPTIMIZE=2 {RULES_COMMAND}")[2] == (
        "ledgerops: rules reads docstrings, which -OO and PYTHONOPTIMIZE=2 remove; run it without them\n"
    )


NO_ROOM = "ledgerops: cannot write the output: no space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(">/dev/full", (2, "", NO_ROOM), id="an output without room is not the exit code of a finding"),
        pytest.param("no-such-rule 2>/dev/full", (2, "", ""), id="an error without room keeps its exit code"),
        (">&-", (0, "", "")),
        (">&- 2>&-", (0, "", "")),
        ("<&- >&- 2>&-", (0, "", "")),
        ("no-such-rule >&-", (2, "", "ledgerops: no rule 'no-such-rule'; see ledgerops rules\n")),
        ("no-such-rule >&- 2>&-", (2, "", "")),
        ("no-such-rule <&- >&- 2>&-", (2, "", "")),
    ],
)
def test_streams_that_take_nothing_are_no_traceback_and_change_no_exit_code(arguments, expected):
    assert in_shell(f"{RULES_COMMAND} {arguments}") == expected


def test_a_file_does_not_get_the_number_of_a_closed_stream():
    assert json.loads(in_shell(f"{DIAGNOSE_COMMAND} <&- 2>&-")[1])["queries"]


def test_a_terminal_that_lacks_a_sign_shows_another_one():
    _, out, err = in_shell(f"PYTHONIOENCODING=ascii {sys.executable} -m ledgerops capacity --from {OVERLOAD}")
    assert ("?" in out, err) == (True, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_commands_options_and_jobs(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out

    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True).returncode == 0
    for word in (*(word for name in NAMES for word in name.split()), "duration", "once", "daily_counts"):
        assert word in script


@pytest.fixture(scope="module")
def bash_completion():
    return shtab.complete(whole_parser(), shell="bash")


PROPOSED = {
    "dia": "diagnose",
    "load cal": "calibrate",
    "run --dur": "--duration",
    "run daily": "daily_counts",
    "run daily_counts stateful": "stateful",
    "run --sink post": "postgres",
    "run --plan wha": "whale",
    "plans wha": "whale",
    "load rep": "replay",
    "load whale --dur": "--duration",
    "load search daily": "daily_counts",
    "load search daily_counts --qui": "--quick",
    "rules key-s": "key-skew",
    "exec a": "app.py",
    "state ''": "run",
    "exec -": "-h --help --launcher",
    "jobs stateful": "stateful",
    "jars ''": "",  # nothing where there is nothing
    "render --config ap": "app.py",
    "diagnose --from r": "run",
}


@pytest.mark.parametrize(("typed", "expected"), PROPOSED.items(), ids=PROPOSED)
def test_completion_proposes_what_fits(bash_completion, tmp_path, typed, expected):
    (tmp_path / "app.py").touch()
    (tmp_path / "run").mkdir()
    asked = f"{bash_completion}\nCOMP_WORDS=(ledgerops {typed}); COMP_CWORD={len(shlex.split(typed))}\n"
    asked += '_shtab_ledgerops\nprintf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, cwd=tmp_path)

    assert (" ".join(done.stdout.split()), done.stderr) == (expected, "")


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


def test_rules_are_listed(ledgerops):
    every = ledgerops("rules")
    assert (every.code, len(every.lines) >= 10) == (0, True)


@pytest.mark.parametrize("name", ["query-stuck", "LedgerQueryStuck"])
def test_a_rule_is_found_by_its_name_and_by_that_of_its_alert(name, ledgerops):
    told = ledgerops("rules", name)
    assert (told.code, told.lines[0][:22]) == (0, "query-stuck (critical)")


@pytest.fixture
def closed_port():
    """A port of this machine that nobody listens on, as long as it is bound."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize("command", ["diagnose", "status", "capacity"])
def test_the_exporter_is_asked_at_the_port_of_the_settings(command, closed_port, monkeypatch, refusal):
    monkeypatch.setenv("LEDGEROPS_PORT", str(closed_port))
    assert f"cannot reach an exporter at http://127.0.0.1:{closed_port}: " in refusal(command)


@pytest.mark.parametrize("command", ["diagnose", "status", "run", "jobs"])
def test_a_setting_with_an_impossible_value_is_one_line(command, monkeypatch, refusal):
    monkeypatch.setenv("LEDGEROPS_PORT", "abc")
    assert refusal(command) == "variable LEDGEROPS_PORT: port must be a whole number, not 'abc'"


def test_a_misspelt_setting_is_reported_and_the_command_goes_on(monkeypatch, ledgerops):
    monkeypatch.setenv("LEDGEROPS_PROT", "9564")
    told = ledgerops("rules")

    assert (told.code, told.err) == (
        0,
        "ledgerops: variable LEDGEROPS_PROT is unknown and ignored; did you mean LEDGEROPS_PORT?\n",
    )
