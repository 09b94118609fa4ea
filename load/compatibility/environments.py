"""Environments of one Python with one Spark and this checkout, made of wheels by uv or pip."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 1200.0
# wheels only: compiling grpcio takes an hour; of py4j there are sources, which are pure Python
WHEELS = ("--only-binary=:all:", "--no-binary=py4j")
# of what Spark itself asks for, whose newest versions Spark does not take
LIMITS = ("setuptools<81",)
LIMITS_OF_EXTRA = ("pandas<3",)
LIMITS_OF_SPARK_3 = ("pyarrow<20",)  # newer ones ask for a numpy that Spark 3 does not take
EXTRA = "[connect]"  # a Connect client needs it; with it a classic session has pandas and PyArrow too
# how uv and pip say that no versions of the packages fit together
UNSOLVABLE = re.compile(r"No solution found|No matching distribution found for .*", re.IGNORECASE)
# of uv's conclusions, what they are drawn from
FACTS = re.compile(r"\S+ has no usable wheels|pyspark\S* depends on \S+|Python version \S+ does not satisfy \S+")
MAX_REASON_CHARACTERS = 300


class NotTried(Exception):
    """An environment cannot be made: the reason, in one line."""


class Unsolvable(NotTried):
    """A package that is needed has no version for this Python: the installer's words, in one line."""


@dataclass(frozen=True)
class Wheels:
    """Wheels that are built once: `spark` is the folder of those of Spark, `own` that of this checkout's."""

    spark: Path
    own: Path

    def of_spark(self, version: str) -> Path:
        """The wheel of this Spark version. Raises NotTried."""
        built = ("--no-cache-dir", "--no-binary=pyspark", f"pyspark=={version}")
        return _wheel(f"pyspark-{version}-*.whl", self.spark, *built)

    def of_checkout(self) -> Path:
        """The wheel of this checkout. Raises NotTried."""
        source = self.own / "source"
        if not source.exists():
            shutil.copytree(ROOT / "ledgerops", source / "ledgerops", ignore=shutil.ignore_patterns("__pycache__"))
            for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
                shutil.copy(ROOT / name, source)
        return _wheel("ledgerops-*.whl", self.own, str(source))


def _wheel(pattern: str, folder: Path, *what: str) -> Path:
    """The wheel in `folder`, built of `what` unless it is there."""
    if not (there := list(folder.glob(pattern))):
        install([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), *what])
        there = list(folder.glob(pattern))
    return there[0]


def environment(folder: Path, spark: str, python: str, wheels: Wheels, extra: str = EXTRA) -> Path:
    """The interpreter of a new environment in `folder`, with this Spark and its extra. Raises NotTried, Unsolvable."""
    own = find_python(python)
    if own is None:
        raise NotTried(f"no interpreter python{python}")
    interpreter = folder / "bin/python"
    here = str(interpreter)
    if uv := shutil.which("uv"):  # keeps unpacked wheels and links them
        make, put = [uv, "venv", "-q", "--python", own], [uv, "pip", "install", "--python", here]
    else:
        make, put = [own, "-m", "venv"], [here, "-m", "pip", "install"]
    subprocess.run([*make, str(folder)], check=True)
    limits = (*LIMITS, *(LIMITS_OF_EXTRA if extra else ()))
    limits += LIMITS_OF_SPARK_3 if extra and spark.startswith("3.") else ()
    wheel = wheels.of_spark(spark).resolve()
    install([*put, "-q", *WHEELS, *limits, f"pyspark{extra} @ {wheel.as_uri()}", str(wheels.of_checkout())])
    return interpreter


def install(command: Sequence[str]) -> None:
    """Runs an installer. Raises NotTried with its last error, and Unsolvable."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if done.returncode == 0:
        return
    if why := unsolvable(done.stderr):
        raise Unsolvable(why)
    said = done.stderr.strip().splitlines() or ["the installer failed"]
    raise NotTried(next((line for line in reversed(said) if line.startswith("ERROR:")), said[-1]).strip())


def unsolvable(stderr: str) -> str:
    """Why no versions of the packages fit together, in the words of uv or pip; empty where something else failed."""
    found = UNSOLVABLE.search(stderr)
    facts = FACTS.findall(" ".join(stderr.split()))
    if found is None:
        return ""
    return "; ".join(fact.rstrip(",.") for fact in [found[0], *dict.fromkeys(facts)])[:MAX_REASON_CHARACTERS]


def find_python(version: str) -> str | None:
    """The interpreter of this version: on the PATH, or the newest of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    own = max(map(str, root.glob(f"versions/{version}.*/bin/python{version}")), default=None)
    # on the PATH may be a shim of pyenv, which fails unless that version is chosen
    return next((found for found in (shutil.which(f"python{version}"), own) if found and _runs(found)), None)


def _runs(interpreter: str) -> bool:
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0
