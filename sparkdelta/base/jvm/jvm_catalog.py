"""The session catalog of classic Spark, ``spark_catalog``, in the JVM."""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sparkdelta.base.jvm.jvm import JvmSession, scala_items, singleton
from sparkdelta.base.jvm.jvm_scans import java_schema_of
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.base.schema.table_schema import quoted_path
from sparkdelta.exceptions import DeltaError, InvalidArgumentError


@dataclass(frozen=True, slots=True)
class _CatalogState:
    """The catalogs of a session, which stay the same as long as the session.

    Attributes
    ----------
    identifier
        Returns the identifier of a quoted name, without a database if the name has none.
    names
        Returns a Scala list of the name of one table.
    """

    catalog: Any
    external: Any
    public: Any
    parser: Any
    identifier: Callable[[str], Any]
    names: Callable[[str], Any]


_states: weakref.WeakKeyDictionary[SparkSession, _CatalogState] = weakref.WeakKeyDictionary()
_MAX_NAMES = 1_000  # of which a session keeps the forms that the JVM takes
_QUOTED_PART = re.compile("`((?:[^`]|``)*)`")


def _quoted_parts(identifier: Any) -> list[str]:
    """Return the parts of the name of a table in the JVM."""
    text = str(identifier.quotedString())
    return [part.replace("``", "`") for part in _QUOTED_PART.findall(text)]


def _may_be_found(description: str, provider: str) -> bool:
    """Return False if Spark's description of a table says that it is neither a view nor of a
    provider, or is empty.
    """
    return "Type: VIEW" in description or f"provider: {provider}" in description.lower()


