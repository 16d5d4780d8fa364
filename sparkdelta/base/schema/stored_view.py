"""Views as Spark keeps them: permanent ones, and temporary ones of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class StoredView:
    """A permanent view.

    Attributes
    ----------
    name
        Catalog, database and view.
    text
        The query.
    namespace
        The catalog and database that were current when the view was created. A name in the query
        that has none belongs to them.
    settings
        The settings with which the view was created.
    schema
        The columns of the view.
    query_columns
        The names of these columns in the query; none for the same number of columns.
    mode
        ``BINDING``, ``COMPENSATION``, ``TYPE EVOLUTION`` or ``EVOLUTION``.
    """

    name: tuple[str, ...]
    text: str
    namespace: tuple[str, ...]
    settings: Mapping[str, str]
    schema: StructType
    query_columns: tuple[str, ...]
    mode: str


@dataclass(slots=True)
class TablesOfView:
    """The Delta tables that the text of a view reads, also by other views and functions.

    Attributes
    ----------
    columns
        The columns by the name of a table, with its database.
    has_versions
        True if an option gives a version or time of one.
    has_inner_versions
        True if one in the text of another view does.
    """

    columns: dict[tuple[str, ...], StructType] = field(default_factory=dict)
    has_versions: bool = False
    has_inner_versions: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """A temporary view of rows of one Delta table.

    Attributes
    ----------
    root
        Of the table.
    version
        The one that the view stays at; None if it is the latest.
    columns
        The table's columns by the names of the view's; None for expressions.
    num_columns
        Of the table.
    is_frame
        True if it was made of the table's DataFrame as it is, False if by a query.
    is_partial
        True if it has a condition on the rows.
    is_by_permanent_view
        True if it reads the table by a permanent view.
    """

    root: str
    version: str | None
    columns: Mapping[str, str | None]
    num_columns: int
    is_frame: bool
    is_partial: bool
    is_by_permanent_view: bool
