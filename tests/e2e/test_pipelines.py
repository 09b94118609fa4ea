"""The pipeline of the guide, observed: each flow is a query with its name."""

import re
import sys

import pyspark
import pytest

from ledgerops.model.recording import read
from tests.paths import ROOT
from tests.programs import finished, for_spark

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark 4.1 or later has pipelines"),
]
FILES = 3
GUIDE = (ROOT / "docs/guides/pipelines.md").read_text("utf-8")


def test_the_flows_of_a_pipeline_are_queries_with_their_names(tmp_path):
    from pyspark.pipelines import cli

    (tmp_path / "in").mkdir()
    for number in range(FILES):
        (tmp_path / "in" / f"{number}.json").write_text('{"id": 1}\n{"id": 2}\n')
    for name, text in re.findall(r"```\w+\n# (\S+)\n(.+?)```", GUIDE, re.DOTALL):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("/data", str(tmp_path)))
    own = {"LEDGEROPS_PORT": "0", "LEDGEROPS_RECORDING": str(tmp_path / "recording")}
    environ = for_spark(SPARK_REMOTE="local[2]", PYTHONPATH=str(ROOT), **own)
    command = [sys.executable, "-m", "ledgerops", "exec", cli.__file__, "run", "--spec", "spark-pipeline.yml"]
    done = finished(*command, cwd=tmp_path, env=environ)
    print(done.stdout[-2000:], done.stderr[-2000:])
    assert done.returncode == 0
    assert "ledgerops: attached" in done.stderr
    rows: dict[str, int] = {}
    for seen in read(tmp_path / "recording"):
        if seen.kind == "progress":
            name = seen.data["name"].rpartition(".")[2]
            rows[name] = rows.get(name, 0) + seen.data["numInputRows"]

    assert rows == {"orders": 2 * FILES, "large_orders": 2 * FILES}
