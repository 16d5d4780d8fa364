"""CACHE TABLE and UNCACHE TABLE of permanent views: Spark's cache has the Delta tables that they
read, which it keeps up to date.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.storagelevel import StorageLevel

from sparkdelta.base.schema.stored_view import StoredView
from sparkdelta.sql.grammar.parser import Name, Parser
from sparkdelta.sql.grammar.tokens import Fragment
from sparkdelta.sql.statements.cached_tables import (
    cache_table,
    is_cached,
    storage_level,
    uncache_table,
)
from sparkdelta.sql.statements.queries import SparkSql


def cache_or_uncache_view(sql: SparkSql, text: Fragment) -> bool:
    """Carry out CACHE [LAZY] TABLE or UNCACHE TABLE of a view that reads Delta tables; return False
    if the text is another statement.
    """
    parser, level = Parser(text.whole, text.tokens), None
    uncaches = parser.accept("UNCACHE")
    if not uncaches and not parser.accept("CACHE"):
        return False
    is_lazy = parser.accept("LAZY")
    if not parser.accept("TABLE"):
        return False
    parser.accept("IF EXISTS")
    view = sql.view_of_delta(parser.table_name())
    if parser.accept("OPTIONS"):
        level = storage_level(parser.properties())
    if not parser.is_at_end or view is None:
        return False
    cached = CachedView(sql, view)
    if uncaches:
        cached.uncache()
        return True
    cached.cache(level)
    if not is_lazy:
        sql.view_rows(view).write.format("noop").mode("overwrite").save()
    return True


@dataclass(frozen=True, slots=True)
class CachedView:
    """A permanent view that reads Delta tables, as ``spark.catalog`` caches it."""

    sql: SparkSql
    view: StoredView

    @classmethod
    def find(cls, spark: SparkSession, name: Name) -> CachedView | None:
        """Return the view of a name; None for everything else."""
        sql = SparkSql(spark, spark.sql, {})
        view = sql.view_of_delta(name)
        return None if view is None else cls(sql, view)

    def cache(self, level: StorageLevel | None = None) -> None:
        """Keep the rows of the tables in Spark's cache from the next query on."""
        for path in self.sql.paths_of(self.view):
            cache_table(self.sql.spark, path, level)

    def uncache(self) -> None:
        """Take the rows of the tables from Spark's cache."""
        for path in self.sql.paths_of(self.view):
            uncache_table(self.sql.spark, path)

    def is_cached(self) -> bool:
        """Return True if Spark's cache has all tables, or will have them after the next query."""
        paths = self.sql.paths_of(self.view)
        return bool(paths) and all(is_cached(self.sql.spark, path) for path in paths)
