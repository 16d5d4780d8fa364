"""Conversion of a directory of Parquet files to a table: the files stay as they are.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#change-metadata
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.protocol.results import Result
from sparkdelta.base.protocol.table_features import TableFeature, check_data_writable, is_supported
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.copy.conversion_workers import IS_HIDDEN, ParquetLister
from sparkdelta.operations.copy.converted_table import ConvertOptions, convert_files
from sparkdelta.operations.upkeep.commit_hooks import run_commit_hooks
from sparkdelta.table.commit.staged_commit_rules import Operation
from sparkdelta.table.commit.transaction import Transaction
from sparkdelta.table.definition.alteration import shown_json
from sparkdelta.table.listing.listing import open_log_for_writing
from sparkdelta.table.snapshot.directory_listing import list_directory
from sparkdelta.table.snapshot.snapshot import find_snapshot
from sparkdelta.table.snapshot.staging import Staging, staging

_IDENTIFIER = re.compile(r"(?P<source>\w+)\s*\.\s*`(?P<path>(?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertResult(Result):
    """The outcome of a conversion.

    Attributes
    ----------
    version
        The version that it committed; None if there was a table already.
    """

    path: str
    version: Version | None = None
    num_converted_files: int = 0
    num_bytes: int = 0
    milliseconds: int = 0

    def __str__(self) -> str:
        if self.version is None:
            return f"Nothing to do: {self.path} is a Delta table"
        return f"Converted {self.num_converted_files} files ({self.num_bytes} bytes) of {self.path}"


def convert(spark: SparkSession, path: str, options: ConvertOptions) -> ConvertResult:
    """Commit the files of a directory as a table, see `sparkdelta.convert_to_delta`."""
    start_ms = time.time_ns() // 1_000_000
    store = open_log_for_writing(spark, path)
    root = store.table_root
    if find_snapshot(spark, store) is not None:
        return ConvertResult(path=root)
    with (
        engine_of(spark).log_session() as session,
        jobs_of(root, None),
        staging(session, store) as stage,
    ):
        converted = convert_files(root, _listed(session, root, stage), stage, options)
        table = converted.change.after
        check_data_writable(table.protocol, path=root)
        tracks_rows = is_supported(table.protocol, TableFeature.ROW_TRACKING)
        if tracks_rows and not options.collects_statistics:
            raise DeltaError.of("DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS", path=root)
        done = Transaction(
            spark=spark,
            store=store,
            snapshot=None,
            operation=Operation(
                "CONVERT",
                {
                    "numFiles": converted.num_files,
                    "partitionedBy": shown_json(list(table.partition_columns)),
                    "collectStats": options.collects_statistics,
                    "sourceFormat": "parquet",
                },
                metrics={"numConvertedFiles": converted.num_files},
            ),
            staged=converted.change.actions,
            file_actions=converted.adds,
        ).commit()
    run_commit_hooks(done)
    return ConvertResult(
        path=root,
        version=done.version,
        num_converted_files=converted.num_files,
        num_bytes=converted.num_bytes,
        milliseconds=time.time_ns() // 1_000_000 - start_ms,
    )


def _listed(session: SparkSession, root: str, stage: Staging) -> DataFrame:
    """List the files of the directory for `convert_files`.

    A symbolic link is an error: rows would be missing, as links are not followed.
    """
    files = worker_files(session, root, {})
    lister = ParquetLister(files=files, root=root)
    entries = list_directory(lister, stage, {}, by_workers=files.is_near(root))
    links = entries.filter(f"isOther AND NOT path RLIKE '(^|/){IS_HIDDEN}$'").select("path")
    for row in read_rows(links.limit(1), what="symbolic link among files", bound=1):
        raise DeltaError.of("DELTA_PATH_OUTSIDE_TABLE", path=row["path"], table_root=root)
    return entries.filter("NOT isDir AND NOT isOther").select(
        F.concat(F.lit(f"{root}/"), "path").alias("path"), "length", "modificationTime"
    )


def parquet_path(identifier: str) -> str:
    """Return the path of an identifier ``parquet.`/path``` or ``delta.`/path```; refuse any other.

    A table of the second form needs no conversion.
    """
    match = _IDENTIFIER.fullmatch(identifier.strip()) if isinstance(identifier, str) else None
    if match is None:
        raise DeltaError.of("DELTA_MISSING_PROVIDER_FOR_CONVERT", identifier=str(identifier))
    path = match["path"].replace("``", "`")
    if match["source"].lower() not in ("parquet", "delta"):
        raise DeltaError.of("DELTA_CONVERT_NON_PARQUET_TABLE", source=match["source"], table=path)
    return path
