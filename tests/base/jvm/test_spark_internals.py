"""The internal classes of Spark that the package reaches by name: all listed, all there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm import SparkClass
from sparkdelta.base.jvm.jvm_builders import has_class
from sparkdelta.base.jvm.spark_internals import INTERNALS, OPTIONAL_CLASSES, SparkInternals
from sparkdelta.exceptions import SparkMemberNotFoundError

JVM = Path(__file__).parents[3] / "sparkdelta" / "base" / "jvm"


def _spelled(node: ast.AST, names: dict[str, str]) -> str | None:
    """The dotted name of a package or class of the JVM that an expression spells."""
    if isinstance(node, ast.Attribute):
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id == "self":
            return names.get(f"self.{node.attr}")
        before = _spelled(owner, names)
        return None if before is None else f"{before}.{node.attr}".lstrip(".")
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "jvm_of":
            return ""
        if node.func.id in ("getattr", "singleton") and isinstance(node.args[1], ast.Constant):
            before = _spelled(node.args[0], names)
            return None if before is None else f"{before}.{node.args[1].value}".lstrip(".")
    return None


def _assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = zip(target.elts, value.elts, strict=True)
            else:
                pairs = iter([(target, value)])
            yield from ((ast.unparse(one), each) for one, each in pairs)


def _classes_reached(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {"jvm": "", "self.jvm": ""}
    for _ in range(2):  # a name may stand for a part of another one
        for name, value in _assignments(tree):
            spelled = _spelled(value, names)
            if spelled:
                names.setdefault(name, spelled)
    reached = {_spelled(node, names) for node in ast.walk(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            reached.add(node.value)
    classes = set()
    for name in reached:
        parts = (name or "").split(".")
        upper = [number for number, part in enumerate(parts) if part[:1].isupper()]
        if upper and name and name.startswith("org.apache.spark."):
            classes.add(".".join(parts[: upper[0] + 1]))
    return classes


def _alternatives(internals: SparkInternals) -> list[tuple[str, ...]]:
    return [each if isinstance(each, tuple) else (each,) for each in internals.classes]


def test_every_class_reached_by_name_is_listed() -> None:
    listed = {name for one in INTERNALS for names in _alternatives(one) for name in names}
    modules = [path for path in sorted(JVM.glob("*.py")) if path.stem != "spark_internals"]
    reached = set().union(*map(_classes_reached, modules))
    assert len(reached) > 30
    assert reached - listed - set(OPTIONAL_CLASSES) == set()
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    assert {name for name in listed if name.rpartition(".")[2] not in text} == set()


@pytest.mark.parametrize("internals", INTERNALS, ids=lambda one: one.purpose.replace(" ", "-"))
@pytest.mark.every_case
def test_this_spark_has_every_listed_class(spark: SparkSession, internals: SparkInternals) -> None:
    missing = [
        names
        for names in _alternatives(internals)
        if not any(has_class(spark, name) for name in names)
    ]
    assert not missing, f"sparkdelta needs them to {internals.purpose}"


def test_a_class_that_this_spark_lacks_is_reported_by_name_and_purpose(
    spark: SparkSession,
) -> None:
    client: Any = spark._jvm._gateway_client
    gone = SparkClass("org.apache.spark.sql.classic.Gone", client)
    for use in (lambda: gone.ofRows, lambda: gone(1, 2)):
        with pytest.raises(SparkMemberNotFoundError) as raised:
            use()
        assert raised.value.member.startswith("org.apache.spark.sql.classic.Gone")
        assert raised.value.version == spark.version
