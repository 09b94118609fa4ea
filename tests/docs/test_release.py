"""What a release says of itself: notes, version, citation, links."""

import tomllib

import pytest
import yaml

from docs.site.release_notes import notes
from ledgerops import __version__
from tests.paths import ROOT

CHANGELOG = "# Changelog\n\nAbout.\n\n## 0.2.0, unreleased\n\n- New.\n\n## 0.1.0, not published\n\n- First.\n"


def test_the_notes_are_the_section_of_the_version():
    assert notes("0.1.0", CHANGELOG) == "- First.\n"
    assert notes(None, CHANGELOG) == "- New.\n"


def test_a_version_without_a_section_has_no_notes():
    with pytest.raises(KeyError):
        notes("0.3.0", CHANGELOG)


def test_this_version_has_notes():
    assert "### Diagnosis" in notes(__version__)


def test_the_citation_is_of_this_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == __version__


def test_every_link_of_the_package_is_of_the_repository():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert {"Homepage", "Documentation", "Changelog", "Issues"} == set(urls)
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
