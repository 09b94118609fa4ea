"""The committed files are those that the code makes."""

from __future__ import annotations

import re

import pytest

from ledgerops import mixin
from ledgerops.cli import main
from ledgerops.cli.render import cli_page
from ledgerops.diagnosis.rules import RULES
from ledgerops.diagnosis.runbook import SECTIONS, evidence_of, on_call
from ledgerops.metrics import METRICS
from ledgerops.mixin.reference import evidence_list, runbook_body
from tests.paths import ROOT

PAGES = {"docs/cli.md": cli_page}


def test_the_committed_files_are_true():
    assert list(mixin.drift(ROOT, mixin.outputs(more=PAGES))) == []


def test_a_changed_a_missing_and_a_stale_file_are_named(tmp_path):
    made = mixin.outputs(more=PAGES)
    mixin.write(tmp_path, made)
    assert list(mixin.drift(tmp_path, made)) == []
    (tmp_path / "docs/metrics.md").write_text("by hand")
    (tmp_path / "docs/cli.md").unlink()
    (tmp_path / "docs/rules/gone.md").write_text(f"<!-- {mixin.MARK} -->")
    (tmp_path / "docs/rules/notes.md").write_text("mine")
    assert list(mixin.drift(tmp_path, made)) == ["docs/cli.md", "docs/metrics.md", "docs/rules/gone.md"]
    assert mixin.write(tmp_path, made) == ["docs/cli.md", "docs/metrics.md", "docs/rules/gone.md"]
    assert (tmp_path / "docs/rules/notes.md").exists()


def test_a_site_gets_what_it_deploys_and_none_of_our_pages(tmp_path, capsys):
    assert main(["render", "--out", str(tmp_path)]) == 0
    capsys.readouterr()

    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.split("/")[0] for path in written} == {"alerts", "dashboards"}
    assert {"alerts/rules/symptoms.yaml", "alerts/alertmanager.yml", "dashboards/ledgerops-fleet.json"} <= written
    assert [path for path in written if path.endswith(".md") or "tests" in path] == []


def test_a_site_s_files_are_checked_where_they_are(tmp_path, capsys):
    main(["render", "--out", str(tmp_path)])
    capsys.readouterr()
    assert main(["render", "--out", str(tmp_path), "--check"]) == 0
    (tmp_path / "alerts/prometheus.yml").write_text("by hand")
    (tmp_path / "docs").mkdir()

    assert main(["render", "--out", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == "differs: alerts/prometheus.yml\n"


def test_without_a_folder_only_a_checkout_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(["render"]) == main(["render", "--check"]) == 2
    assert (
        capsys.readouterr().err.splitlines()
        == ["ledgerops: --out is missing: give the folder for rules and dashboards, such as --out monitoring"] * 2
    )
    assert list(tmp_path.iterdir()) == []


def test_every_metric_and_every_rule_has_its_place():
    made = mixin.outputs()
    assert all(f"`{metric.name}`" in made["docs/metrics.md"] for metric in METRICS)
    for rule in RULES:
        assert all(f"## {section}" in made[f"docs/rules/{rule.slug}.md"] for section in SECTIONS)


def test_what_is_made_does_not_depend_on_the_run():
    assert mixin.outputs() == mixin.outputs()


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


def test_the_reference_page_lists_how_each_number_is_computed():
    assert evidence_list(RUNBOOK) == (
        "\n## Evidence\n\nHow each number of a finding is computed.\n\n"
        "- `waited_seconds`: median over the newest 3 batches of durationMs.addBatch / 1000\n"
        "- `waited_share`: waited_seconds over the batch duration\n"
    )


def test_someone_on_call_reads_no_formula():
    assert runbook_body(RUNBOOK).endswith("## Mitigation\n\nWhat to do.")
    assert on_call(RUNBOOK).endswith("Mitigation: what to do.\n")


def test_a_runbook_without_formulas_has_no_list_of_them():
    without = RUNBOOK.partition("Evidence:")[0]

    assert evidence_of(without) == {} and evidence_list(without) == ""
    assert runbook_body(without).endswith("What to do.")


def test_pages_for_someone_on_call_have_four_sections_and_no_formula():
    pages = {name: text for name, text in mixin.outputs().items() if name.startswith("alerts/runbooks/Ledger")}

    assert len(pages) > 40
    for name, text in pages.items():
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS), name
        for folder, page in re.findall(r"\]\(\.\./((?:\.\./docs/)?rules)/([\w.-]+)\)", text):
            assert (ROOT / "alerts" / folder / page).resolve().is_file(), name
        assert "../rules/" in text and "durationMs" not in text.partition("## Impact")[2].partition("## Diag")[0], name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_the_command_prints_the_page_for_someone_on_call_and_says_where_the_formulas_are(capsys, rule):
    assert main(["rules", rule.slug]) == 0
    printed = capsys.readouterr().out

    assert "Mitigation:" in printed and "Evidence:" not in printed
    assert printed.endswith(f"How each number is computed: docs/rules/{rule.slug}.md\n")
    assert "## Evidence" in (ROOT / f"docs/rules/{rule.slug}.md").read_text("utf-8")


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
