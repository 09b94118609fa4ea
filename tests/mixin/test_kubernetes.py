"""Objects for a cluster: the same rules and dashboards, in the forms that the Prometheus operator and Grafana take."""

import json
import re

import pytest
import yaml

from ledgerops.cli import main
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.kubernetes import kubernetes_files
from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site


@pytest.fixture(scope="module")
def objects():
    return [each for text in kubernetes_files(Site()).values() for each in yaml.safe_load_all(text)]


def of(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def test_the_rules_are_those_of_the_files(objects):
    [rule] = of(objects, "PrometheusRule")
    files = [group for text in rule_files(Site()).values() for group in yaml.safe_load(text)["groups"]]

    assert rule["spec"]["groups"] == files
    assert {each["alert"] for group in files for each in group["rules"] if "alert" in each} == {a.name for a in ALERTS}


def test_drivers_are_found_by_their_label_and_scraped_as_the_job_that_rules_select(objects):
    [service], [monitor] = of(objects, "Service"), of(objects, "ServiceMonitor")

    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "ledgerops"}]


def test_every_dashboard_is_a_config_map_that_fits_and_is_found(objects):
    boards = of(objects, "ConfigMap")

    assert {json.loads(text)["uid"] for board in boards for text in board["data"].values()} == {p.uid for p in PAGES}
    for board in boards:
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", board["metadata"]["name"])
        assert sum(map(len, board["data"].values())) < 1024 * 1024


def test_the_command_writes_them_into_a_folder(tmp_path, capsys):
    assert main(["render", "--format", "kubernetes", "--out", str(tmp_path / "k8s")]) == 0

    assert sorted(file.name for file in (tmp_path / "k8s").iterdir()) == sorted(kubernetes_files(Site()))


def test_a_checkout_is_no_place_for_them(capsys):
    assert main(["render", "--format", "kubernetes"]) == 2
    assert capsys.readouterr().err == (
        "ledgerops: --format kubernetes needs --out FOLDER: these files do not belong in a checkout\n"
    )
