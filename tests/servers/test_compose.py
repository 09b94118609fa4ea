"""docker-compose.yaml: what can be known of the stack without Docker, and its own check where there is Docker."""

import json
import re
import runpy
import shlex
import shutil

import pytest
import yaml

from ledgerops.cli import build_parser
from ledgerops.servers.jars import hashes
from tests.paths import ROOT
from tests.programs import finished, needed

STACK = yaml.safe_load((ROOT / "docker-compose.yaml").read_text("utf-8"))
SERVICES = STACK["services"]
ENV = dict(
    line.split("=", 1)
    for line in (ROOT / ".env").read_text("utf-8").splitlines()
    if "=" in line and not line.startswith("#")
)
ONCE = {"topics", "load", "secrets"}  # they end
WRITES_BESIDE_ITS_PROGRAMS = {"kafka"}  # settings, at the start: its root cannot be read-only
UNITS = {"m": 1024**2, "g": 1024**3}
NAMES = pytest.mark.parametrize("name", SERVICES)


def words(value):
    """A command with the settings of .env in place."""
    told = value if isinstance(value, list) else shlex.split(value)
    return [re.sub(r"\$\{(\w+)(?::?[-?]([^}]*))?\}", lambda at: ENV.get(at[1], at[2] or ""), word) for word in told]


@NAMES
def test_every_image_has_a_fixed_version(name):
    image, _, tag = SERVICES[name]["image"].partition(":")
    assert image
    assert re.fullmatch(r"v?\d+(\.\d+)+", tag), tag


@NAMES
def test_every_service_has_a_limit_and_one_that_does_not_end_says_whether_it_is_well_and_is_started_again(name):
    service = SERVICES[name]
    assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
    assert ("healthcheck" in service) is (name not in ONCE)
    assert service["restart"] == ("no" if name in ONCE else "unless-stopped")


@NAMES
def test_no_port_is_open_to_the_network(name):
    assert [port for port in SERVICES[name].get("ports", ()) if not port.startswith("${BIND:-127.0.0.1}:")] == []


@NAMES
def test_every_mounted_file_is_there_and_is_only_read(name):
    for mount in SERVICES[name].get("volumes", ()):
        if isinstance(mount, dict):
            assert mount["type"] == "volume" and "source" not in mount
            continue
        place, _, rest = mount.partition(":")
        if place.startswith("."):
            assert (ROOT / place).exists(), place
            assert rest.endswith(":ro")
        else:
            assert place in STACK["volumes"]


@NAMES
def test_every_setting_is_in_the_env_file(name):
    assert {*re.findall(r"(?<!\$)\$\{(\w+)", str(SERVICES[name]))} <= {*ENV}


@NAMES
def test_a_service_has_no_capability_cannot_gain_one_and_changes_nothing_of_its_image(name):
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("cap_add", []) == (["CHOWN"] if name == "secrets" else [])
    assert service.get("read_only", False) is (name not in WRITES_BESIDE_ITS_PROGRAMS)


TALK = (
    *("driver kafka", "topics kafka", "spark-worker postgres", "prometheus driver", "prometheus load"),
    *("alertmanager notify", "notify driver", "notify inbox", "grafana prometheus"),
)
DO_NOT_TALK = ("grafana postgres", "notify kafka", "inbox prometheus", "spark-worker alertmanager")


@pytest.mark.parametrize("pair", TALK + DO_NOT_TALK)
def test_only_services_that_talk_to_each_other_share_a_network(pair):
    one, other = pair.split()
    shared = {*SERVICES[one]["networks"]} & {*SERVICES[other]["networks"]}
    assert bool(shared) is (pair in TALK)


def test_every_service_names_its_networks():
    used = {name for service in SERVICES.values() for name in service.get("networks", ())}
    assert [name for name, service in SERVICES.items() if "networks" not in service] == ["secrets"]
    assert SERVICES["secrets"]["network_mode"] == "none"
    assert used == {*STACK["networks"]}


def test_no_password_is_in_a_file_of_the_checkout_a_command_or_a_variable():
    text = (ROOT / "docker-compose.yaml").read_text("utf-8") + (ROOT / ".env").read_text("utf-8")
    # what follows each "password" is a path, and no URL has one before its @
    assert re.findall(r"(?i)password\w*\s*[:=]\s*(?!/run/secrets/)\S+", text) == []
    assert re.findall(r"://[^/\s@\"]*:[^/\s@\"]*@", text) == []


