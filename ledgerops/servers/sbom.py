"""The bill of materials: every package of requirements.lock and every jar, with version and hashes, as CycloneDX."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ledgerops.errors import UserError
from ledgerops.servers.jars import hashes
from ledgerops.version import __version__

REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)\s*(?:;\s*([^\\]*?))?\s*\\?$")
HASH = re.compile(r"\s+--hash=sha256:([0-9a-f]{64})\s*\\?$")
JAR = re.compile(r"(?P<kind>\w+)/(?P<name>.+?)-(?P<version>\d[\w.-]*)\.jar")
# Maven's group of a jar, by how its name begins; the longest beginning counts
GROUPS = {
    "HdrHistogram": "org.hdrhistogram",
    "argparse4j": "net.sourceforge.argparse4j",
    "caffeine": "com.github.ben-manes.caffeine",
    "commons-": "",  # the group has the name of the jar
    "commons-pool2": "org.apache.commons",
    "delta-": "io.delta",
    "hash4j": "com.dynatrace.hash4j",
    "jackson-": "com.fasterxml.jackson.core",
    "jackson-dataformat-": "com.fasterxml.jackson.dataformat",
    "jackson-datatype-": "com.fasterxml.jackson.datatype",
    "jopt-simple": "net.sf.jopt-simple",
    "jose4j": "org.bitbucket.b_c",
    "jspecify": "org.jspecify",
    "kafka": "org.apache.kafka",
    "log4j-": "org.apache.logging.log4j",
    "lz4-java": "at.yawk.lz4",
    "metrics-core": "com.yammer.metrics",
    "pcollections": "org.pcollections",
    "postgresql": "org.postgresql",
    "re2j": "com.google.re2j",
    "scala-": "org.scala-lang",
    "scala-logging": "com.typesafe.scala-logging",
    "slf4j-": "org.slf4j",
    "snakeyaml": "org.yaml",
    "snappy-java": "org.xerial.snappy",
    "spark-": "org.apache.spark",
    "unitycatalog-": "io.unitycatalog",
    "zstd-jni": "com.github.luben",
}


def bill_of_materials(lock: str) -> dict[str, Any]:
    """A CycloneDX 1.6 document of a lock's text and of the jars. Raises UserError for a package without a hash."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "ledgerops", "version": __version__}},
        "components": [*_packages(lock), *_jars()],
    }


def _packages(lock: str) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] | None = None
    for line in lock.splitlines():
        if requirement := REQUIREMENT.match(line):
            if found is not None:
                yield _checked(found)
            name, version, condition = requirement.groups()
            found = _component(re.sub(r"[-_.]+", "-", name).lower(), version, "pypi")
            if condition:
                found["properties"] = [{"name": "ledgerops:condition", "value": condition.strip()}]
        elif (digest := HASH.match(line)) and found is not None:
            found["hashes"].append({"alg": "SHA-256", "content": digest[1]})
    if found is not None:
        yield _checked(found)


def _checked(component: dict[str, Any]) -> dict[str, Any]:
    if not component["hashes"]:
        raise UserError(f"{component['name']} has no hash in the lock; run make lock")
    return component


def _jars() -> Iterator[dict[str, Any]]:
    for path, digest in hashes().items():
        found = JAR.fullmatch(path)
        assert found is not None, path
        name = found["name"]
        group = GROUPS[max((start for start in GROUPS if name.startswith(start)), key=len)] or name
        component = _component(name, found["version"], f"maven/{group}", group)
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        component["properties"] = [{"name": "ledgerops:used-by", "value": found["kind"]}]
        component["bom-ref"] += f"#{found['kind']}"  # both may have one of a name
        yield component


def _component(name: str, version: str, kind: str, group: str | None = None) -> dict[str, Any]:
    purl = f"pkg:{kind}/{name}@{version}"
    grouped = {"group": group} if group else {}
    return {"type": "library", **grouped, "name": name, "version": version, "purl": purl, "bom-ref": purl, "hashes": []}
