"""Whether a session can write Delta tables, by its settings."""

import pytest

from ledgerops.model.sources.delta import has_delta

DELTA = "com.example.Extension,io.delta.sql.DeltaSparkSessionExtension"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, False, id="plain Spark"),
        pytest.param({"spark.sql.extensions": "com.example.Extension"}, False, id="another extension"),
        pytest.param({"spark.sql.extensions": DELTA}, True, id="Delta's extension among others"),
        pytest.param({"spark.databricks.delta.snapshotPartitions": "2"}, False, id="a setting of Delta alone"),
        pytest.param({"spark.databricks.clusterUsageTags.clusterId": "1127-041522-ab"}, True, id="Databricks"),
    ],
)
def test_a_session_has_delta_by_its_extension_or_on_databricks(settings, expected):
    assert has_delta(settings.get) is expected
