"""The jars for Spark and the broker: which they are, how they are fetched, and what is said when they are not there."""

import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ledgerops.cli import main
from ledgerops.servers import jars
from ledgerops.servers.ivy import problem, retrieve
from tests.refusals import refusal_of


@pytest.fixture(scope="module")
def real():
    """The folder of jars that were fetched before; tests that need it are skipped where there is none."""
    folder = jars.jars_folder()
    if not folder.is_dir():
        if os.environ.get("LEDGEROPS_REQUIRE_SERVERS") == "1":
            pytest.fail("the jars are absent, and LEDGEROPS_REQUIRE_SERVERS=1 asks for them")
        pytest.skip("the jars are absent: ledgerops jars")
    return folder


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty folder for jars."""
    monkeypatch.setenv("LEDGEROPS_JARS", str(tmp_path / "jars"))
    return tmp_path / "jars"


def linked(source, target):
    """The jars of one folder in another one, without copying them where they are on one disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    same_disk = source.stat().st_dev == target.parent.stat().st_dev
    shutil.copytree(source, target, copy_function=os.link if same_disk else shutil.copy)


@pytest.fixture
def fetched(real, root):
    """The folder of the tested jars, for a case to change."""
    linked(real, jars.jars_folder())
    return jars.jars_folder()


@pytest.fixture
def refused(capsys):
    """What `ledgerops jars` is refused with."""

    def line():
        assert main(["jars"]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        return told.err

    return line


def replace(file, content):
    """Another file, so that one that is linked to it stays as it is."""
    file.unlink()
    file.write_bytes(content)


def test_the_hash_file_names_the_jars_of_all_configurations():
    names = list(jars.hashes())

    assert [name for name in names if name.startswith("connector/")] == [
        "connector/commons-pool2-2.13.1.jar",
        "connector/kafka-clients-3.9.2.jar",
        "connector/postgresql-42.7.14.jar",
        "connector/spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "connector/spark-token-provider-kafka-0-10_2.13-4.2.0.jar",
    ]
    assert all(name.startswith(("connector/", "delta/", "broker/")) and name.endswith(".jar") for name in names)
    assert {len(digest) for digest in jars.hashes().values()} == {64}


@pytest.mark.parametrize(
    ("jar", "mended"),
    [
        ("commons-beanutils", (1, 11, 0)),  # CVE-2025-48734
        ("lz4-java", (1, 10, 1)),  # CVE-2025-12183, CVE-2025-66566
        ("log4j-core", (2, 25, 4)),  # CVE-2025-68161, CVE-2026-34477
    ],
)
def test_no_jar_is_older_than_the_version_that_mends_a_known_hole(jar, mended):
    versions = [re.fullmatch(rf".*/{jar}-([\d.]+)\.jar", name) for name in jars.hashes()]
    found = [tuple(int(part) for part in each[1].split(".")) for each in versions if each]
    assert found and min(found) >= mended


def test_the_folder_is_the_given_one_else_in_the_cache_of_the_user(monkeypatch):
    name = jars.jars_folder().name
    folders = {"LEDGEROPS_JARS": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}
    for variable, folder in folders.items():
        monkeypatch.setenv(variable, folder)

    for variable, folder in zip(folders, ("/a", "/b/ledgerops/jars", "/c/.cache/ledgerops/jars"), strict=True):
        assert str(jars.jars_folder()) == f"{folder}/{name}"
        monkeypatch.delenv(variable)


def test_jars_that_were_never_fetched_are_asked_for(root):
    assert refusal_of(jars.connector_jars) == (
        f"the connector jars are not in {jars.jars_folder()}; run ledgerops jars to download them"
    )


def test_fetched_jars_are_found_and_only_checked(fetched, capsys):
    assert main(["jars"]) == 0
    assert capsys.readouterr() == (f"59 jars in {fetched}: already present, hashes checked\n", "")
    for kind, found in (("connector", jars.connector_jars()), ("delta", jars.delta_jars())):
        assert main(["jars", "--path", kind]) == 0
        assert capsys.readouterr().out == ",".join(map(str, found)) + "\n"
    assert (len(jars.delta_jars()), len(jars.broker_jars())) == (7, 47)


def test_a_jar_that_was_changed_is_named(fetched, refused):
    replace(fetched / "connector" / "postgresql-42.7.14.jar", b"")
    assert refused() == (
        "ledgerops: the jar connector/postgresql-42.7.14.jar is not the tested one (sha256 e3b0c44298fc...); "
        f"remove {fetched} and run ledgerops jars\n"
    )


def test_a_jar_that_is_missing_is_named(fetched, refused):
    (fetched / "broker" / "jose4j-0.9.6.jar").unlink()
    assert refused() == (
        f"ledgerops: the jar broker/jose4j-0.9.6.jar is missing in {fetched}; remove {fetched} and run ledgerops jars\n"
    )


@pytest.mark.parametrize("kind", ["connector", "delta", "broker"])
def test_a_jar_that_was_changed_is_used_by_nothing(fetched, kind):
    changed = next((fetched / kind).iterdir())
    replace(changed, changed.read_bytes()[:-1] + b"?")
    use = {"connector": jars.connector_jars, "delta": jars.delta_jars, "broker": jars.broker_jars}
    assert refusal_of(use.pop(kind)).startswith(f"the jar {kind}/{changed.name} is not the tested one")
    assert all(other() for other in use.values())


def test_of_two_that_fetch_at_once_one_waits_and_nothing_is_left_over(real, root):
    calls, waiting = [], []
    (root / "unfinished-of-a-killed-one" / "jars").mkdir(parents=True)

    def slow(description, confs, work, settings, say):
        calls.append(confs)
        while not waiting:
            time.sleep(0.01)
        linked(real, work / "jars")

    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(jars.fetch, say=waiting.append, retrieve=slow) for _ in range(2)]

    assert calls == [("connector", "delta", "broker")]
    assert sorted(each.result() for each in results) == [False, True]
    assert waiting == ["waiting for another ledgerops that downloads them"]
    assert sorted(each.name for each in root.iterdir()) == sorted([jars.jars_folder().name, "lock"])


