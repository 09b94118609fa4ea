"""docker-compose.yaml: what can be known of the stack without Docker, and its own check where there is Docker."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

from ledgerops.cli import build_parser
from tests.paths import ROOT
from tests.programs import needed

STACK = yaml.safe_load((ROOT / "docker-compose.yaml").read_text("utf-8"))
SERVICES = STACK["services"]
ENV = dict(
    line.split("=", 1)
    for line in (ROOT / ".env").read_text("utf-8").splitlines()
    if "=" in line and not line.startswith("#")
)
ONCE = {"topics", "load"}  # they end
NAMES = pytest.mark.parametrize("name", SERVICES)


def words(value) -> list[str]:
    """A command with the settings of .env in place."""
    told = value if isinstance(value, list) else shlex.split(value)
    return [re.sub(r"\$\{(\w+)(?::?[-?]([^}]*))?\}", lambda at: ENV.get(at[1], at[2] or ""), word) for word in told]


@NAMES
def test_every_image_has_a_fixed_version(name):
    image, _, tag = SERVICES[name]["image"].partition(":")

    assert image
    assert re.fullmatch(r"v?\d+(\.\d+)+", tag), tag


@NAMES
def test_every_service_says_whether_it_is_well_and_has_a_limit(name):
    service = SERVICES[name]

    assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
    assert ("healthcheck" in service) is (name not in ONCE)


@NAMES
def test_a_service_that_ends_is_not_started_again_and_any_other_is(name):
    assert SERVICES[name]["restart"] == ("no" if name in ONCE else "unless-stopped")


@NAMES
def test_no_port_is_open_to_the_network(name):
    assert [port for port in SERVICES[name].get("ports", ()) if not port.startswith("${BIND:-127.0.0.1}:")] == []


@NAMES
def test_every_mounted_file_is_there_and_is_only_read(name):
    for mount in SERVICES[name].get("volumes", ()):
        place, _, rest = mount.partition(":")
        if place.startswith("."):
            assert (ROOT / place).exists(), place
            assert rest.endswith(":ro")
        else:
            assert place in STACK["volumes"]


@NAMES
def test_every_setting_is_in_the_env_file(name):
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", str(SERVICES[name])))

    assert used <= {*ENV, "BROKER"}


@pytest.mark.parametrize("name", ["topics", "driver", "load", "notify"])
def test_our_commands_are_understood(name):
    command = words(SERVICES[name]["command"])
    if command[0] == "sh":
        command = shlex.split(command[2].removeprefix("exec ").replace("$$JOBS", ENV["JOBS"]))
    program, *arguments = command

    assert program == "ledgerops"
    assert build_parser(arguments[0]).parse_args(arguments).command == arguments[0]


def test_who_is_waited_for_exists_and_ends_or_is_well():
    for service in SERVICES.values():
        for other, told in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if other in ONCE else "service_healthy"
            assert told["condition"] == wanted


def test_prometheus_looks_where_drivers_the_generator_and_alertmanager_listen():
    told = {file.stem: json.loads(file.read_text("utf-8")) for file in (ROOT / "docker" / "targets").iterdir()}
    addresses = {name: groups[0]["targets"][0] for name, groups in told.items()}

    assert addresses == {
        "ledgerops": "driver:9464",
        "load": "load:9466",
        "notify": "notify:9465",
        "alertmanager": "alertmanager:9093",
    }
    for address in addresses.values():
        name, _, port = address.partition(":")
        service = SERVICES[name]
        opened = "".join(word for word in words(service.get("command", [])) + service.get("ports", []))
        assert port in opened


def test_prometheus_and_alertmanager_take_what_is_mounted(tmp_path):
    shutil.copytree(ROOT / "alerts" / "rules", tmp_path / "rules")
    shutil.copytree(ROOT / "docker" / "targets", tmp_path / "targets")
    shutil.copy(ROOT / "alerts" / "prometheus.yml", tmp_path)
    for command in (
        (needed("promtool"), "check", "config", str(tmp_path / "prometheus.yml")),
        (needed("amtool"), "check-config", str(ROOT / "alerts" / "alertmanager.yml")),
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_docker_itself_takes_the_file():
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode != 0:
        pytest.skip("no docker compose on this machine")
    done = subprocess.run([docker, "compose", "config", "--quiet"], cwd=ROOT, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
