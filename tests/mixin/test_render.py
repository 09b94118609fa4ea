"""The committed files are those that the code makes."""

import re
from pathlib import Path

import pytest

from ledgerops import mixin
from ledgerops.cli import main
from ledgerops.cli.render import cli_page
from ledgerops.diagnosis.rules import RULES
from ledgerops.diagnosis.runbook import SECTIONS, evidence_of, on_call
from ledgerops.metrics import DRIVER_METRICS, METRICS
from ledgerops.metrics.cause_texts import FAMILIES
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.problems import CASES, PROBLEMS, Problem, evidence_list, problem_pages, runbook_body
from ledgerops.model.finding import SEVERITIES
from tests import tables
from tests.paths import ROOT

PAGES = {"docs/cli.md": cli_page}


def drift(root, made):
    return [*mixin.changed(root, made), *mixin.stale(root, made)]


def test_the_committed_files_are_true():
    assert drift(ROOT, mixin.outputs(more=PAGES)) == []


def test_a_changed_a_missing_and_a_stale_file_are_named(tmp_path):
    made = mixin.outputs(more=PAGES)
    mixin.write(tmp_path, made, drift(tmp_path, made))
    assert drift(tmp_path, made) == []
    (tmp_path / "docs/metrics.md").write_text("by hand")
    (tmp_path / "docs/cli.md").unlink()
    (tmp_path / "docs/problems/gone.md").write_text(f"<!-- {mixin.MARK} -->")
    (tmp_path / "docs/problems/notes.md").write_text("mine")
    names = drift(tmp_path, made)
    assert names == ["docs/cli.md", "docs/metrics.md", "docs/problems/gone.md"]
    mixin.write(tmp_path, made, names)
    assert drift(tmp_path, made) == []
    assert (tmp_path / "docs/problems/notes.md").exists() and not (tmp_path / "docs/problems/gone.md").exists()


