"""Workers find ledgerops where the driver found it."""

import sysconfig
from pathlib import Path
from types import SimpleNamespace

import ledgerops
from ledgerops.ledger.sources.workers import STARTUP, make_importable

ROOT = str(Path(ledgerops.__file__).parent.parent)


def session(**environment):
    return SimpleNamespace(sparkContext=SimpleNamespace(environment=environment))


def test_a_checkout_is_added_once_before_what_is_there(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: "/elsewhere")
    spark = session(PYTHONPATH="/mine")
    make_importable(spark)
    make_importable(spark)
    assert spark.sparkContext.environment == {"PYTHONPATH": f"{STARTUP}:{ROOT}:/mine"}


def test_an_installed_package_needs_no_path_of_its_own_and_a_session_without_context_is_left_alone(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: ROOT)
    spark = session()
    make_importable(spark)
    assert spark.sparkContext.environment == {"PYTHONPATH": STARTUP}
    make_importable(SimpleNamespace())