def test_jars_that_are_not_the_tried_ones_are_not_kept(root):
    def wrong(description, confs, work, settings, say):
        for name in jars.hashes():
            (work / "jars" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "jars" / name).write_bytes(b"")

    assert refusal_of(jars.fetch, retrieve=wrong).endswith(
        "is not the tested one (sha256 e3b0c44298fc...); nothing was kept"
    )
    assert [each.name for each in root.iterdir()] == ["lock"]


def test_without_a_network_one_line_says_so(root, monkeypatch, refused):
    pytest.importorskip("pyspark")
    closed = " ".join(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort=9" for kind in ("http", "https"))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", closed)

    first, second = refused().splitlines()
    assert first == "downloading 59 jars ..."
    assert second.startswith("ledgerops: cannot download the jars: https://")
    assert second.endswith(
        " cannot be reached (connection refused); behind a mirror, give its ivysettings.xml with --settings FILE"
    )
    assert [each.name for each in root.iterdir()] == ["lock"]


def test_a_folder_that_cannot_be_written_is_named(root, refused):
    root.write_text("a file is in the way")
    assert refused() == f"ledgerops: cannot write {root}: file exists; set LEDGEROPS_JARS to a writable folder\n"


def test_settings_that_are_not_there_are_named(tmp_path):
    assert refusal_of(retrieve, "", ("connector",), tmp_path, tmp_path / "none.xml", print) == (
        f"no Ivy settings at {tmp_path / 'none.xml'}; --settings takes the path of an ivysettings.xml"
    )


# what Ivy prints -> what is said
PRINTED = {
    "a mirror without it": (
        ["module not found: a#b;1", "==== public: tried"],
        "no repository has a#b;1; behind a mirror, give its ivysettings.xml with --settings FILE",
    ),
    "broken": (["[FAILED     ] a#b;1!b.jar: invalid sha1 (9ms)"], "download failed: a#b;1!b.jar: invalid sha1"),
    "no sense in it": (["Error: could not create the VM"], "error: could not create the VM"),
    "settings that are none": (
        [
            'Exception in thread "main" java.text.ParseException: failed to load settings',
            "at org.apache.ivy.Main.main(Main.java:197)",
            "Caused by: org.xml.sax.SAXParseException: Premature end of file.",
            "... 7 more",
        ],
        "caused by: org.xml.sax.SAXParseException: Premature end of file.",
    ),
    "nothing": ([], "Ivy took more than 900 s, or was killed"),
}


@pytest.mark.parametrize(("lines", "said"), PRINTED.values(), ids=PRINTED)
def test_what_ivy_prints_becomes_one_line(lines, said):
    assert problem(lines) == said
