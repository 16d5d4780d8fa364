"""Compaction: the files that are worth rewriting, the bins that they are packed into, their rows.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.deletion_vectors import DeletionVectorDescriptor
from sparkdelta.base.protocol.file_actions import RemoveFile
from sparkdelta.base.protocol.z_cubes import ZCube
from sparkdelta.base.schema.checkpoint_schema import STATS_PARSED
from sparkdelta.base.schema.file_key_frames import absolute_path
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_table
from sparkdelta.operations.compaction.file_packing_rules import PackedFile, batches, packed
from sparkdelta.operations.compaction.row_order import RowOrder, sampled_fraction
from sparkdelta.table.log.state import NUM_RECORDS
from sparkdelta.table.rows.row_changes import RowChangeWriter
from sparkdelta.table.scan.scan_request import (
    BASE_ROW_ID,
    DEFAULT_ROW_COMMIT_VERSION,
    partition_column,
    row_id_columns,
)
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_CANDIDATES = 100_000
"""The files that the driver packs at a time; it packs the files of a larger table in rounds."""

MAX_COMMIT_BYTES = 100 << 30
"""The bytes of the files that a commit removes, unless the caller says otherwise."""

MAX_BATCH_FILES = 10_000
"""The most files that a commit removes."""

MAX_BATCH_BINS = 64
"""The most bins that a Spark job rewrites: each is a scan of its own in the plan."""

CUBE = "cube"
"""The column with the id of a file's Z-cube, where files are packed by it."""