@pytest.fixture
def rendered(tmp_path, capsys):
    """The folder of a site's files."""
    assert main(["render", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path


def test_a_site_gets_what_it_deploys_and_none_of_our_pages(rendered):
    written = {path.relative_to(rendered).as_posix() for path in rendered.rglob("*") if path.is_file()}

    assert {path.split("/")[0] for path in written} == {"alerts", "dashboards"}
    assert {"alerts/rules/symptoms.yaml", "alerts/alertmanager.yml", "dashboards/ledgerops-fleet.json"} <= written
    assert [path for path in written if path.endswith(".md") or "tests" in path] == []


def test_a_site_s_files_are_checked_where_they_are(rendered, capsys):
    assert main(["render", "--out", str(rendered), "--check"]) == 0
    (rendered / "alerts/prometheus.yml").write_text("by hand")
    (rendered / "docs").mkdir()

    assert main(["render", "--out", str(rendered), "--check"]) == 1
    assert capsys.readouterr().out == "differs: alerts/prometheus.yml\n"


def test_a_copy_of_a_generated_file_at_a_site_is_named_and_stays(rendered, capsys):
    ours = rendered / "dashboards/our-fleet.json"
    copied = (rendered / "dashboards/ledgerops-fleet.json").read_text() + " "
    ours.write_text(copied)

    for options in ([], ["--check"]):
        assert main(["render", "--out", str(rendered), *options]) == 0
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err == "not removed (your copies, or no longer made, and still loaded): dashboards/our-fleet.json\n"
    assert ours.read_text() == copied


def test_in_a_checkout_what_is_no_longer_made_is_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mark = Path("ledgerops/mixin/__init__.py")
    mark.parent.mkdir(parents=True)
    mark.touch()
    assert main(["render"]) == 0
    gone = Path("alerts/rules/gone.yaml")
    gone.write_text(f"# {mixin.MARK}")
    capsys.readouterr()

    assert main(["render", "--check"]) == 1
    assert capsys.readouterr().out == "differs: alerts/rules/gone.yaml\n"
    assert main(["render"]) == 0
    assert capsys.readouterr().out == "removed alerts/rules/gone.yaml\n"
    assert not gone.exists()


def test_the_settings_file_of_the_exporter_says_what_is_rendered_for_a_site(tmp_path, monkeypatch):
    def job(*options):
        assert main(["render", "--out", "monitoring", *options]) == 0
        return re.search("job_name: (.*)", Path("monitoring/alerts/prometheus.yml").read_text())[1]

    monkeypatch.chdir(tmp_path)
    assert job() == "ledgerops"
    for name in ("ledgerops", "other", "third"):
        Path(f"{name}.toml").write_text(f'port = 9999\n[render]\njob = "of-{name}"\n')
    assert job() == "of-ledgerops"
    monkeypatch.setenv("LEDGEROPS_CONFIG", "other.toml")
    assert job() == "of-other"
    assert job("--config", "third.toml") == "of-third"


def test_without_a_folder_only_a_checkout_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(["render"]) == main(["render", "--check"]) == 2
    said = "ledgerops: --out is missing: give the folder for rules and dashboards, such as --out monitoring\n"
    assert capsys.readouterr().err == 2 * said
    assert list(tmp_path.iterdir()) == []


def test_every_metric_has_its_place():
    page = mixin.outputs()["docs/metrics.md"]

    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in page] == []


def test_the_first_step_has_no_other_name():
    other = re.compile("first (safe )?action", re.IGNORECASE)

    assert [path for path, text in mixin.outputs().items() if other.search(text)] == []


RUNBOOK = """Slow sink: it waits.

Meaning: what it is.
Impact: what it does.
Diagnosis: where to look.
Mitigation: what to do.
Evidence:
    waited_seconds: median over the newest 3 batches of
        durationMs.addBatch / 1000
    waited_share = waited_seconds over the batch duration
"""


def test_how_each_number_is_computed_is_folded():
    assert evidence_list(RUNBOOK) == (
        '\n<details markdown="1">\n<summary>Evidence: how each number of a finding is computed</summary>\n\n'
        "- `waited_seconds`: median over the newest 3 batches of durationMs.addBatch / 1000\n"
        "- `waited_share`: waited_seconds over the batch duration\n\n</details>\n"
    )


def test_someone_on_call_reads_no_formula():
    assert runbook_body(RUNBOOK).endswith("## Mitigation\n\nWhat to do.")
    assert on_call(RUNBOOK).endswith("Mitigation: what to do.\n")


def test_a_runbook_without_formulas_has_no_list_of_them():
    without = RUNBOOK.partition("Evidence:")[0]

    assert evidence_of(without) == {} and evidence_list(without) == ""
    assert runbook_body(without).endswith("What to do.")


PAGES_OF_PROBLEMS = problem_pages()


def test_each_rule_and_each_alert_has_one_page():
    assert sorted(problem.slug for problem in PROBLEMS) == sorted({problem.slug for problem in PROBLEMS})
    assert {problem.rule for problem in PROBLEMS if problem.rule} == set(RULES)
    assert [problem.alert for problem in PROBLEMS] == list(ALERTS)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.slug)
def test_a_page_has_the_first_step_then_four_sections_then_what_is_folded(problem: Problem):
    page = PAGES_OF_PROBLEMS[f"{problem.slug}.md"]
    read, *folded = page.split('<details markdown="1">')
    cases = [f"<summary>{CASES}</summary>"] if problem.cases else []
    evidence = ["<summary>Evidence: "] if problem.rule and evidence_of(problem.runbook) else []

    assert f"# {problem.title}\n" in read and f"Alert: `{problem.alert.name}`" in read
    assert re.search(r"\*\*Do first:\*\*(?: [A-Z].+\.\n|\n\n(?:- .+: .+\.\n)+)", read)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == list(SECTIONS)
    assert "durationMs" not in read.partition("## Diag")[0]
    expected = [*cases, f"<summary>The alert {problem.alert.name}</summary>", *evidence]
    assert [each for each, text in zip(expected, folded, strict=True) if not text.startswith(f"\n{each}")] == []
    assert "```promql" in folded[len(cases)]


def test_the_index_has_every_problem_once_below_its_family_the_most_severe_first():
    index = PAGES_OF_PROBLEMS["README.md"]
    families = re.split(r"^## (.*)$", index, flags=re.MULTILINE)[1:]
    listed = {
        family: re.findall(r"\]\(([a-z-]+)\.md\).*\| (\w+) \| `\w+` \|$", rows, re.MULTILINE)
        for family, rows in zip(families[::2], families[1::2], strict=True)
    }

    assert list(listed) == list(FAMILIES)
    assert sorted(slug for rows in listed.values() for slug, _ in rows) == sorted(problem.slug for problem in PROBLEMS)
    for rows in listed.values():
        ranks = [SEVERITIES.index(severity) for _, severity in rows]
        assert ranks == sorted(ranks, reverse=True)


