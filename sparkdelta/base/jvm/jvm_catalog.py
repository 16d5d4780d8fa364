"""The session catalog of classic Spark, ``spark_catalog``, in the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sparkdelta.base.jvm.jvm import jvm_of
from sparkdelta.base.schema.sql_text import SESSION_CATALOG
from sparkdelta.exceptions import InvalidArgumentError


def table_location(spark: SparkSession, name: Sequence[str], provider: str) -> str | None:
    """Return the location of a table of a provider; None for others, views, and what is not there.

    Parameters
    ----------
    name
        Of the table alone, or after a database, or after catalog and database.
    """
    name = _in_session_catalog(spark, name)
    if not name:
        return None
    catalog, identifier = _catalog(spark), _identifier(spark, name)
    if len(name) == 1 and catalog.isTempView(identifier):
        return None
    try:
        if not catalog.tableExists(identifier):
            return None
        table = catalog.getTableMetadata(identifier)
    except (AnalysisException, Py4JJavaError):  # there is no such database
        return None
    its_provider = table.provider()
    if not its_provider.isDefined() or str(its_provider.get()).lower() != provider:
        return None
    jvm = jvm_of(spark)
    return str(jvm.org.apache.hadoop.fs.Path(table.location()).toString())


def is_managed(spark: SparkSession, name: Sequence[str]) -> bool:
    """True if dropping a table of the session catalog deletes its files."""
    identifier = _identifier(spark, _in_session_catalog(spark, name))
    return str(_catalog(spark).getTableMetadata(identifier).tableType().name()) == "MANAGED"


def free_location(spark: SparkSession, name: Sequence[str]) -> str:
    """Return the location that a new managed table gets.

    Raises
    ------
    InvalidArgumentError
        The name is taken, or is not one of the session catalog.
    """
    qualified = _in_session_catalog(spark, name)
    shown = ".".join(name)
    if not qualified:
        problem = f"{shown} is not a name of {SESSION_CATALOG}, the only catalog that is supported"
        raise InvalidArgumentError(argument="name", problem=problem)
    catalog, identifier = _catalog(spark), _identifier(spark, qualified)
    if catalog.tableExists(identifier):
        problem = f"{shown} is a table of another format, or a view"
        raise InvalidArgumentError(argument="name", problem=problem)
    jvm = jvm_of(spark)
    return str(jvm.org.apache.hadoop.fs.Path(catalog.defaultTablePath(identifier)).toString())


def register_table(
    spark: SparkSession, name: Sequence[str], location: str, provider: str, *, is_managed: bool
) -> None:
    """Add a table without columns, which its log has, to the session catalog."""
    jvm = jvm_of(spark)
    catalog, package = _catalog(spark), jvm.org.apache.spark.sql.catalyst.catalog
    some, types = jvm.scala.Option.apply, package.CatalogTableType
    uri = jvm.org.apache.hadoop.fs.Path(location).toUri()
    storage = _with_defaults(package.CatalogStorageFormat.empty(), "copy", some(uri))
    described = _with_defaults(
        getattr(getattr(package, "CatalogTable$"), "MODULE$"),
        "apply",
        catalog.qualifyIdentifier(_identifier(spark, _in_session_catalog(spark, name))),
        types.MANAGED() if is_managed else types.EXTERNAL(),
        storage,
        jvm.org.apache.spark.sql.types.StructType(),
        some(provider),
    )
    catalog.createTable(described, False, False)


def drop_table(spark: SparkSession, name: Sequence[str]) -> None:
    """Remove a table from the session catalog, and the files of a managed one."""
    identifier = _identifier(spark, _in_session_catalog(spark, name))
    _catalog(spark).dropTable(identifier, True, False)


def rename_table(spark: SparkSession, name: Sequence[str], new_name: Sequence[str]) -> None:
    """Rename a table; the directory of a managed one is renamed, too.

    Raises
    ------
    InvalidArgumentError
        The new name is taken, or is in another database or catalog.
    """
    catalog, jvm = _catalog(spark), jvm_of(spark)
    old = catalog.qualifyIdentifier(_identifier(spark, _in_session_catalog(spark, name)))
    database, new = old.database(), _in_session_catalog(spark, new_name)
    if not new or (len(new) == 2 and new[0].lower() != database.get().lower()):
        problem = f"{'.'.join(new_name)} is not in database {database.get()}, which the table is in"
        raise InvalidArgumentError(argument="RENAME TO", problem=problem)
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(new[-1], database)
    if catalog.tableExists(identifier):
        problem = f"{'.'.join(new_name)} is a table or view already"
        raise InvalidArgumentError(argument="RENAME TO", problem=problem)
    catalog.renameTable(old, identifier)


def move_table(spark: SparkSession, name: Sequence[str], location: str) -> None:
    """Give a table another location; no file is moved."""
    catalog, jvm = _catalog(spark), jvm_of(spark)
    identifier = _identifier(spark, _in_session_catalog(spark, name))
    table, uri = catalog.getTableMetadata(identifier), jvm.org.apache.hadoop.fs.Path(location)
    storage = _with_defaults(table.storage(), "copy", jvm.scala.Option.apply(uri.toUri()))
    catalog.alterTable(
        _with_defaults(table, "copy", table.identifier(), table.tableType(), storage)
    )
    catalog.refreshTable(identifier)


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


def _catalog(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().catalog()


def _in_session_catalog(spark: SparkSession, name: Sequence[str]) -> Sequence[str]:
    """Return a name without its catalog; an empty one if it is not in the session catalog."""
    if len(name) == 3:
        return name[1:] if name[0].lower() == SESSION_CATALOG else ()
    current = spark._jsparkSession.sessionState().catalogManager().currentCatalog().name()
    return name if len(name) < 3 and str(current) == SESSION_CATALOG else ()


def _identifier(spark: SparkSession, name: Sequence[str]) -> Any:
    jvm = jvm_of(spark)
    database = jvm.scala.Option.apply(name[0] if len(name) == 2 else None)
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name[-1], database)
