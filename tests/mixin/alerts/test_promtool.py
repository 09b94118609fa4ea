"""The generated rules under Prometheus' own tools, with the cases that stand beside each alert."""

import shutil

import pytest
import yaml

from ledgerops.mixin.rule_files import FILES
from tests.paths import ROOT
from tests.promtool import promtool

ALERTS = ROOT / "alerts"


def test_the_rules_pass_the_linter():
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", *sorted((ALERTS / "rules").glob("*.yaml")))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_the_alerts_fire_and_stay_silent_as_their_cases_say(name):
    done = promtool("test", "rules", ALERTS / "tests" / f"{name}.yaml")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("observer", "== 0", "== 2", ("LedgerTargetDown",)),
        ("observer", "}[12h])) == 1", "}[12h])) == 2", ("LedgerDriverLost",)),
        ("observer", '"} == 1)', '"} == 2)', ("LedgerDriverLost",)),
        ("observer", "available_now|once", "once", ("LedgerDriverLost",)),
        ("symptoms", "0.001 *", "0.9 *", ("LedgerRowsDropped",)),
        ("causes", 'rule="key-skew"', 'rule="late-data"', ("LedgerKeySkew",)),
        ("symptoms", " for: 1m", " for: 5s", ("LedgerQueryDown",)),
        ("symptoms", "[15m]) > 0", "[15m]) >= 0", ("LedgerCrashLoop", "28m20s")),
        ("symptoms", "[15m]) > 0", "[15m]) > 9e9", ("LedgerCrashLoop", "28m45s")),
        ("symptoms", "[15m]) < last", "[15m]) < -last", ("LedgerCrashLoop", "43m15s")),
        ("symptoms", "[15m])) >= 2", "[15m])) >= 0", ("LedgerCrashLoop", "1h27m30s")),
    ],
    ids=[
        "never true",
        "of a driver that died nothing",
        "a query that moved",
        "a query that ended by itself",
        "another threshold",
        "another label",
        "no patience",
        "failures ever",
        "of a new driver only the rest",
        "of a driver that was away only the rest",
        "failures seen anew",
    ],
)
def test_a_rule_that_is_wrong_fails_its_cases(tmp_path, name, before, after, said):
    for folder in ("rules", "tests"):
        shutil.copytree(ALERTS / folder, tmp_path / folder)
    file = tmp_path / "rules" / f"{name}.yaml"
    assert before in file.read_text()
    rules = yaml.safe_load(file.read_text().replace(before, after))
    for group in rules["groups"]:  # the others would take most of the time, and are not what is asked
        group["rules"] = [each for each in group["rules"] if each.get("alert", said[0]) == said[0]]
    file.write_text(yaml.safe_dump(rules))

    cases = tmp_path / "tests" / f"{name}.yaml"
    told = yaml.safe_load(cases.read_text())
    told["tests"] = [each for each in told["tests"] if each["name"].startswith(said[0])]
    cases.write_text(yaml.safe_dump(told))

    done = promtool("test", "rules", cases)

    assert done.returncode != 0
    assert all(word in done.stdout + done.stderr for word in said)
