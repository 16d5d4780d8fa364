"""Public: tables whose commits a catalog ratifies."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.table.listing.catalog_log import (
    Catalog,
    RatifiedCommits,
    StagedCommit,
    set_catalog,
)
from sparkdelta.table.listing.listing import open_log

__all__ = ["Catalog", "RatifiedCommits", "StagedCommit", "use_catalog"]


def use_catalog(spark: SparkSession, path: str, catalog: Catalog | None) -> None:
    """Set the catalog through which the table at a path is accessed from now on.

    Reads see the commits that the catalog has ratified, and no others. A commit is staged below
    ``_delta_log/_staged_commits``, ratified by the catalog, and then published. A new table is
    managed by the catalog if it is created with the property ``delta.feature.catalogManaged`` as
    ``supported``. Without a catalog, such tables can be neither read nor written.

    Parameters
    ----------
    path
        The root of a table, or of one to be created.
    catalog
        None to access the table without a catalog again.

    Notes
    -----
    Inline commits, whose content the catalog stores itself, are not supported. Log cleanup, vacuum,
    optimize, reorg and repair are left to the catalog.

    References
    ----------
    PROTOCOL.md#catalog-managed-tables
    """
    set_catalog(open_log(spark, path).table_root, catalog)
