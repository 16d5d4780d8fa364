"""NOT NULL columns that a scan declares as such to Spark, once its files are known to have no nulls
in them.

Spark relies on the declaration: it takes `id IS NULL` for false without reading a row, and reads a
null as any value. Other writers may have left nulls, so the live files of a version are checked
before Spark plans with the declaration: by statistics, and those without a null count by Spark's
own Parquet source, which looks at footers and reads row groups with nulls alone. If an earlier
version was checked, the statistics of the commits since are mostly enough, and cost no Spark job.

References
----------
PROTOCOL.md#column-invariants, PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import starmap

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.predicates.predicate_rules import And, Column, IsNull, Or, Predicate
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.log_files import LogFile
from sparkdelta.base.schema.action_schemas import ADD
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.schema.table_schema import quoted_path, without_void
from sparkdelta.base.skipping.data_skipping_frames import NOTHING_STORED, DataSkipping
from sparkdelta.base.spark.driver import has_rows, read_rows
from sparkdelta.base.spark.job_names import jobs_of
from sparkdelta.base.storage.recent_values import RecentValues
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.scan.live_files import LiveFiles, skipping_of
from sparkdelta.table.scan.native_scan import NativeScan
from sparkdelta.table.scan.scan_request import FileList, MetadataColumn, RowCondition, ScanRequest

MAX_SEARCHED_FILES = 1_000
"""Up to this many files without a null count are searched for nulls."""

_MAX_LOCAL_LINES = 2_000
"""Up to this many lines of commits are checked without a Spark job."""

_STATISTICS = StructType(
    [StructField("add", StructType([ADD[name] for name in ("path", "partitionValues", "stats")]))]
)

_checked_versions: RecentValues[object, bool] = RecentValues(256)
_searched_files: RecentValues[object, bool] = RecentValues(100_000)
_last_checked_commits: RecentValues[object, LogFile] = RecentValues(256)


def has_not_null_columns(schema: StructType) -> bool:
    """Return True if a field outside of arrays and maps is NOT NULL."""
    return any(True for _ in _not_null_fields(schema))


def are_without_nulls(live: LiveFiles, request: ScanRequest) -> bool:
    """Return True if no live row has a null in a NOT NULL column; False if too many files would
    have to be searched.

    Parameters
    ----------
    live
        All live files, in a listing session.
    request
        Its configuration has the columns; the files may be of a later version.
    """
    log, schema = live.state.log, request.configuration.schema
    fields = tuple(_not_null_fields(schema))
    paths = tuple(path for path, _ in fields)
    version = sha256(log.contents.encode()).digest(), paths
    metadata = request.configuration.metadata
    table = log.table_root, metadata.id, metadata.schema_string
    checked = _checked_versions.find(version)
    if checked is None:
        skipping = skipping_of(live.state, Or(tuple(starmap(_may_be_null, fields))))
        assert skipping is not None
        with jobs_of(log.table_root, log.segment.version):
            checked = _adds_no_nulls(log, _last_checked_commits.find(table), skipping)
            if not checked:
                doubtful = replace(live, skipping=skipping, tracks_rows=False)
                checked = _have_no_nulls(doubtful.listed(MAX_SEARCHED_FILES), paths, live, request)
        _checked_versions.keep(version, checked)
        if checked and log.commits.files:
            _last_checked_commits.keep(table, log.commits.files[-1])
    return checked


def _not_null_fields(
    struct: StructType, parents: ColumnPath = ()
) -> Iterator[tuple[ColumnPath, StructField]]:
    for field in struct.fields:
        path = (*parents, field.name)
        if not field.nullable and without_void(field.dataType) is not None:
            yield path, field
        if isinstance(field.dataType, StructType):
            yield from _not_null_fields(field.dataType, path)


def _may_be_null(path: ColumnPath, field: StructField) -> Predicate:
    """Return a predicate that selects all rows with a null in a field, and perhaps others.

    Structs have no null count, but if one is null, all of its leaves are.
    """
    if isinstance(field.dataType, StructType) and field.dataType.fields:
        inner = field.dataType.fields
        return And(tuple(_may_be_null((*path, each.name), each) for each in inner))
    return IsNull(Column(path))


def _adds_no_nulls(log: LogReader, last_checked: LogFile | None, skipping: DataSkipping) -> bool:
    """Return True if the statistics of all files that were added after a checked commit, live or
    not, show that they have no nulls; False if this is not known without a Spark job.
    """
    lines, start = log.commits.local_lines, None
    if last_checked in log.commits.files and last_checked.end_version is None:
        start = last_checked.version
    elif log.checkpoint is not None:
        return False
    if lines is None or lines.num_rows > _MAX_LOCAL_LINES:
        return False
    adds = log.commits.parsed(_STATISTICS, above=start, without_job=True)
    adds = adds.filter("add.path IS NOT NULL").select("add.*")
    doubtful = skipping.keep(adds, NOTHING_STORED).select(F.lit(1))
    return not has_rows(doubtful, what="files with nulls", version=log.segment.version)


def _have_no_nulls(
    doubtful: FileList,
    paths: tuple[ColumnPath, ...],
    live: LiveFiles,
    request: ScanRequest,
) -> bool:
    if isinstance(doubtful, DataFrame):
        return False
    columns = {"file", "deletionVector"} & {*doubtful.column_names}
    identities = [(str(file), paths) for file in doubtful.select(sorted(columns)).to_pylist()]
    is_new = [_searched_files.find(identity) is None for identity in identities]
    files = doubtful.filter(pa.array(is_new, pa.bool_()))
    if not files.num_rows:
        return True
    broken = {path: _is_broken(path) for path in paths}
    search = replace(
        request,
        version=live.state.log.segment.version,
        columns=frozenset(path[0] for path in paths),
        metadata_columns=frozenset([MetadataColumn.FILE]),
        condition=RowCondition(" OR ".join(broken.values()), is_infallible=True),
        keeps_not_null=False,
    )
    names = (f"WHEN {rule} THEN {text_literal('.'.join(path))}" for path, rule in broken.items())
    rows = NativeScan(live.state.log.spark, search).rows(files)
    nulls = rows.select(
        F.expr(f"CASE {' '.join(names)} END").alias("column"), F.col(MetadataColumn.FILE.value)
    )
    for column, file in read_rows(
        nulls.limit(1), what="nulls in NOT NULL columns", bound=1, version=search.version
    ):
        raise DeltaError.of("DELTA_NULLS_IN_NOT_NULL_COLUMN", column=column, file=file)
    for identity in identities:
        _searched_files.keep(identity, True)
    return True


def _is_broken(path: ColumnPath) -> str:
    """Return the SQL condition that a field is null, and not only the struct that it is in."""
    is_null = f"{quoted_path(path)} IS NULL"
    return f"({quoted_path(path[:-1])} IS NOT NULL AND {is_null})" if path[1:] else is_null
