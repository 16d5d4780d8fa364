"""The rows that a MERGE writes: updated and inserted ones, and change data.

References
----------
PROTOCOL.md#add-cdc-file, PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.change_types import CHANGE_TYPE, ChangeType
from sparkdelta.base.schema.table_schema import as_nullable, quoted
from sparkdelta.operations.merge.merge_clauses import Clause
from sparkdelta.operations.merge.merge_matching import OPERATION, MergeMatches
from sparkdelta.operations.merge.merge_pairs import CLAUSE
from sparkdelta.operations.merge.merge_sides import (
    FILE,
    POSITION,
    SOURCE_ROW,
    TARGET,
    StagedMerge,
    positioned,
    row_file,
)
from sparkdelta.table.rows.change_data_files import with_change_type
from sparkdelta.table.rows.column_binding import ColumnBinding, conform_assignments
from sparkdelta.table.rows.conformed_row_frames import retyped_rows
from sparkdelta.table.rows.identity_columns import generated_identities, with_used_identities
from sparkdelta.table.rows.modified_file_rows import deleted_rows
from sparkdelta.table.rows.modified_files import ModifiedFiles
from sparkdelta.table.rows.row_changes import RowChangeWriter, check_row_count
from sparkdelta.table.rows.row_delta import RowDelta
from sparkdelta.table.rows.staged_rows import computed_once, rows_in_session
from sparkdelta.table.scan.file_row_frames import expression_of
from sparkdelta.table.scan.scan_request import MetadataColumn

MAX_BROADCAST_ROWS = 1_000_000
"""The positions of up to this many rows are sent to every executor; of more, these rows are
shuffled, and no others."""

MAX_COMPARED_ROWS = 2_000_000
"""Up to this many rows of modified files are compared with those positions one by one; of more,
bitmaps choose the rows, which takes a query more, but a third of the time for each row."""

_BEFORE, _FILE, _POSITION = (
    "__sparkdelta_before",
    "__sparkdelta_acted_file",
    "__sparkdelta_acted_position",
)
_ASSIGNMENTS = "__sparkdelta_assignments"
_DELETES = (Clause.MATCHED_DELETE, Clause.NOT_MATCHED_BY_SOURCE_DELETE)
_UPDATES = (Clause.MATCHED_UPDATE, Clause.NOT_MATCHED_BY_SOURCE_UPDATE)


@dataclass(frozen=True, slots=True)
class MergeOutput:
    """The rows that a merge writes.

    Attributes
    ----------
    modified
        The files whose rows are updated or deleted.
    """

    matches: MergeMatches
    modified: ModifiedFiles
    writer: RowChangeWriter

    def write(self) -> RowDelta:
        """Write the new rows and the rows that stay of rewritten files; and the change data, if the
        table has any and rows of it change. The table gets the identity values that they use.
        """
        writer, change, snapshot = self.writer, self.writer.change, self.merge.snapshot
        matches, modified = self.matches, self.modified
        frames = [self._updated(kind) for kind in _UPDATES if matches.count(kind)]
        matched = changed = None
        if matches.num_inserted:
            inserted, matched = self._inserted()
            frames.append(inserted)
            identities = generated_identities(matched, change.after)
            writer = replace(writer, identities=tuple(identities.values()))
        rows = reduce(DataFrame.unionByName, frames) if frames else None
        if self._writes_changes and rows is not None:
            rows = computed_once(rows, self.merge.stage, "merged")
        new = writer.write(None if rows is None else rows.drop(_BEFORE), modified)
        if self._writes_changes:
            changed = writer.write_changes(self._changes(rows))
        expected = modified.num_copied_rows + matches.num_updated + matches.num_inserted
        check_row_count(new, expected, path=snapshot.path, operation=OPERATION)
        if matched is not None and new is not None:
            change = with_used_identities(change, matched, new, path=snapshot.path)
        return RowDelta(
            spark=writer.spark,
            store=writer.store,
            snapshot=snapshot,
            change=change,
            read=matches.read,
            modified=modified,
            new=new,
            change_files=changed,
            tags=writer.tags,
            stage=self.merge.stage,
        )

    @property
    def merge(self) -> StagedMerge:
        return self.matches.merge

    @property
    def _writes_changes(self) -> bool:
        return self.writer.writes_change_data and self.modified.num_files > 0

    def _updated(self, kind: Clause) -> DataFrame:
        """Return the new rows of one kind of update, which keep their ids."""
        writer = self.writer
        rows = self._target_rows(kind, *writer.row_ids)
        kept = list(writer.file_columns)
        if self._writes_changes:
            names = self.merge.snapshot.schema.names
            before = F.struct(*(F.col(quoted(TARGET + n)).alias(n) for n in names))
            rows = rows.select("*", before.alias(_BEFORE))
            kept.append(_BEFORE)
        return self._conformed(rows, kind, kept)[0]

    def _inserted(self) -> tuple[DataFrame, ColumnBinding]:
        """Return the new rows, which have no ids yet, and the columns that they get their values
        from.
        """
        assert self.matches.new is not None
        rows, matched = self._conformed(self.matches.new, Clause.NOT_MATCHED_INSERT, ())
        nothing = {name: F.expr("CAST(NULL AS LONG)") for name in self.writer.file_columns}
        if self._writes_changes:
            nothing[_BEFORE] = F.lit(None).cast(as_nullable(self.merge.snapshot.schema))
        return rows.withColumns(nothing) if nothing else rows, matched

    def _conformed(
        self, rows: DataFrame, kind: Clause, kept: Sequence[str]
    ) -> tuple[DataFrame, ColumnBinding]:
        """Return the rows with the values that the clauses of one kind assign, in the table's
        columns.

        Parameters
        ----------
        rows
            With `CLAUSE`.
        """
        clauses = self.merge.resolved.of_kinds(kind)
        assignments = [
            each.assignments for each in clauses.values() if each.assignments is not None
        ]
        cases = " ".join(f"WHEN {index} THEN {n}" for n, index in enumerate(clauses))
        number = None
        if len(assignments) > 1:
            number = _ASSIGNMENTS
            rows = rows.selectExpr("*", f"CASE {quoted(CLAUSE)} {cases} END AS {quoted(number)}")
        own = self.merge.snapshot.schema.names
        return conform_assignments(
            rows,
            self.writer.change.after,
            assignments,
            spark=self.writer.spark,
            path=self.merge.snapshot.path,
            time_zone=self.merge.time_zone,
            stage=self.merge.stage,
            kept=kept,
            current={} if kind.is_not_matched else {name: TARGET + name for name in own},
            clause_column=number,
            adds_fields=self.merge.resolved.evolves,
        )

    def _changes(self, new: DataFrame | None) -> DataFrame:
        """Return the change data.

        Parameters
        ----------
        new
            The new rows, with `_BEFORE`.
        """
        fields = self.writer.change.after.schema.fields
        frames = []
        if new is not None:
            is_new = F.col(_BEFORE).isNull()
            insert, postimage = ChangeType.INSERT.value, ChangeType.UPDATE_POSTIMAGE.value
            kind = F.when(is_new, F.lit(insert)).otherwise(F.lit(postimage))
            names = [quoted(field.name) for field in fields]
            before = new.filter(~is_new).select(f"{quoted(_BEFORE)}.*")
            frames += [
                new.select(*names, kind.alias(CHANGE_TYPE)),
                with_change_type(retyped_rows(before, fields, ()), ChangeType.UPDATE_PREIMAGE),
            ]
        for deletion in _DELETES:
            if self.matches.count(deletion):
                names = self.merge.snapshot.schema.names
                rows = self._target_rows(deletion)
                rows = rows.select(*(F.col(quoted(TARGET + n)).alias(n) for n in names))
                rows = rows_in_session(rows, self.writer.spark, self.merge.stage)
                frames.append(with_change_type(retyped_rows(rows, fields, ()), ChangeType.DELETE))
        return reduce(DataFrame.unionByName, frames)

    def _target_rows(self, kind: Clause, *row_ids: MetadataColumn) -> DataFrame:
        """Return the rows of the table that clauses of a kind act on, with `CLAUSE` and, if they
        are matched and updated, the columns of the source.
        """
        matches, rows = self.matches, self._rows_among(kind, *row_ids)
        if self._joins_again(kind):
            (clause,) = self.merge.resolved.of_kinds(kind)
            # Several rows of the source may match the same one, if it is deleted.
            how = "left_semi" if kind in _DELETES else "inner"
            condition = expression_of(self.merge.condition)
            joined = rows.join(self.merge.source.broadcast, condition, how)
            return joined.withColumn(CLAUSE, F.lit(clause))
        acted = matches.pairs.rows if kind.is_matched else matches.unmatched
        assert acted is not None
        acted = acted.filter(self._acts(kind))
        if kind in _DELETES:
            acted = acted.dropDuplicates([FILE, POSITION])
        acted = acted.withColumnsRenamed({FILE: _FILE, POSITION: _POSITION})
        if self.matches.count(kind) <= MAX_BROADCAST_ROWS:
            acted = F.broadcast(acted)
        is_same = f"{quoted(FILE)} = {quoted(_FILE)} AND {quoted(POSITION)} = {quoted(_POSITION)}"
        rows = rows.select("*", row_file()).join(acted, F.expr(is_same)).drop(_FILE, _POSITION)
        joins_source = kind is Clause.MATCHED_UPDATE
        return rows.join(self.merge.source.rows, SOURCE_ROW) if joins_source else rows

    def _rows_among(self, kind: Clause, *row_ids: MetadataColumn) -> DataFrame:
        """Return candidate rows of the table for clauses of a kind, as `positioned` has them."""
        matches, modified = self.matches, self.modified
        scan = matches.matching_scan if kind.is_matched else matches.scan_alone
        assert scan is not None
        writer, schema = self.writer, self.merge.snapshot.schema
        scan = scan.select(schema.names)
        columns = (MetadataColumn.FILE, MetadataColumn.ROW_POSITION, *row_ids)
        if self._joins_again(kind):
            is_few = self.merge.source.is_broadcast
        else:
            is_few = self.matches.count(kind) <= MAX_BROADCAST_ROWS
            is_few = is_few and modified.num_file_rows <= MAX_COMPARED_ROWS
        if is_few:
            found = scan.rows_with(*columns, among=modified.paths)
        else:
            assert modified.deleted is not None
            found = deleted_rows(
                self.merge.snapshot, modified.deleted, modified.num_files, *columns, scan=scan
            )
        kept = [*schema.names, *(column.value for column in row_ids)]
        rows = positioned(found, self.merge.snapshot.configuration, kept)
        if row_ids:
            rows = writer.with_kept_ids(rows)
        return self.merge.target_rows(rows, schema.names)

    def _joins_again(self, kind: Clause) -> bool:
        return kind.is_matched and self.matches.joins_again

    def _acts(self, kind: Clause) -> str:
        indexes = ", ".join(map(str, self.merge.resolved.of_kinds(kind)))
        return f"{quoted(CLAUSE)} IN ({indexes})"