def test_a_cause_says_that_it_takes_the_severity_of_what_it_explains_and_others_do_not():
    rises = "\nSeverity: **warning**, or that of the worst problem that it explains · Rule: "

    assert rises in PAGES_OF_PROBLEMS["slow-sink.md"]
    assert "\nSeverity: **critical** · Rule: " in PAGES_OF_PROBLEMS["checkpoint-full.md"]
    assert "\nSeverity: **warning** · Alert: " in PAGES_OF_PROBLEMS["target-down.md"]
    assert "A cause has the severity of the worst problem that it explains." in PAGES_OF_PROBLEMS["README.md"]


def test_a_command_of_kafka_names_its_servers_which_it_cannot_do_without():
    commands = [command for page in PAGES_OF_PROBLEMS.values() for command in re.findall(r"`(kafka-[^`]+)`", page)]

    assert len(commands) > 3
    assert [each for each in commands if not re.match(r"kafka-[a-z-]+\.sh --bootstrap-server SERVERS", each)] == []


def test_a_page_says_how_to_ask_the_driver_and_not_the_machine_of_the_reader_what_its_rule_finds_now():
    asked = "What it finds now: `ledgerops diagnose http://INSTANCE --query QUERY`"

    assert [name for name, page in PAGES_OF_PROBLEMS.items() if "`ledgerops diagnose --query" in page] == []
    assert {name for name, page in PAGES_OF_PROBLEMS.items() if asked in page} == {f"{rule.slug}.md" for rule in RULES}


def test_each_page_leads_to_what_its_names_in_capitals_stand_for():
    index = PAGES_OF_PROBLEMS.get("README.md", "")

    assert [name for name in ("`APP`", "`QUERY`", "`INSTANCE` is the address of the driver") if name not in index] == []
    assert {name for name, page in PAGES_OF_PROBLEMS.items() if "](README.md)" not in page} == {"README.md"}


def test_a_rule_that_a_text_names_is_a_link_but_not_on_its_own_page():
    text = RUNBOOK.replace("where to look", "see `key-skew`, `slow-sink` and `add-batch`")

    assert "See [`key-skew`](key-skew.md), `slow-sink` and `add-batch`" in runbook_body(text, "slow-sink")


def shared(text):
    """Expressions about queries, executors or machines, whose names applications share, that name no application."""
    names = "|".join(metric.name for metric in DRIVER_METRICS)
    asked = [" ".join(span.split()) for span in re.findall(r"`([^`]*)`", text)]
    anybodys = re.compile(rf"\b({names})\b(?!\{{[^}}]*\b(app|instance)=)|\{{(?![^}}]*\bapp=)[^}}]*\bquery=")
    return [span for span in asked if anybodys.search(span)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.slug)
def test_a_check_asks_about_one_application(problem: Problem):
    assert shared(runbook_body(problem.runbook)) == []


@tables.cases(
    "anybodys, of_one",
    ("a query", 'ledgerops_backlog{query="Q"}', 'ledgerops_backlog{app="APP",query="Q"}'),
    ("executors", "sum(rate(ledgerops_executor_tasks_total[5m]))", 'ledgerops_executor_cores{app="APP"}'),
)
def test_what_asks_about_all_applications_is_found(anybodys, of_one):
    assert shared(f"`{anybodys}` of `{of_one}`") == [anybodys]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_the_command_prints_what_someone_on_call_reads_and_the_address_of_the_page(capsys, rule):
    assert main(["rules", rule.slug]) == 0
    printed = capsys.readouterr().out

    assert "Mitigation:" in printed and "Evidence:" not in printed
    address = f"https://github.com/ledgerops/ledgerops/blob/main/docs/problems/{rule.slug}.md"
    assert printed.endswith(f"Its page, with how each number is computed: {address}\n")
    assert (ROOT / address.partition("/main/")[2]).is_file()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("    waited_share: again", "evidence waited_share is described twice"),
        ("    something about it", "not a line of the section Evidence: 'something about it'; write `name: formula`"),
    ],
)
def test_evidence_that_cannot_be_read_is_refused(line, complaint):
    with pytest.raises(ValueError) as told:
        evidence_of(RUNBOOK + line + "\n")

    assert str(told.value) == complaint