def test_passwords_are_made_on_the_first_start_even_after_one_that_was_cut_off_and_kept(tmp_path, monkeypatch):
    make = runpy.run_path(str(ROOT / "docker" / "make_passwords.py"))["make"]
    owners = {}
    monkeypatch.setattr("os.chown", lambda file, user, group: owners.update({file.name: user}))
    (tmp_path / "postgres_password").write_text("half")

    def files():
        return {file.name: (file.read_text(), file.stat().st_mode & 0o777) for file in tmp_path.iterdir()}

    assert make(tmp_path) is True
    made = files()
    assert make(tmp_path) is False
    assert files() == made

    assert owners == {"postgres_password": 999, "pgpass": 1000, "grafana_password": 472}
    assert made["postgres_password"][0] != "half"
    assert made["pgpass"] == (f"postgres:5432:ledger:ledger:{made['postgres_password'][0]}\n", 0o600)
    assert made["grafana_password"][1] == made["postgres_password"][1] == 0o600


# what of a command or an environment is the memory of a process
MEMORY = re.compile(r"-Xmx(\w+)|--memory=(\w+)|'SPARK_\w+_MEMORY': '([^']+)'")


@pytest.mark.parametrize(("name", "heaps"), [("kafka", 1), ("spark-master", 1), ("spark-worker", 2)])
def test_what_a_jvm_or_broker_may_take_leaves_a_quarter_of_the_limit_and_more(name, heaps):
    def size(text):
        [told] = words([text])
        return int(told[:-1]) * UNITS[told[-1].lower()]

    taken = [size("".join(each)) for each in MEMORY.findall(str(SERVICES[name]))]
    assert len(taken) == heaps
    assert sum(taken) <= 0.75 * size(SERVICES[name]["deploy"]["resources"]["limits"]["memory"])


def test_topics_waits_for_the_broker_that_is_used():
    waited, healthy = SERVICES["topics"]["depends_on"], {"condition": "service_healthy"}
    assert waited["kafka"] == healthy


def test_the_broker_of_the_stack_is_the_one_of_the_jars_and_keeps_its_records_in_its_volume():
    kafka = SERVICES["kafka"]
    assert f"broker/kafka_2.13-{kafka['image'].partition(':')[2]}.jar" in hashes()
    assert f"kafka:{kafka['environment']['KAFKA_LOG_DIRS']}" in kafka["volumes"]


def test_the_image_installs_by_hash_and_carries_the_notices():
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    installs = re.findall(r"pip (?:install|wheel) [^\\\n&]*", dockerfile)

    assert all("--require-hashes" in each or "--no-deps" in each for each in installs) and len(installs) == 3
    assert "COPY LICENSE NOTICE /usr/share/doc/ledgerops/" in dockerfile
    locked = (ROOT / "docker" / "requirements.lock").read_text("utf-8")
    whole = (ROOT / "requirements.lock").read_text("utf-8")
    pinned = set(re.findall(r"^[\w.-]+==[^\s;]+", locked, re.M))
    assert pinned and pinned <= set(re.findall(r"^[\w.-]+==[^\s;]+", whole, re.M))


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

    own = {"ledgerops": "driver:9464", "load": "load:9466", "notify": "notify:9465"}
    assert addresses == own | {"alertmanager": "alertmanager:9093"}
    for address in addresses.values():
        name, _, port = address.partition(":")
        assert port in "".join(words(SERVICES[name].get("command", [])) + SERVICES[name].get("ports", []))


def test_prometheus_and_alertmanager_take_what_is_mounted(tmp_path):
    shutil.copytree(ROOT / "alerts" / "rules", tmp_path / "rules")
    shutil.copytree(ROOT / "docker" / "targets", tmp_path / "targets")
    shutil.copy(ROOT / "alerts" / "prometheus.yml", tmp_path)
    for command in (
        (needed("promtool"), "check", "config", tmp_path / "prometheus.yml"),
        (needed("amtool"), "check-config", ROOT / "alerts" / "alertmanager.yml"),
    ):
        done = finished(*command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_docker_itself_takes_the_file():
    docker = shutil.which("docker")
    if docker is None or finished(docker, "compose", "version").returncode != 0:
        pytest.skip("no docker compose on this machine")
    done = finished(docker, "compose", "config", "--quiet", cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["driver", "load"])
def test_what_prometheus_scrapes_in_another_container_listens_on_every_address(name):
    assert SERVICES[name]["environment"]["LEDGEROPS_HOST"] == "0.0.0.0"
