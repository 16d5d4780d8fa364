"""Permanent SQL functions in the session catalog of classic Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sparkdelta.base.jvm.jvm import singleton
from sparkdelta.base.jvm.jvm_catalog import copied
from sparkdelta.base.jvm.jvm_views import JvmViews
from sparkdelta.base.schema.stored_view import TablesOfView

_VIEWS = "referredTempViewNames"
_OTHERS = ("referredTempFunctionsNames", "referredTempVariableNames")


class JvmFunctions(JvmViews):
    """The part of a classic engine that stores and loads SQL functions."""

    def function_text(self, name: Sequence[str]) -> str | None:
        """Return the expression or query of a permanent SQL function; None if the name is of
        nothing or of another function.
        """
        function = self._permanent_function(name)
        if function is None:
            return None
        body = function.exprText()
        return str((body if body.isDefined() else function.queryText()).get())

    def load_function(self, name: Sequence[str], text: str, views: Sequence[str]) -> str | None:
        """Let the session run another text where a permanent SQL function is called; return the
        name, as SQL, of a temporary function that has to be called instead, on Spark Connect.

        Parameters
        ----------
        views
            The temporary views that the text reads.
        """
        function = self._permanent_function(name)
        field = "exprText" if function.exprText().isDefined() else "queryText"
        function = copied(
            function,
            properties=function.properties().updated(_VIEWS, json.dumps([[v] for v in views])),
            **{field: self.jvm.scala.Option.apply(text)},
        )
        if function.isTableFunc():
            self._catalog.registerSQLTableFunction(function, True)
        else:
            self._catalog.registerSQLScalarFunction(function, True)
        return None

    def store_function(
        self,
        name: Sequence[str],
        statement: str,
        temporary: str,
        views: Sequence[str],
        tables: Callable[[], TablesOfView],  # noqa: ARG002 - the temporary one has been analyzed
    ) -> bool:
        """Store a temporary SQL function as a permanent one; return False if it reads temporary
        views, functions or variables of the user.

        Parameters
        ----------
        statement
            CREATE FUNCTION, whose text is stored.
        temporary
            The name of the temporary function.
        views
            Temporary views that may be read.
        tables
            Returns the tables that the text reads; only Spark Connect asks for them.
        """
        catalog = self._catalog
        plan = self._state.parser.parsePlan(statement)
        identifier = self._function_identifier(name)
        if plan.ignoreIfExists() and catalog.isPersistentFunction(identifier):
            return True
        qualified = catalog.qualifyIdentifier(identifier)
        info = catalog.lookupFunctionInfo(self._function_identifier((temporary,)))
        package = self.jvm.org.apache.spark.sql.catalyst.catalog
        # The catalog keeps what the session knows of a function as numbered parts.
        part = package.FunctionResource(
            singleton(package, "FileResource$"), f"000{info.getUsage()}"
        )
        parts = self.jvm.PythonUtils.toSeq([part])
        stored = package.CatalogFunction(qualified, info.getClassName(), parts)
        function = self._parsed(stored)
        properties = function.properties()
        if any(each not in views for (each,) in json.loads(properties.apply(_VIEWS))):
            return False
        if any(json.loads(properties.apply(others)) for others in _OTHERS):
            return False
        function = copied(
            function,
            exprText=plan.exprText(),
            queryText=plan.queryText(),
            properties=properties.updated(_VIEWS, "[]"),
        )
        if plan.replace():
            catalog.dropFunction(identifier, True)
        catalog.createUserDefinedFunction(function, False)
        return True

    def _permanent_function(self, name: Sequence[str]) -> Any:
        name = self._in_session_catalog(name)
        if not name:
            return None
        catalog, identifier = self._catalog, self._function_identifier(name)
        if not catalog.isPersistentFunction(identifier):
            return None
        database = name[0] if len(name) == 2 else catalog.getCurrentDatabase()
        stored = self._state.external.getFunction(database, name[-1])
        return self._parsed(copied(stored, identifier=catalog.qualifyIdentifier(identifier)))

    def _parsed(self, stored: Any) -> Any:
        """Return a function of the catalog as a SQL function; None for others."""
        package = self.jvm.org.apache.spark.sql.catalyst.catalog
        functions = singleton(package, "UserDefinedFunction$")
        if not functions.isUserDefinedFunction(stored.className()):
            return None
        return functions.fromCatalogFunction(stored, self._state.parser)

    def _function_identifier(self, name: Sequence[str]) -> Any:
        jvm = self.jvm
        database = jvm.scala.Option.apply(name[-2] if len(name) > 1 else None)
        return jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name[-1], database)
