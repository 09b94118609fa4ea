from ledgerops.load.test.result import environment, spark_version


def test_spark_is_the_one_that_is_imported(monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "4.9.9")
    assert environment(2)["pyspark"] == "4.9.9"
    assert spark_version(2).startswith("Spark 4.9.9 on 2 of ")
