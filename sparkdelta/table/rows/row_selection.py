"""The rows of a table that a condition selects, and the changes of the files that hold them.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame

from sparkdelta.base.predicates.predicate_rules import is_usable
from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.rows.modified_file_rows import deleted_rows
from sparkdelta.table.rows.modified_files import (
    ModifiedFiles,
    keyed_positions,
    modify_files,
    whole_files,
)
from sparkdelta.table.rows.removed_files import files_of_partitions, selects_partitions
from sparkdelta.table.scan.conditions import may_change, parse_deterministic_where, shown
from sparkdelta.table.scan.row_names import NO_NAMES, RowNames
from sparkdelta.table.scan.scan import Scan
from sparkdelta.table.scan.scan_request import MetadataColumn
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The rows that match a condition.

    Attributes
    ----------
    scan
        Of these rows.
    names
        Of the table's rows in the condition.
    modified
        Their files, without these rows.
    read
        The data that this depends on, for conflict detection.
    may_change
        True if the condition may be true of other rows when it is evaluated again.
    """

    snapshot: Snapshot
    scan: Scan
    names: RowNames
    modified: ModifiedFiles
    read: ReadSet
    may_change: bool = False

    def rows(self, *metadata_columns: MetadataColumn) -> DataFrame:
        """Return the rows: the table's columns, then metadata columns. Lazy."""
        if self.may_change:
            deleted, num_files = self.modified.deleted, self.modified.num_files
            assert deleted is not None
            return deleted_rows(self.snapshot, deleted, num_files, *metadata_columns)
        return self.scan.rows_with(*metadata_columns, among=self.modified.paths)


def find_matching_rows(
    snapshot: Snapshot,
    where: str | Column | None,
    stage: Staging,
    *,
    operation: str,
    names: RowNames = NO_NAMES,
    data_change: bool = True,
    is_counted: bool = True,
) -> RowSelection:
    """Find the rows that match a condition, or all rows without one.

    A condition on partition columns alone, or none, selects whole files, and none is read.

    Parameters
    ----------
    names
        Of the table's rows in the condition.
    data_change, is_counted
        See `whole_files`.

    Raises
    ------
    DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED, DELTA_UNSUPPORTED_SUBQUERY,
    DELTA_AGGREGATION_NOT_SUPPORTED
        The condition depends on more than the row.
    ColumnNotFoundError, InvalidConditionError
        It is not valid.
    InvalidArgumentError
        It selects rows of files that are to be removed without `data_change`.
    """
    whole = partial(whole_files, snapshot, data_change=data_change, is_counted=is_counted)
    scan = snapshot.scan(where).with_aliases(names)
    if where is None:
        modified = whole(snapshot.add_files())
        read = ReadSet(whole_table=True, only_rows=True)
        return RowSelection(snapshot, scan, names, modified, read)
    configuration = snapshot.configuration
    predicate = parse_deterministic_where(
        snapshot.log.spark, where, configuration, operation=operation, names=names
    )
    read, changes = ReadSet(predicates=(predicate,), only_rows=True), False
    if selects_partitions(predicate, configuration):
        modified = whole(files_of_partitions(snapshot, where, names=names))
    elif not data_change:
        problem = f"it cannot be False when {operation} uses data columns"
        raise InvalidArgumentError(argument="data_change", problem=problem)
    else:
        scan = scan.with_known_files()
        positions = scan.select(()).rows_with(MetadataColumn.FILE, MetadataColumn.ROW_POSITION)
        adds = scan.known or scan.files(with_json=True)
        if not is_usable(predicate):
            changes = may_change(snapshot.log.spark, where, configuration, names=names)
        modified = modify_files(snapshot, keyed_positions(positions), stage, adds=adds)
    return RowSelection(snapshot, scan, names, modified, read, changes)


def condition_parameter(where: str | Column | None, *, without: str | None = None) -> str:
    """Return a condition as history shows it: a JSON list with its text.

    Parameters
    ----------
    without
        The text in the place of no condition; None for an empty list.
    """
    texts = [without] if where is None else [shown(where)]
    return json.dumps([text for text in texts if text is not None], ensure_ascii=False)
