"""The bill of materials names every package of the lock and every jar, each with its hash."""

from __future__ import annotations

import json

import pytest

from ledgerops.cli import main
from ledgerops.errors import UserError
from ledgerops.servers import jars
from ledgerops.servers.sbom import bill_of_materials
from tests.paths import ROOT

LOCK = f"""first==1.0 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
    # via ledgerops (pyproject.toml)
Second.One[extra]==2.0rc1 ; sys_platform == 'win32' \\
    --hash=sha256:{"c" * 64}
"""


@pytest.mark.parametrize("lock", ["requirements.lock", "docker/requirements.lock", "requirements-java.lock"])
def test_every_package_of_a_lock_has_its_hashes(lock):
    text = (ROOT / lock).read_text("utf-8")
    pinned = [line for line in text.splitlines() if "==" in line.split(";")[0] and not line.startswith((" ", "#"))]
    found = [each for each in bill_of_materials(text)["components"] if each["purl"].startswith("pkg:pypi/")]

    assert len(found) == len(pinned) > 0
    assert all(each["hashes"] for each in found)


def test_a_package_has_its_normal_name_its_version_and_the_condition_of_the_lock():
    first, second, *_ = bill_of_materials(LOCK)["components"]

    assert (first["purl"], [each["content"][0] for each in first["hashes"]]) == ("pkg:pypi/first@1.0", ["a", "b"])
    assert second["purl"] == "pkg:pypi/second-one@2.0rc1"
    assert second["properties"] == [{"name": "ledgerops:condition", "value": "sys_platform == 'win32'"}]


def test_every_jar_has_its_group_its_version_and_its_hash():
    found = [each for each in bill_of_materials("")["components"] if each["purl"].startswith("pkg:maven/")]

    assert {each["hashes"][0]["content"] for each in found} == set(jars.hashes().values())
    purls = {each["purl"] for each in found}
    assert "pkg:maven/org.apache.kafka/kafka_2.13@4.1.2" in purls
    assert "pkg:maven/commons-beanutils/commons-beanutils@1.11.0" in purls
    assert "pkg:maven/org.apache.commons/commons-pool2@2.13.1" in purls
    assert len({each["bom-ref"] for each in found}) == len(found)


def test_a_package_without_a_hash_is_refused():
    with pytest.raises(UserError, match="first has no hash in the lock; run make lock"):
        bill_of_materials("first==1.0\n    # via x\n")


def test_the_command_prints_one_document(capsys):
    assert main(["sbom", "--lock", str(ROOT / "requirements.lock")]) == 0
    document = json.loads(capsys.readouterr().out)

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["name"] == "ledgerops"


def test_without_a_lock_one_line_says_what_to_give(tmp_path, capsys):
    assert main(["sbom", "--lock", str(tmp_path / "none.lock")]) == 2
    assert capsys.readouterr().err == (
        f"ledgerops: cannot read {tmp_path / 'none.lock'}: no such file or directory; give the lock of a checkout with "
        "--lock\n"
    )
