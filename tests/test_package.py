"""What an install brings: modules, and the files that they read."""

import re
import tomllib

from tests.paths import ROOT


def test_the_wheel_carries_every_file_that_is_no_module():
    package = ROOT / "ledgerops"
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = told["tool"]["setuptools"]["package-data"]["*"]
    assert told["tool"]["setuptools"]["packages"]["find"]["exclude"] == ["ledgerops.drills*"]
    folders = {file.parent for file in package.rglob("*.py")}
    carried = {file for folder in folders for pattern in patterns for file in folder.glob(pattern)}
    others = {
        file
        for file in package.rglob("*")
        if file.is_file() and file.suffix not in (".py", ".pyc") and package / "drills" not in file.parents
    }

    assert {str(file.relative_to(package)) for file in others - carried} == set()


def test_make_installs_what_is_locked_by_hash_and_nothing_but_the_checkout_besides():
    installs = re.findall(r"(?:pip install|\$\(INSTALL\)) ([^\n;]*)", (ROOT / "Makefile").read_text("utf-8"))
    others = [each for each in installs if "--require-hashes -r" not in each]

    assert len(installs) - len(others) == 4
    # without a lock: the checkout itself, and the tools that write the locks and the bill of materials
    of_install = "--quiet --disable-pip-version-check"  # the definition of INSTALL
    assert others == ["--quiet uv", "--quiet cyclonedx-bom", of_install, "--no-deps --no-build-isolation -e ."]