class JvmCatalog(JvmSession):
    """The part of a classic engine that names tables."""

    def table_location(self, name: Sequence[str], provider: str) -> str | None:
        """Return the location of a table of a provider; None for tables of other providers, views,
        and names of nothing.

        Parameters
        ----------
        name
            Of the table alone, or after a database, or after catalog and database.
        """
        location = self.table_or_view(name, provider)
        return location if isinstance(location, str) else None

    def table_or_view(self, name: Sequence[str], provider: str) -> str | StoredView | None:
        """Return the location of a table of a provider, or a permanent view; None for tables of
        other providers, temporary views, and names of nothing.

        Parameters
        ----------
        name
            As of `table_location`.
        """
        # Statements on tables of any format come here: each call of the JVM counts.
        names_catalog = len(name) == 3 and name[0].lower() == SESSION_CATALOG
        name = name[names_catalog:]
        if not 0 < len(name) < 3 or not all(name) or "/" in name[-1]:  # as in parquet.`/files`
            return None
        state = self._state
        database, table_name = self._names_in_metastore(name)
        try:
            # One request to a metastore; the methods of the session catalog make several. An
            # exception for a name of nothing would take longer than the rest.
            tables = state.external.getTablesByName(database, state.names(table_name))
            description = str(tables.toString())
        except DeltaError:
            raise
        except (AnalysisException, Py4JJavaError):  # there is no such database
            return None
        if not _may_be_found(description, provider):
            return None
        if len(name) == 1 and state.catalog.isTempView(state.identifier(quoted_path(name))):
            return None
        table = tables.apply(0)
        its_provider = str(table.provider().toString())
        has_provider = its_provider.lower() == f"some({provider})"
        is_view = its_provider == "None" and str(table.tableType().name()) == "VIEW"
        if not (has_provider or is_view) or not (names_catalog or self._in_session_catalog(name)):
            return None
        if is_view:
            return self._stored_view(table)
        return str(self.jvm.org.apache.hadoop.fs.Path(table.location()).toString())

    def _names_in_metastore(self, name: Sequence[str]) -> tuple[str, str]:
        """Return the names of a database and a table as an external catalog has them."""
        catalog = self._state.catalog
        if all(part.isascii() and part == part.lower() for part in name):  # case does not matter
            database = name[0] if len(name) == 2 else str(catalog.getCurrentDatabase())
            return database, name[-1]
        identifier = catalog.qualifyIdentifier(self._state.identifier(quoted_path(name)))
        *_, database, table = _quoted_parts(identifier)
        return database, table

    def _stored_view(self, table: Any) -> StoredView | None:
        text, items = table.viewText(), scala_items
        if not text.isDefined():
            return None
        identifier, settings = table.identifier(), table.viewSQLConfigs()
        return StoredView(
            name=(SESSION_CATALOG, str(identifier.database().get()), str(identifier.table())),
            text=str(text.get()),
            namespace=tuple(map(str, items(table.viewCatalogAndNamespace()))),
            settings={str(each._1()): str(each._2()) for each in items(settings.toSeq())},
            schema=StructType.fromJson(json.loads(str(table.schema().json()))),
            query_columns=tuple(map(str, items(table.viewQueryColumnNames()))),
            mode=str(table.viewSchemaMode().toString()),
        )

    def is_temporary_view(self, name: Sequence[str]) -> bool:
        """Return True if a name is that of a temporary view."""
        return len(name) <= 2 and bool(self._catalog.isTempView(self._identifier(name)))

    def is_managed(self, name: Sequence[str]) -> bool:
        """Return True if the session catalog manages the files of a table that it has."""
        identifier = self._identifier(self._in_session_catalog(name))
        return str(self._catalog.getTableMetadata(identifier).tableType().name()) == "MANAGED"

    def owner(self, name: Sequence[str]) -> str:
        """Return the owner of a table that the session catalog has; empty if it has none."""
        identifier = self._identifier(self._in_session_catalog(name))
        return str(self._catalog.getTableMetadata(identifier).owner())

    def free_location(self, name: Sequence[str]) -> str:
        """Return the location that a new managed table gets.

        Raises
        ------
        InvalidArgumentError
            The name is taken, or is not one of the session catalog.
        """
        qualified = self._in_session_catalog(name)
        shown = ".".join(name)
        if not qualified:
            problem = (
                f"{shown} is not a name of {SESSION_CATALOG}, the only catalog that is supported"
            )
            raise InvalidArgumentError(argument="name", problem=problem)
        catalog, identifier = self._catalog, self._identifier(qualified)
        if catalog.tableExists(identifier):
            problem = f"{shown} is a table of another format, or a view"
            raise InvalidArgumentError(argument="name", problem=problem)
        jvm = self.jvm
        return str(jvm.org.apache.hadoop.fs.Path(catalog.defaultTablePath(identifier)).toString())

    def names_before_files(self, *, is_managed: bool) -> bool:  # noqa: ARG002
        """Return True if a table must have its name before it has files. It loses the name again
        if there is no log afterwards.
        """
        return False

    def register_table(
        self,
        name: Sequence[str],
        location: str,
        provider: str,
        *,
        is_managed: bool,
        comment: str | None = None,
    ) -> None:
        """Add a table without columns, which its log has, to the session catalog."""
        jvm = self.jvm
        catalog, package = self._catalog, jvm.org.apache.spark.sql.catalyst.catalog
        some, types = jvm.scala.Option.apply, package.CatalogTableType
        uri = jvm.org.apache.hadoop.fs.Path(location).toUri()
        storage = copied(package.CatalogStorageFormat.empty(), locationUri=some(uri))
        described = _with_defaults(
            singleton(package, "CatalogTable$"),
            "apply",
            catalog.qualifyIdentifier(self._identifier(self._in_session_catalog(name))),
            types.MANAGED() if is_managed else types.EXTERNAL(),
            storage,
            jvm.org.apache.spark.sql.types.StructType(),
            some(provider),
        )
        if comment is not None:
            described = copied(described, comment=some(comment))
        catalog.createTable(described, False, False)

    def check_describes_tables(self) -> None:
        """Raise InvalidArgumentError on Spark Connect, which has no `describe_table`."""

    def describe_table(
        self,
        name: Sequence[str],
        location: str,
        schema: StructType,
        *,
        comment: str | None,
        properties: Mapping[str, str],
    ) -> None:
        """Write the columns, comment and properties of a table into its entry.

        Nothing happens if the session catalog has no table of this name at the location.
        """
        jvm, catalog = self.jvm, self._catalog
        identifier = catalog.qualifyIdentifier(self._identifier(self._in_session_catalog(name)))
        if not catalog.tableExists(identifier):
            return
        table = catalog.getTableMetadata(identifier)
        if str(jvm.org.apache.hadoop.fs.Path(table.location()).toString()) != location:
            return
        described = copied(
            table,
            comment=jvm.scala.Option.apply(comment),
            properties=jvm.PythonUtils.toScalaMap(dict(properties)),
        )
        catalog.alterTable(described)
        # The external catalog takes all columns; the session's only lets columns be added.
        names = str(identifier.database().get()), str(identifier.table())
        self._state.external.alterTableDataSchema(*names, java_schema_of(jvm, schema))
        catalog.refreshTable(identifier)

    def drop_view(self, name: Sequence[str]) -> None:
        """Remove a permanent view."""
        self.drop_table(name)

    def drop_table(self, name: Sequence[str]) -> None:
        """Remove a table from the session catalog, and the files of a managed one."""
        identifier = self._identifier(self._in_session_catalog(name))
        self._catalog.dropTable(identifier, True, False)

    def rename_table(self, name: Sequence[str], new_name: Sequence[str]) -> None:
        """Rename a table; the directory of a managed one is renamed, too.

        Raises
        ------
        InvalidArgumentError
            The new name is taken, or is in another database or catalog.
        """
        catalog, jvm = self._catalog, self.jvm
        old = catalog.qualifyIdentifier(self._identifier(self._in_session_catalog(name)))
        database, new = old.database(), self._in_session_catalog(new_name)
        if not new or (len(new) == 2 and new[0].lower() != database.get().lower()):
            problem = (
                f"{'.'.join(new_name)} is not in database {database.get()}, which the table is in"
            )
            raise InvalidArgumentError(argument="RENAME TO", problem=problem)
        identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(new[-1], database)
        if catalog.tableExists(identifier):
            problem = f"{'.'.join(new_name)} is a table or view already"
            raise InvalidArgumentError(argument="RENAME TO", problem=problem).named(
                "TABLE_OR_VIEW_ALREADY_EXISTS",
                relationName=quoted_path((database.get(), new[-1])),
            )
        catalog.renameTable(old, identifier)

    def move_table(self, name: Sequence[str], location: str) -> None:
        """Give a table another location; no file is moved."""
        catalog, jvm = self._catalog, self.jvm
        identifier = self._identifier(self._in_session_catalog(name))
        table, uri = catalog.getTableMetadata(identifier), jvm.org.apache.hadoop.fs.Path(location)
        storage = copied(table.storage(), locationUri=jvm.scala.Option.apply(uri.toUri()))
        catalog.alterTable(copied(table, storage=storage))
        catalog.refreshTable(identifier)

    @property
    def _catalog(self) -> Any:
        return self._state.catalog

    @property
    def _state(self) -> _CatalogState:
        if self.spark not in _states:
            state = self.java.sessionState()
            external = self.java.sharedState().externalCatalog()
            public = self.java.catalog()
            parser, option = state.sqlParser(), self.jvm.scala.Option
            _states[self.spark] = _CatalogState(
                catalog=state.catalog(),
                external=external,
                public=public,
                parser=parser,
                identifier=lru_cache(_MAX_NAMES)(parser.parseTableIdentifier),
                names=lru_cache(_MAX_NAMES)(lambda name: option.apply(name).toList()),
            )
        return _states[self.spark]

    def _in_session_catalog(self, name: Sequence[str]) -> Sequence[str]:
        """Return a name without its catalog; an empty one if it is not in the session catalog."""
        if len(name) == 3:
            return name[1:] if name[0].lower() == SESSION_CATALOG else ()
        current = self._state.public.currentCatalog() if len(name) < 3 else None
        return name if current == SESSION_CATALOG else ()

    def _identifier(self, name: Sequence[str]) -> Any:
        jvm = self.jvm
        database = jvm.scala.Option.apply(name[0] if len(name) == 2 else None)
        return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name[-1], database)


def _with_defaults(owner: Any, method: str, *values: Any) -> Any:
    """Call a Scala method with some arguments, and its defaults for the rest."""
    count = next(
        each.getParameterCount()
        for each in owner.getClass().getMethods()
        if each.getName() == method and each.getParameterCount() >= len(values)
    )
    defaults = (getattr(owner, f"{method}$default${number + 1}") for number in range(count))
    given = len(values)
    rest = [default() for number, default in enumerate(defaults) if number >= given]
    return getattr(owner, method)(*values, *rest)


def copied(record: Any, **fields: Any) -> Any:
    """Copy a Scala case class with other values of some fields."""
    names = [str(each) for each in scala_items(record.productElementNames().toSeq())]
    last = max(map(names.index, fields))
    values = (
        fields.get(name, record.productElement(n)) for n, name in enumerate(names[: last + 1])
    )
    return _with_defaults(record, "copy", *values)
