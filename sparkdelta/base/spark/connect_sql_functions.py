"""Permanent SQL functions in the session catalog of a Spark Connect server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

from pyspark.errors import AnalysisException

from sparkdelta.base.schema.stored_view import TablesOfView
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.connect_sessions import connect_sibling
from sparkdelta.base.spark.connect_views import ConnectViews
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import OF_QUERIES
from sparkdelta.exceptions import DeltaError, InvalidArgumentError

_MAX_LINES = 1_000
_LINE = re.compile(r"([A-Z][A-Za-z ]*):\s+(.*)", re.DOTALL)
_KINDS = {"Input": "inputParam", "Returns": "returnType", "Body": "query"}
"""The lines of DESCRIBE FUNCTION, and the properties that Spark 4.0 shows instead."""
_ONLY_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "UNRESOLVED_ROUTINE", "UNRESOLVED_COLUMN")
"""The errors for temporary objects in a session that does not have them."""


class ConnectSqlFunctions(ConnectViews):
    """The part of a Spark Connect engine that stores and calls SQL functions."""

    def function_text(self, name: Sequence[str]) -> str | None:
        return self._described(name).get("query")

    def load_function(self, name: Sequence[str], text: str, views: Sequence[str]) -> str:  # noqa: ARG002
        """Create a temporary function, as a session cannot have two texts of a permanent one.

        Raises
        ------
        DELTA_STATEMENT_NOT_SUPPORTED
            The function was created with other settings.
        """
        found = self._described(name)
        self._check_settings(name, found)
        temporary = quoted(f"{name[-1]}_{uuid4().hex}")
        returns = found["returnType"]
        returns = f"TABLE ({returns})" if found["isTableFunc"] == "true" else returns
        parameters = found.get("inputParam", "").removeprefix("()")
        self.spark.sql(
            f"CREATE TEMPORARY FUNCTION {temporary}({parameters}) RETURNS {returns} RETURN {text}"
        )
        return temporary

    def store_function(
        self,
        name: Sequence[str],
        statement: str,
        temporary: str,  # noqa: ARG002 - which has shown that the text is right
        views: Sequence[str],  # noqa: ARG002
        tables: Callable[[], TablesOfView],
    ) -> bool:
        """Store a function as Spark does; return False if it reads temporary objects."""
        read = tables()
        if read.has_versions:
            kind = f"the permanent function {name[-1]} of a version, on Spark Connect"
            raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
        with self._knowing(read) as run:
            try:
                run(statement)
            except DeltaError:
                raise
            except AnalysisException as error:
                if (error.getCondition() or "").partition(".")[0] in _ONLY_THERE:
                    return False
                raise
        return True

    def _described(self, name: Sequence[str]) -> Mapping[str, str]:
        """Return the properties of a permanent SQL function; none for everything else."""
        try:
            named = quoted_path(self._qualified(name))
        except InvalidArgumentError:  # it is in another catalog
            return {}
        try:
            _ = self.spark.sql(f"DESCRIBE FUNCTION {named}")
        except DeltaError:
            raise
        except AnalysisException:
            return {}
        with connect_sibling(self.spark, {}) as sibling:  # the user's may know an earlier one
            described = sibling.sql(f"DESCRIBE FUNCTION EXTENDED {named}")
            rows = read_rows(described, what="definition of a function", bound=_MAX_LINES)
        lines, key = dict[str, str](), ""
        for (text,) in rows:
            found = _LINE.fullmatch(text)
            if found is None:
                lines[key] = f"{lines.get(key, '')}\n{text.strip()}"
            else:
                key, lines[found[1]] = found[1], found[2]
        if lines.get("Class", "").startswith("sqlFunction."):
            stored = json.loads(lines["Usage"])
            found_ = {key.removeprefix("sqlFunction."): text for key, text in stored.items()}
            return {**found_, "query": found_.get("query") or found_["expression"]}
        if lines.get("Type") not in ("SCALAR", "TABLE"):
            return {}
        settings = (each.partition("=") for each in lines.get("Configs", "").split("\n"))
        return {
            **{key: lines[line] for line, key in _KINDS.items() if line in lines},
            **{f"sqlConfig.{setting}": value for setting, _, value in settings},
            "isTableFunc": str(lines["Type"] == "TABLE").lower(),
        }

    def _check_settings(self, name: Sequence[str], found: Mapping[str, str]) -> None:
        for setting in OF_QUERIES:
            value = found.get(f"sqlConfig.{setting}")
            if value is not None and value.lower() != str(self.spark.conf.get(setting)).lower():
                kind = f"the function {name[-1]}, which was created with {setting}={value}"
                raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)
