"""The generated rules under Prometheus' own tools, with the cases that stand beside each alert."""

import shutil

import pytest
import yaml

from ledgerops.mixin.rule_files import FILES
from tests import tables
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


DOWN, LOST, LOOP = "LedgerTargetDown", "LedgerDriverLost", "LedgerCrashLoop"


@tables.cases(
    "name, before, after, said",
    ("never true", "observer", "== 0", "== 2", (DOWN,)),
    ("of a driver that died nothing", "observer", "} >= 1) ^ 0", "} >= 2) ^ 0", (LOST,)),
    ("a query that moved", "observer", '"} == 1)', '"} == 2)', (LOST,)),
    ("a query that ended by itself", "observer", "available_now|once", "once", (LOST,)),
    ("another threshold", "symptoms", "0.001 *", "0.9 *", ("LedgerRowsDropped",)),
    ("another label", "causes", 'rule="key-skew"', 'rule="late-data"', ("LedgerKeySkew",)),
    ("no patience", "symptoms", " for: 1m", " for: 5s", ("LedgerQueryDown",)),
    ("failures ever", "symptoms", "[15m]) > 0", "[15m]) >= 0", (LOOP, "28m20s")),
    ("of a new driver only the rest", "symptoms", "[15m]) > 0", "[15m]) > 9e9", (LOOP, "28m45s")),
    ("of one that was away only the rest", "symptoms", "[15m]) < last", "[15m]) < -last", (LOOP, "43m15s")),
    ("failures seen anew", "symptoms", "[15m])) >= 2", "[15m])) >= 0", (LOOP, "1h27m30s")),
)
def test_a_rule_that_is_wrong_fails_its_cases(tmp_path, name, before, after, said):
    """With the rule and its cases alone: the others would take most of the time."""
    rules = yaml.safe_load((ALERTS / "rules" / f"{name}.yaml").read_text().replace(before, after))
    for group in rules["groups"]:
        group["rules"] = [each for each in group["rules"] if each.get("alert", said[0]) == said[0]]
    cases = yaml.safe_load((ALERTS / "tests" / f"{name}.yaml").read_text())
    cases["tests"] = [each for each in cases["tests"] if each["name"].startswith(said[0])]
    for folder, content in (("rules", rules), ("tests", cases)):
        shutil.copytree(ALERTS / folder, tmp_path / folder)
        (tmp_path / folder / f"{name}.yaml").write_text(yaml.safe_dump(content))

    done = promtool("test", "rules", tmp_path / "tests" / f"{name}.yaml")

    assert done.returncode != 0
    assert all(word in done.stdout + done.stderr for word in said)
