"""Reads of data files that are chosen when a query runs, by all its filters."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from secrets import token_bytes

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.engine.parquet_scan import uris_of
from sparkdelta.engine.spark_engine import engine_of
from sparkdelta.exceptions import DataFileNotReadError
from sparkdelta.predicates.analyzed_text import qualifier_of
from sparkdelta.predicates.pushed_filters import parse_pushed
from sparkdelta.protocol.file_paths import plain_path
from sparkdelta.protocol.predicates import Predicate, without_not
from sparkdelta.schema.table_schema import as_nullable, quoted
from sparkdelta.storage.parquet import PARQUET_OPTIONS, LateRelation, ListedFiles
from sparkdelta.table.scan.conditions import with_partition_terms
from sparkdelta.table.scan.request import ScanRequest

_SECRET = token_bytes(16)
_KEPT_LISTINGS = 4
_NUMBER = "sparkdelta:number"

ListFiles = Callable[[Predicate | None], pa.Table]
"""Returns the files that may have rows of which a predicate is true, as `NativeScan.rows` takes
them."""


@dataclass(frozen=True, slots=True)
class LateScan:
    """A read by Spark's own Parquet source, of files that the log is asked for once Spark has
    planned a query: then all its filters are known.

    Attributes
    ----------
    listing
        A listing session of the engine.
    request
        Without a condition, and without columns that need the file of a row.
    list_files
        Runs in that session.
    contents
        A text that only scans of the same files have.
    size_bytes
        As of `storage.parquet.FileLister`.
    """

    spark: SparkSession
    listing: SparkSession
    request: ScanRequest
    list_files: ListFiles
    contents: str
    size_bytes: int | None

    def rows(self) -> DataFrame:
        """The rows of the table, in the columns of the request's `output`. Starts no job."""
        request = self.request
        partitions = StructType(  # in the order of `typed_partition_values`
            [
                StructField(name, as_nullable(field.dataType))
                for name, field in request.partition_columns.items()
            ]
        )
        data = StructType([c.stored for c in request.row_columns if c.stored is not None])
        sources = {
            column.field.name: column.stored or partitions[str(column.default)]
            for column in request.row_columns
        }
        files = _LateFiles(
            request=request,
            listing=self.listing,
            stored=StructType(list(sources.values())),
            list_files=self.list_files,
            identity=hmac.new(_SECRET, self.contents.encode(), "sha256").hexdigest(),
            size_bytes=self.size_bytes,
        )
        options = {**request.options, **PARQUET_OPTIONS}
        scanned = engine_of(self.spark).late_rows(
            LateRelation(files, data, partitions, options, request.table_root), self.listing
        )
        # In the text of filters, only its columns are qualified by this name.
        scanned = scanned.alias(qualifier_of(files.stored))
        return scanned.select(
            *request.logical_columns(
                {
                    name: (F.col(quoted(source.name)), source.dataType)
                    for name, source in sources.items()
                }
            )
        )


@dataclass(slots=True, eq=False, kw_only=True)
class _LateFiles:
    """The `FileLister` of a `LateScan`, which the JVM keeps."""

    request: ScanRequest
    listing: SparkSession
    stored: StructType
    list_files: ListFiles
    identity: str
    size_bytes: int | None
    _listed: OrderedDict[Predicate | None, ListedFiles] = field(default_factory=OrderedDict)

    def listed(self, filters: str | None, has_user_functions: Callable[[], bool]) -> ListedFiles:
        predicate = None
        if filters is not None:
            logical = StructType([column.field for column in self.request.row_columns])
            predicate = parse_pushed(
                filters, self.stored, logical, has_user_functions=has_user_functions
            )
            predicate = with_partition_terms(
                self.listing, without_not(predicate), self.request.configuration
            )
        found = self._listed.get(predicate)
        if found is None:
            found = self._listed[predicate] = self._grouped(self.list_files(predicate))
            while len(self._listed) > _KEPT_LISTINGS:
                self._listed.popitem(last=False)
        return found

    def check(self, files: Sequence[str], uris: Sequence[str], empty: Sequence[str]) -> None:
        version = self.request.version
        found = uris_of(files, uris, empty, version)
        if [plain_path(uri) for uri in uris] != list(found.values()):
            raise DataFileNotReadError(files=files, version=version)

    def _grouped(self, files: pa.Table) -> ListedFiles:
        """The files by their partition values."""
        names = list(self.request.partition_columns)
        paths = files["file"].to_pylist()
        if not names:
            return ListedFiles(paths, [len(paths)], None)
        members: dict[tuple[str | None, ...], list[str]] = {}
        values = zip(*(files[name].to_pylist() for name in names), strict=True)
        for path, of_file in zip(paths, values, strict=True):
            members.setdefault(of_file, []).append(path)
        columns = [pa.array(column, pa.string()) for column in zip(*members, strict=True)]
        columns = columns or [pa.array([], pa.string()) for _ in names]
        numbers = pa.array(range(len(members)), pa.int32())
        texts = self.listing.createDataFrame(pa.table([*columns, numbers], [*names, _NUMBER]))
        return ListedFiles(
            [path for paths in members.values() for path in paths],
            [len(paths) for paths in members.values()],
            texts.select(*self.request.typed_partition_values(), _NUMBER),
        )
