"""The files of the commits that a stream reads.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#add-cdc-file
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.actions import Metadata, Protocol
from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.log_files import LogFile, Version
from sparkdelta.base.schema.action_schemas import CHANGES
from sparkdelta.base.spark.driver import read_rows, read_table
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.operations.stream.indexed_files import (
    EXCLUDED,
    INDEX,
    VERSION,
    file_list_columns,
)
from sparkdelta.operations.stream.stream_offset_rules import StreamOffset
from sparkdelta.table.listing.line_reader import DRIVER_LOG_BYTES
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.listing.plain_actions import ActionsOfLine, plain_actions
from sparkdelta.table.log.commit_range import CommitRange
from sparkdelta.table.log.state import NUM_RECORDS, num_records
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.scan.known_files import known_files

REMOVED = "removed"
_FILES = StructType([CHANGES["add"], CHANGES["remove"]])


def windows(commits: Sequence[LogFile], most: int) -> Iterator[list[LogFile]]:
    """Yield commits in order, in groups of at most `most` that the driver may read.

    A commit that the driver may not read is alone.
    """
    window: list[LogFile] = []
    size = 0
    for commit in commits:
        if window and (len(window) >= most or size + commit.size_bytes > DRIVER_LOG_BYTES):
            yield window
            window, size = [], 0
        window.append(commit)
        size += commit.size_bytes
    if window:
        yield window


def added_files(
    commits: CommitRange, table: TableConfiguration, exclude_regex: str | None
) -> pa.Table:
    """Return the files that local commits add with `dataChange`, in the order of lines, and those
    that they remove with it.

    Returns
    -------
    pa.Table
        VERSION, the columns of `file_list_columns`, INDEX (null for a removed file) and REMOVED
        STRING (the path of a removed file).
    """
    files = None
    if commits.is_short and exclude_regex is None:
        files = _plain_files(commits, table)
    if files is None:
        columns = file_list_columns(table, commits.reader.table_root, exclude_regex)
        files = _parsed_files(commits, columns)
    indexes = _indexes(files[VERSION], pc.is_null(files[REMOVED]).to_numpy())
    return files.append_column(INDEX, indexes)


def _plain_files(commits: CommitRange, table: TableConfiguration) -> pa.Table | None:
    """Return the files of `added_files` without Spark, which takes longer to plan a query than
    Python to parse a few lines. None if Spark must decide about a line.
    """
    assert commits.local_lines is not None
    actions = plain_actions(commits.local_lines, _FILES)
    if actions is None or not all(map(_is_complete, actions)):
        return None
    adds = [each for each in actions if each["add"] and each["add"]["dataChange"]]
    removes = [each for each in actions if each["remove"] and each["remove"]["dataChange"]]
    added = known_files(
        [AddFile.from_dict(each["add"]) for each in adds],
        table, commits.reader.table_root, has_vectors=True,
    )  # fmt: skip
    versions = pa.array([each["version"] for each in adds], pa.int64())
    removed = {
        VERSION: pa.array([each["version"] for each in removes], pa.int64()),
        REMOVED: pa.array([each["remove"]["path"] for each in removes], pa.string()),
    }
    added = added.append_column(EXCLUDED, pa.array([False] * len(adds)))
    added = added.append_column(VERSION, versions)
    return pa.concat_tables([added, pa.table(removed)], promote_options="default")


def _is_complete(action: ActionsOfLine) -> bool:
    """Return False if a line adds and removes a file, or lacks a field that is needed."""
    add, remove = action["add"], action["remove"]
    if add is None:
        return remove is None or remove["path"] is not None
    vector = {**(add["deletionVector"] or {}), "offset": 0}  # the only field that may be missing
    return remove is None and None not in (add["path"], add["size"], *vector.values())


def _parsed_files(commits: CommitRange, columns: list[str]) -> pa.Table:
    assert commits.local_lines is not None
    # Projections and filters of local data alone: they take no job and keep the order.
    rows = parse_log_lines(commits.lines, actions=_FILES, few=True)
    rows = rows.filter("coalesce(add.dataChange, remove.dataChange, FALSE)")
    rows = rows.select(VERSION, "add.*", F.col("remove.path").alias(REMOVED))
    rows = rows.selectExpr("*", f"{num_records()} AS {NUM_RECORDS}")
    return read_table(
        rows.selectExpr(VERSION, *columns, REMOVED),
        what="files of commits that a stream reads",
        bound=commits.local_lines.num_rows,
        version=commits.last_version,
    )


def _indexes(versions: pa.ChunkedArray, is_counted: np.ndarray) -> pa.Array:
    """Number the counted rows of each version from 0; other rows are null."""
    counted = versions.to_numpy()[is_counted]
    indexes = np.zeros(len(versions), np.int64)
    indexes[is_counted] = np.arange(len(counted)) - np.searchsorted(counted, counted)
    return pa.array(indexes, mask=~is_counted)


def between(files: pa.Table, begin: StreamOffset, finish: StreamOffset | None) -> pa.Array:
    """Return True for files of commits that are after an offset and not after another."""
    version, index = files[VERSION], files[INDEX]

    def is_after(offset: StreamOffset) -> pa.Array:
        is_same = pc.equal(version, offset.version)
        beyond = pc.and_(is_same, pc.greater(index, offset.index))
        return pc.or_(pc.greater(version, offset.version), beyond)

    if finish is None:
        return is_after(begin)
    return pc.and_(is_after(begin), pc.invert(is_after(finish)))


def between_offsets(commits: CommitRange, begin: StreamOffset, finish: StreamOffset) -> CommitRange:
    """Return local commits without the changes of files that are not between two offsets.

    The files of a commit are its change data files, if it has some, else the files that it adds or
    removes with `dataChange`, in the order of their lines.
    """
    lines = commits.local_lines
    assert lines is not None
    lines = lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines["line"]), ""))
    kinds = read_table(
        _kinds(commits, few=True).select("is_cdc"),
        what="kinds of actions of commits",
        bound=lines.num_rows,
        version=commits.last_version,
    )["is_cdc"]
    with_cdc = pc.unique(lines[VERSION].filter(pc.fill_null(kinds, False)))
    is_file = pc.equal(kinds, pc.is_in(lines[VERSION], with_cdc))
    indexes = _indexes(lines[VERSION], pc.fill_null(is_file, False).to_numpy())
    is_between = between(lines.append_column(INDEX, indexes), begin, finish)
    kept = lines.filter(pc.or_(pc.invert(pc.is_valid(indexes)), is_between))
    return replace(commits, _lines=kept)


def kinds_of_files(commits: CommitRange) -> tuple[bool, str | None]:
    """Return True if a commit adds files with `dataChange`, and the path of one that it removes."""
    rows = read_rows(
        commits.changes("add", "remove").agg(
            F.coalesce(F.bool_or("add.dataChange"), F.lit(False)).alias("adds"),
            F.min(F.when(F.col("remove.dataChange"), F.col("remove.path"))).alias(REMOVED),
        ),
        what="kinds of files of a large commit",
        bound=1,
        version=commits.last_version,
    )
    return bool(rows[0]["adds"]), rows[0][REMOVED]


def table_changes(commits: CommitRange) -> list[tuple[Version, Metadata | None, Protocol | None]]:
    """Return the metaData and protocol actions of commits."""
    root = commits.reader.table_root
    return [
        (
            each["version"],
            None if each["metaData"] is None else Metadata.from_dict(each["metaData"]),
            None if each["protocol"] is None else Protocol.from_dict(each["protocol"], path=root),
        )
        for each in commits.read_table_actions(bound=2 * len(commits.files))
    ]


def changed_files(commits: CommitRange) -> pa.Table:
    """Return version LONG, files LONG, size LONG of the files with each commit's changes, in order.

    Commits without changes are left out.
    """
    rows = _kinds(commits, few=commits.is_local)
    sums = F.count("*").alias("files"), F.sum("size").alias("size")
    by_kind = grouped(rows.filter("is_cdc IS NOT NULL"), [VERSION, "is_cdc"], *sums)
    counts = F.expr("max_by(struct(files, size), is_cdc) AS counts")
    counted = grouped(by_kind, [VERSION], counts).select(VERSION, "counts.*")
    table = read_table(
        counted, what="changed files of commits", bound=len(commits.files),
        version=commits.last_version,
    )  # fmt: skip
    return table.sort_by(VERSION)


def _kinds(commits: CommitRange, *, few: bool) -> DataFrame:
    """Return version LONG, is_cdc BOOLEAN (null if no row changes), size LONG: a row per action."""
    schema = StructType([CHANGES[name] for name in ("add", "remove", "cdc")])
    rows = parse_log_lines(commits.lines, actions=schema, few=few)
    kind = F.when(F.col("cdc.path").isNotNull(), F.lit(True))
    kind = kind.when(F.expr("coalesce(add.dataChange, remove.dataChange)"), F.lit(False))
    size = F.coalesce("cdc.size", "add.size", "remove.size", F.lit(0))
    return rows.select(VERSION, kind.alias("is_cdc"), size.alias("size"))
