"""What the collector asks of a file system is counted, and only while it is wanted."""

from ledgerops.agent.hadoop_files import HadoopFiles
from load.bench.tables import noted_requests


def test_requests_are_counted_until_the_counting_ends(monkeypatch):
    monkeypatch.setattr(HadoopFiles, "status", lambda self, path: path)
    monkeypatch.setattr(HadoopFiles, "read", lambda self, path, limit: path)
    files = HadoopFiles(None)
    with noted_requests() as requests:
        assert (files.status("a"), files.read("b", 1)) == ("a", "b")

    assert files.status("c") == "c"
    assert requests == ["status", "read"]
