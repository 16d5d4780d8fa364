"""The version checksum command.

References
----------
PROTOCOL.md#version-checksum-file
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.operations.upkeep.checksum_writing import ChecksumResult, add_version_checksum
from sparkdelta.table.definition.writable import open_writable


def version_checksum(
    spark: SparkSession, path: str, *, version: Version | None = None
) -> ChecksumResult:
    """Write the checksum of a version, see `sparkdelta.write_version_checksum`."""
    snapshot = open_writable(spark, path, version=version)
    with jobs_of(snapshot.path, snapshot.version):
        return add_version_checksum(snapshot)
