"""Permanent views as Spark's session catalog keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
