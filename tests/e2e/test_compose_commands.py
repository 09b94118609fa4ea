"""The commands of docker-compose.yaml, run for real without Docker, in a network and a file system of their own."""

import json
import os
import sys

import pytest

from tests.paths import ROOT
from tests.programs import finished, needed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_every_service_starts_by_its_command_is_well_and_rows_reach_postgres(server_jars, tmp_path):
    for program in ("ip", "prometheus", "prometheus-alertmanager"):
        needed(program)
    command = [needed("unshare"), "--mount", "--net", "--propagation", "private"]
    tried = finished(*command, "true")
    if tried.returncode != 0 or os.geteuid() != 0:
        pytest.skip(f"no namespaces: {tried.stderr.strip() or 'not root'}")
    command += [sys.executable, "-m", "tests.e2e.compose_stack", tmp_path]
    done = finished(*command, timeout=800, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)

    assert (found["secrets"], found["topics"], found["driver"]) == (0, 0, 0)
    assert found["load"] in (0, 1), "1: it was late against its schedule, as on a busy machine"
    assert min(found["rows"].values()) > 0
