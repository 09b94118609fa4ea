"""The commands of docker-compose.yaml, run for real without Docker, in a network and a file system of their own."""

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.programs import needed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_every_service_starts_by_its_command_is_well_and_rows_reach_postgres(server_jars, tmp_path):
    for program in ("ip", "prometheus", "prometheus-alertmanager"):
        needed(program)
    command = [needed("unshare"), "--mount", "--net", "--propagation", "private"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0 or os.geteuid() != 0:
        pytest.skip(f"no namespaces: {tried.stderr.strip() or 'not root'}")
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.e2e.compose_stack", tmp_path],
        capture_output=True, text=True, timeout=800, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)

    assert (found["secrets"], found["topics"], found["driver"]) == (0, 0, 0)
    assert found["load"] in (0, 1), "1: it was late against its schedule, as on a busy machine"
    assert min(found["rows"].values()) > 0