MAX_DELETED_SHARE = 0.05
"""A file is rewritten if its deletion vector deletes more than this share of its rows."""


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The number of some files and their sizes in bytes; smallest and largest are None without
    files.
    """

    count: int = 0
    total: int = 0
    smallest: int | None = None
    largest: int | None = None

    @classmethod
    def of(cls, sizes: Sequence[int]) -> FileSizes:
        """Return the sizes of files."""
        if not sizes:
            return cls()
        return cls(len(sizes), sum(sizes), min(sizes), max(sizes))

    def __add__(self, other: FileSizes) -> FileSizes:
        if not (self.count and other.count):
            return self if self.count else other
        assert self.smallest is not None
        assert self.largest is not None
        assert other.smallest is not None
        assert other.largest is not None
        return FileSizes(
            self.count + other.count,
            self.total + other.total,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
        )


NO_FILES = FileSizes()


@dataclass(frozen=True, eq=False)
class Batch:
    """Bins of files that one Spark job rewrites and one commit replaces.

    Attributes
    ----------
    bins
        The files of each, as `described_files` gives them.
    num_files
        The number of files that each bin becomes.
    order
        The order of the rows of bins that become several files.
    cube
        The Z-cube that the new files are.
    takes_all
        True if every file is worth rewriting.
    """

    snapshot: Snapshot
    bins: tuple[pa.Table, ...]
    num_files: tuple[int, ...]
    order: RowOrder | None = None
    cube: ZCube | None = None
    takes_all: bool = False

    @cached_property
    def files(self) -> pa.Table:
        """The files of all bins."""
        return pa.concat_tables(self.bins)

    @property
    def sizes(self) -> FileSizes:
        return FileSizes.of(self.files["size"].to_pylist())

    @property
    def partitions(self) -> set[tuple[str | None, ...]]:
        """The partition values of the bins."""
        return set(self.partition_of_bin)

    @property
    def partition_of_bin(self) -> list[tuple[str | None, ...]]:
        return [_partition(each.slice(0, 1), self.snapshot)[0] for each in self.bins]

    def of_bins(
        self, numbers: Sequence[int], snapshot: Snapshot, files: Sequence[pa.Table]
    ) -> Batch:
        """Return the batch of some of the bins, with their files as a later version has them."""
        num_files = tuple(self.num_files[number] for number in numbers)
        return replace(self, snapshot=snapshot, bins=tuple(files), num_files=num_files)

    @cached_property
    def vectors(self) -> list[DeletionVectorDescriptor | None]:
        """The deletion vector of each of `files`."""
        return [
            None if found is None else DeletionVectorDescriptor.from_dict(found)
            for found in self.files["deletionVector"].to_pylist()
        ]

    @property
    def num_rows(self) -> int | None:
        """The rows that are left of the files; None if statistics lack it."""
        counts: list[int | None] = self.files[NUM_RECORDS].to_pylist()
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return None
        return sum(known) - sum(v.cardinality for v in self.vectors if v is not None)

    def rows(self, writer: RowChangeWriter) -> DataFrame:
        """Return the rows, one task for each new file; without an order, none is shuffled."""
        rows = list(map(writer.rows_of, self.bins))
        if self.order is None:
            return reduce(DataFrame.unionByName, (each.coalesce(1) for each in rows))
        fraction = sampled_fraction(self.num_rows, self.sizes.total)
        return self.order.ordered(rows, self.num_files, fraction)

    def removes(self) -> tuple[RemoveFile, ...]:
        """Return the actions that remove the files."""
        now = time.time_ns() // 1_000_000
        keys = [key for key, _ in self.snapshot.configuration.partition_keys]
        partitions = _partition(self.files, self.snapshot)
        return tuple(
            RemoveFile(
                path=file["path"],
                deletion_timestamp=now,
                data_change=False,
                extended_file_metadata=True,
                partition_values=dict(zip(keys, values, strict=True)),
                size=file["size"],
                deletion_vector=vector,
                base_row_id=file[BASE_ROW_ID],
                default_row_commit_version=file[DEFAULT_ROW_COMMIT_VERSION],
            )
            for file, values, vector in zip(
                self.files.to_pylist(), partitions, self.vectors, strict=True
            )
        )


def candidates(snapshot: Snapshot, adds: DataFrame, *, target_file_size: int) -> DataFrame:
    """Return the files that are small or have many deleted rows, see `described_files`.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them.
    """
    num_records = F.col(STATS_PARSED)[NUM_RECORDS]
    # Without the number of rows, the share of deleted ones may be any.
    share = F.when(num_records > 0, F.col("deletionVector.cardinality") / num_records)
    has_many = has_vector() & (F.coalesce(share, F.lit(1.0)) > MAX_DELETED_SHARE)
    return described_files(snapshot, adds.filter((F.col("size") < target_file_size) | has_many))


def has_vector() -> Column:
    """Return True of a row of `Snapshot.add_files` with a deletion vector."""
    return F.col("deletionVector.storageType").isNotNull()


def described_files(
    snapshot: Snapshot, adds: DataFrame, *, cube: Column | None = None
) -> DataFrame:
    """Return files as `NativeScan.rows` takes them, with the column `path` of the log.

    Parameters
    ----------
    adds
        As `Snapshot.add_files` gives them.
    cube
        The id of the Z-cube of each file, if they are to be packed in the order of these.
    """
    keys = [key for key, _ in snapshot.configuration.partition_keys]
    names = _partition_names(snapshot)
    return adds.select(
        F.expr(absolute_path("path", table_root=snapshot.path)).alias("file"),
        "size",
        *(
            F.try_element_at("partitionValues", F.lit(key)).alias(name)
            for name, key in zip(names, keys, strict=True)
        ),
        F.when(has_vector(), F.col("deletionVector")).alias("deletionVector"),
        F.col(STATS_PARSED)[NUM_RECORDS].alias(NUM_RECORDS),
        *map(F.expr, row_id_columns()),
        "path",
        *([] if cube is None else [cube.alias(CUBE)]),
    )


def plan_batches(
    snapshot: Snapshot,
    files: DataFrame,
    *,
    target_file_size: int,
    max_bytes: int = MAX_COMMIT_BYTES,
    takes_all: bool = False,
    order: RowOrder | None = None,
    cubes: Sequence[str] | None = None,
) -> Iterator[Batch]:
    """Pack files into bins of about `target_file_size` bytes, and these into batches.

    Parameters
    ----------
    files
        As `described_files` gives them.
    max_bytes
        Of the files of a batch.
    takes_all
        True if every file is worth rewriting, even if it has a bin to itself.
    order
        The order of rows in larger bins, which become several files.
    cubes
        The names of the columns of Z-cubes, if each batch is to be one.
    """
    capacity = target_file_size if order is None else order.max_bytes

    def num_files(size: int) -> int:
        return 1 if order is None else max(1, size // target_file_size)

    for table in _rounds(snapshot, files):
        sizes = table["size"].to_pylist()
        has_vectors = table["deletionVector"].is_valid().to_pylist()
        described = [
            PackedFile(group, size, takes_all or has_vector or num_files(size) > 1)
            for group, size, has_vector in zip(
                _partition(table, snapshot), sizes, has_vectors, strict=True
            )
        ]
        bins = packed(described, capacity=capacity)
        new = {each: num_files(sum(sizes[each.start : each.stop])) for each in bins}
        for is_split in (False, True):
            found = batches(
                [each for each in bins if (new[each] > 1) == is_split],
                described,
                max_bytes=max_bytes,
                max_files=MAX_BATCH_FILES,
                max_bins=MAX_BATCH_BINS if cubes is None else 1,
            )
            for batch in found:
                yield Batch(
                    snapshot,
                    tuple(table.slice(each.start, len(each)) for each in batch),
                    tuple(new[each] for each in batch),
                    order if is_split else None,
                    None if cubes is None else ZCube.new(cubes),
                    takes_all or order is not None,
                )


def _rounds(snapshot: Snapshot, files: DataFrame) -> Iterator[pa.Table]:
    """Yield the files, ordered by partition and size, in tables of at most MAX_CANDIDATES; a
    partition is split only if it has more.
    """
    names = [CUBE] if CUBE in files.columns else _partition_names(snapshot)
    keys = [*names, "size", "path"]
    read = partial(
        read_table, what="files to compact", bound=MAX_CANDIDATES, version=snapshot.version
    )
    if snapshot.state.has_few_files(MAX_CANDIDATES):  # Spark would shuffle them
        yield _ordered(read(files), keys)
        return
    rest, is_last = files, False
    while not is_last:
        table = read(rest.orderBy(*map(quoted, keys)).limit(MAX_CANDIDATES))
        is_last = table.num_rows < MAX_CANDIDATES
        groups = [] if is_last else _partition(table, snapshot)
        if groups and groups[0] != groups[-1]:  # the last partition may go on
            table = table.slice(0, groups.index(groups[-1]))
        yield table
        if not is_last:
            [last] = table.slice(table.num_rows - 1).select(keys).to_pylist()
            # Not by an offset: a sort would have to keep all rows before it.
            rest = files.filter(_struct(keys) > _struct(keys, last))


def _ordered(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the rows in the order of Spark: nulls come first."""
    order = []
    for key in keys:
        is_known = f"{key} is known"
        table = table.append_column(is_known, pc.is_valid(table[key]).cast(pa.int8()))
        order += [(is_known, "ascending"), (key, "ascending")]
    return table.sort_by(order).drop_columns([name for name, _ in order[::2]])


def _struct(keys: Sequence[str], values: Mapping[str, Any] | None = None) -> Column:
    """Return a struct of columns, or of their values in a row, which compares in the order of a
    sort.
    """
    fields = []
    for key in keys:
        field = F.col(quoted(key))
        if values is not None:
            field = F.lit(values[key]).cast("long" if key == "size" else "string")
        fields.append(field.alias(key))
    return F.struct(*fields)


def _partition_names(snapshot: Snapshot) -> list[str]:
    """Return the columns with the partition values."""
    return [partition_column(n) for n in range(len(snapshot.configuration.partition_keys))]


def _partition(files: pa.Table, snapshot: Snapshot) -> list[tuple[str | None, ...]]:
    """Return the partition values of each file."""
    names = _partition_names(snapshot)
    if not names:
        return [()] * files.num_rows
    return list(zip(*(files[name].to_pylist() for name in names), strict=True))
