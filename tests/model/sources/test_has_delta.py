"""Whether a session can write Delta tables, by its settings."""

from ledgerops.model.sources.delta import has_delta
from tests.tables import cases

DELTA = "com.example.Extension,io.delta.sql.DeltaSparkSessionExtension"


@cases(
    "settings, expected",
    ("plain Spark", {}, False),
    ("another extension", {"spark.sql.extensions": "com.example.Extension"}, False),
    ("Delta's extension among others", {"spark.sql.extensions": DELTA}, True),
    ("a setting of Delta alone", {"spark.databricks.delta.snapshotPartitions": "2"}, False),
    ("Databricks", {"spark.databricks.clusterUsageTags.clusterId": "1127-041522-ab"}, True),
)
def test_a_session_has_delta_by_its_extension_or_on_databricks(settings, expected):
    assert has_delta(settings.get) is expected
