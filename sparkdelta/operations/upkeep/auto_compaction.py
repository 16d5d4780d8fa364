"""Compaction of the partitions that a commit wrote into, if the table's properties ask for it.

References
----------
PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from sparkdelta.base.protocol.table_features import Writing, allows
from sparkdelta.base.protocol.table_properties import compacts_after_commits, declared_file_size
from sparkdelta.base.schema.column_alterations import path_text
from sparkdelta.base.schema.sql_text import text_literal
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.local_data import rows_frame
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.operations.compaction.optimize_run import OptimizeRequest, optimize_files
from sparkdelta.table.commit.transaction import CommittedTransaction

MIN_SMALL_FILES = 50
"""The number of small files at which a partition is compacted."""

MAX_PARTITIONS = 128
"""The most partitions that are compacted after one commit."""

COMPACTED_FILE_SIZE = 128 << 20
"""The size of new files in bytes, unless the table has one; files of less than half are small."""


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """Partitions to be compacted where they have many small files.

    Attributes
    ----------
    done
        The commit whose version is compacted.
    partitions
        The partition values of the files that were added; None if they are not known.
    """

    done: CommittedTransaction
    partitions: frozenset[tuple[str | None, ...]] | None

    def joined(self, later: AutoCompaction) -> AutoCompaction:
        """Return the compaction after a later commit in place of two."""
        if self.partitions is None or later.partitions is None:
            return AutoCompaction(later.done, None)
        return AutoCompaction(later.done, self.partitions | later.partitions)


def due_compaction(done: CommittedTransaction) -> AutoCompaction | None:
    """Return the compaction of the partitions that a commit added files to; None if the table does
    not ask for it.
    """
    if not compacts_after_commits(done.properties):
        return None
    snapshot = done.snapshot
    if not allows(snapshot.protocol, Writing.MAINTENANCE):
        return None
    keys = [key for key, _ in snapshot.configuration.partition_keys]
    partitions = None if done.lines is None else _partitions(done.lines, keys)
    return AutoCompaction(done, partitions) if partitions is None or partitions else None


def auto_compact(due: AutoCompaction, after_commit: Callable[[CommittedTransaction], None]) -> None:
    """Compact the partitions that have many small files.

    The new files of a clustered table become a Z-cube; existing ones stay as they are.

    Parameters
    ----------
    after_commit
        The maintenance that follows each commit of the compaction.
    """
    done, touched, snapshot = due.done, due.partitions, due.done.snapshot
    keys = [key for key, _ in snapshot.configuration.partition_keys]
    size = declared_file_size(done.properties) or COMPACTED_FILE_SIZE
    small_size = max(1, size // 2)
    request = OptimizeRequest(
        target_file_size=size, small_file_size=small_size, min_cube_size=1, is_auto=True
    )
    adds = snapshot.add_files()
    is_small = (F.col("size") < small_size) & F.col("clusteringProvider").isNull()
    counted = grouped(adds.filter(is_small), _values(keys), F.count("*").alias("count"))
    counted = counted.filter(F.col("count") >= MIN_SMALL_FILES)
    if keys and touched is not None:
        schema = StructType([StructField(f"p{n}", StringType()) for n in range(len(keys))])
        written = rows_frame(done.spark, list(touched), schema)
        is_same = (counted[name].eqNullSafe(written[name]) for name in written.columns)
        counted = counted.join(F.broadcast(written), reduce(Column.__and__, is_same), "left_semi")
    rows = read_rows(
        counted.drop("count").limit(MAX_PARTITIONS),
        what="partitions to compact",
        bound=MAX_PARTITIONS,
        version=snapshot.version,
    )
    if not rows:
        return
    if keys:
        names = [path_text((name,)) for name in snapshot.configuration.partition_columns]
        shown = " OR ".join(_condition(names, row, _shown) for row in rows)
        request = replace(request, predicate=json.dumps([shown], ensure_ascii=False))
        values = [_value(key) for key in keys]
        adds = adds.filter(" OR ".join(_condition(values, row, text_literal) for row in rows))
    optimize_files(snapshot, adds, request, after_commit)


def _partitions(lines: bytes, keys: Collection[str]) -> frozenset[tuple[str | None, ...]]:
    """Return the partition values of the files that a commit adds with new rows."""
    adds = (json.loads(line).get("add") for line in lines.splitlines() if line)
    return frozenset(
        tuple(add["partitionValues"].get(key) for key in keys)
        for add in adds
        if add is not None and add.get("dataChange", True)
    )


def _values(keys: Collection[str]) -> list[Column]:
    """Return the partition values of a file as text."""
    return [F.expr(_value(key)).alias(f"p{number}") for number, key in enumerate(keys)]


def _value(key: str) -> str:
    return f"try_element_at(partitionValues, {text_literal(key)})"


def _shown(text: str) -> str:
    """Return a text in quotes, as history shows it."""
    return "'{}'".format(text.replace("'", "''"))


def _condition(
    columns: Iterable[str], values: Iterable[str | None], literal: Callable[[str], str]
) -> str:
    """Return SQL that selects the files of a partition."""
    terms = (
        f"{column} <=> {'NULL' if value is None else literal(value)}"
        for column, value in zip(columns, values, strict=True)
    )
    return f"({' AND '.join(terms)})"
