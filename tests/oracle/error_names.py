"""Condition, SQLSTATE and parameters of errors of both engines, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

NOT_COMPARED = frozenset(
    (
        # Paths, files, ids, sizes and times.
        *("path", "currentFile", "table", "tableLocation", "existingTableLocation"),
        *("commitTs", "timestampString", "lastCommitTimestamp", "maximumTimestamp"),
        *("earliestTimestamp", "latestTimestamp", "schemaDiff"),
        # Schemas and expressions as the analyzer of Spark writes them; texts of other errors.
        *("cond", "condition", "details", "existingSchema", "expr", "expression", "expressionList"),
        *("filter", "plan", "conflictingCommit"),
        *("invalidExprSqls", "message", "newSchema", "oldSchema", "predicate", "proposal"),
        *(
            "dataType",
            "dataTypeList",
            "readSchema",
            "replaceWhere",
            "schema",
            "schemaDifferences",
            "specifiedSchema",
        ),
        *("sqlExpr", "sqlExprs", "struct", "tableSchema", "values"),
    )
)
"""The parameters of which only the names are compared."""


_NO_CONDITIONS = ("_LEGACY_ERROR_TEMP_", "INTERNAL_ERROR")


def names_of(run: Callable[[], Any], root: str) -> dict[str, Any] | None:
    """Return the names of the error that a function raises; None if it raises none.

    Parameters
    ----------
    root
        A directory that is left out of the values.
    """
    try:
        run()
    except (PySparkException, Py4JJavaError) as error:
        return names(error, root)
    return None


def names(error: Exception, root: str) -> dict[str, Any]:
    """Return condition, SQLSTATE and parameters of an error, without a directory's path; of Java's
    error if PySpark does not know its class.
    """
    found: Any = _of_java(error) if isinstance(error, Py4JJavaError) else error
    if found is None or found.getCondition() is None:
        return {"condition": None, "class": type(error).__name__}
    try:
        given = dict(found.getMessageParameters() or {})
    except Py4JError:  # some of Java's have none
        given = {}
    parameters = {
        name: str(value).replace(f"file:{root}", "").replace(root, "")
        for name, value in given.items()
    }
    return {
        "condition": found.getCondition(),
        "sqlState": found.getSqlState(),
        "parameters": parameters,
    }


def _of_java(error: Py4JJavaError) -> Any:
    """Return the first of an error of Java and its causes that has a condition."""
    gateway, found = SparkContext._gateway, error.java_exception
    while found is not None:
        if is_instance_of(gateway, found, "org.apache.spark.SparkThrowable"):
            return found
        found = found.getCause()
    return None


def are_same(theirs: dict[str, Any] | None, ours: dict[str, Any] | None) -> bool:
    """Return True if two errors have the same names, and the same values where they are compared.

    Where theirs has no condition, or one that Spark calls temporary or internal, nothing is
    compared: ours always have one. Nor is a SQLSTATE that theirs lacks.
    """
    if theirs is None or ours is None:
        return theirs is ours
    if theirs["condition"] is None or theirs["condition"].startswith(_NO_CONDITIONS):
        return True
    state = theirs["sqlState"] or ours["sqlState"]
    return compared({**theirs, "sqlState": state}) == compared(ours)


def different_results(names: Iterable[str], theirs: Iterable[Any], ours: Iterable[Any]) -> set[str]:
    """Print the results that differ; return their names."""
    found = zip(names, theirs, ours, strict=True)
    different = [one for one in found if not are_same(*one[1:])]
    for one in different:
        print(*one, sep="\n    ")
    return {name for name, *_ in different}


def compared(error: dict[str, Any]) -> dict[str, Any]:
    """Return what is compared of an error."""
    parameters = error.get("parameters", {}).items()
    shown = {name: "" if name in NOT_COMPARED else value for name, value in parameters}
    return {**error, "parameters": shown}
