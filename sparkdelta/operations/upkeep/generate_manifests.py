"""Generate the symlink manifests of a table.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import ManifestModeError
from sparkdelta.operations.upkeep.symlink_manifests import generate_manifests
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.snapshot.snapshot import open_snapshot

SYMLINK_FORMAT_MANIFEST = "symlink_format_manifest"


def generate(
    spark: SparkSession, path: str, mode: str, options: Mapping[str, str] | None = None
) -> None:
    """Generate the symlink manifests of a table, see
    `sparkdelta.api.delta_table.DeltaTable.generate`.
    """
    if not isinstance(mode, str) or mode.lower() != SYMLINK_FORMAT_MANIFEST:
        raise ManifestModeError(mode=str(mode))
    store = open_log_for_writing(spark, path, options)
    snapshot = open_snapshot(spark, path, store=store, options=options)
    with (
        engine_of(spark).log_session() as session,
        jobs_of(snapshot.path, snapshot.version),
    ):
        generate_manifests(snapshot.in_session(session))
