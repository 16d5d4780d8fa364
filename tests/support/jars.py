"""JARs that Spark does not bring, by the Ivy that it brings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
[_CLIENT] = SPARK_JARS.glob("hadoop-client-api-*.jar")
HADOOP = _CLIENT.stem.removeprefix("hadoop-client-api-")
"""The version of Hadoop whose client Spark brings."""
_MODULE = """<ivy-module version="2.0">
  <info organisation="sparkdelta" module="tests"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default" transitive="{}"/>'


class JarsUnavailable(Exception):
    """The JARs cannot be resolved here."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package.

    Attributes
    ----------
    is_alone
        True if what it depends on is not needed.
    """

    organisation: str
    name: str
    version: str
    is_alone: bool = False


def java() -> str:
    """The program."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def resolved_jars(scratch: Path, *dependencies: Dependency) -> Sequence[Path]:
    """The files of packages and of all that they depend on.

    Raises
    ------
    JarsUnavailable
    """
    [ivy] = SPARK_JARS.glob("ivy-*.jar")
    module, found = scratch / "ivy.xml", scratch / "class-path"
    wanted = [
        _DEPENDENCY.format(
            each.organisation, each.name, each.version, str(not each.is_alone).lower()
        )
        for each in dependencies
    ]
    module.write_text(_MODULE.format(dependencies="".join(wanted)), encoding="utf-8")
    done = subprocess.run(
        [
            *(java(), "-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-ivy", str(module)),
            *("-confs", "default", "-cachepath", str(found)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not found.exists():
        names = ", ".join(f"{each.name} {each.version}" for each in dependencies)
        raise JarsUnavailable(f"the JARs of {names} cannot be resolved:\n{done.stdout[-2000:]}")
    return [Path(path) for path in found.read_text(encoding="utf-8").strip().split(os.pathsep)]
