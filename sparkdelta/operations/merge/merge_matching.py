"""Rows of a table and of a source that match, and the clause of a MERGE that acts on each.

Only keys, positions and what conditions need take part; whole rows are read later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.predicates.predicate_rules import And, Or, Predicate
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.match_terms import EqualKey, MatchTerms
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import MultipleSourceRowsError
from sparkdelta.operations.merge.merge_clauses import Clause, ResolvedClause
from sparkdelta.operations.merge.merge_keys import source_keys
from sparkdelta.operations.merge.merge_pairs import (
    CLAUSE,
    REPEATED,
    MergePairs,
    RowCount,
    no_pairs,
    stage_pairs,
)
from sparkdelta.operations.merge.merge_sides import (
    FILE,
    POSITION,
    SOURCE_ROW,
    TARGET,
    MergeFrames,
    StagedSource,
    expression,
    positioned,
    target_names,
    with_target_names,
)
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.log.local_add_files import LocalAddFiles
from sparkdelta.table.scan.conditions import has_changing_condition, with_partition_terms
from sparkdelta.table.scan.row_names import RowNames
from sparkdelta.table.scan.scan import Scan
from sparkdelta.table.scan.scan_request import MetadataColumn
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging

OPERATION = "MERGE"
MATCHED = Clause.MATCHED_UPDATE.rows
NOT_MATCHED = Clause.NOT_MATCHED_INSERT.rows
NOT_MATCHED_BY_SOURCE = Clause.NOT_MATCHED_BY_SOURCE_UPDATE.rows

_ACTS = f"{quoted(CLAUSE)} IS NOT NULL"
_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class MergeMatches:
    """The rows that the clauses of a merge act on.

    Attributes
    ----------
    pairs
        Of each row of the table and row of the source that match. Staged.
    unmatched
        `FILE`, `POSITION` and `CLAUSE` of rows of the table that match no row of the source, where
        a clause acts on them. Staged; None without such clauses.
    new
        The rows of the source that are inserted, with `CLAUSE`; None if there are none.
    num_rows
        The number of rows by clause; of None, rows that match and stay as they are. Of rows of the
        table that match several rows of the source, every pair may count, see `counted_by_row`.
    num_source_rows
        Of the source.
    matching, acting_alone
        True of the rows of the table in `pairs`, and of those that a clause may act on without the
        source; None where nothing is known.
    matching_scan, scan_alone
        Of the same rows; the second is None without such clauses.
    inserts
        True if clauses insert rows of the source that match none of the table.
    again
        The condition of the merge, where a join by it finds the rows in `pairs` again, without
        their positions: a single clause acts on them all.
    """

    pairs: MergePairs
    unmatched: DataFrame | None
    new: DataFrame | None
    num_rows: Mapping[int | None, int]
    num_source_rows: int
    matching: Predicate | None
    matching_scan: Scan
    inserts: bool
    acting_alone: Predicate | None = None
    scan_alone: Scan | None = None
    again: Column | None = None
    count_by_row: Callable[[], Mapping[int | None, int]] | None = field(default=None, repr=False)

    def num_rows_of(self, clauses: Iterable[int]) -> int:
        """The number of rows that clauses act on, by their indexes."""
        return sum(self.num_rows.get(index, 0) for index in clauses)

    def counted_by_row(self) -> MergeMatches:
        """The matches with the numbers of rows of the table by clause, each row counted once.

        Raises
        ------
        MultipleSourceRowsError
            Several rows of the source match the same row of the table.
        """
        if self.count_by_row is None:
            return self
        counts = {**self.num_rows, **self.count_by_row()}
        return replace(self, num_rows=counts, count_by_row=None)

    @property
    def either(self) -> Predicate | None:
        """A predicate that is true of every table row the merge depends on; None if unknown."""
        if self.unmatched is None or self.matching is None:
            return self.matching
        return None if self.acting_alone is None else Or((self.matching, self.acting_alone))

    @property
    def files(self) -> LocalAddFiles | DataFrame:
        """The files that may have rows that the merge depends on, as `modify_files` takes them."""
        known, alone = self.matching_scan.known, self.scan_alone
        if known is not None:
            if alone is None:
                return known
            if alone.known is not None:
                return known.united(alone.known)
        adds = self.matching_scan.files(with_json=True)
        if alone is None:
            return adds
        others = alone.files(with_json=True).join(adds.select("path"), "path", "left_anti")
        return adds.unionByName(others)

    @property
    def read(self) -> ReadSet:
        """The data of the table that the merge depends on, for conflict detection."""
        predicate = self.either
        return ReadSet(
            () if predicate is None else (predicate,),
            whole_table=predicate is None,
            # Without such a row, its row of the source would have been inserted.
            leaves_rows=self.inserts and None in self.num_rows,
        )


def find_matches(
    snapshot: Snapshot,
    source: StagedSource,
    condition: str | Column,
    clauses: Sequence[ResolvedClause],
    stage: Staging,
    *,
    frames: MergeFrames,
    names: RowNames,
) -> MergeMatches:
    """Find the rows that match, with up to three queries, whose results are staged.

    Parameters
    ----------
    condition
        Of the merge.
    frames
        As `empty_frames` gives them.
    names
        Of the target's rows.

    Raises
    ------
    MultipleSourceRowsError
        Several rows of the source match the same row of the table.
    """
    return _Matching(snapshot, source, condition, clauses, stage, frames, names).result()


@dataclass(frozen=True, slots=True)
class _Matching:
    snapshot: Snapshot
    source: StagedSource
    condition: str | Column
    clauses: Sequence[ResolvedClause]
    stage: Staging
    frames: MergeFrames
    names: RowNames

    def result(self) -> MergeMatches:
        terms = self._terms(self.frames.both, self.condition)
        keys = source_keys(self.source, terms)
        matching = self._all_of([*terms.target, *keys.predicates])
        scan = self.snapshot.candidates(matching)
        if keys.matches_none:
            pairs = no_pairs(self.stage)
        else:
            scan = scan.with_known_files(self._all_of([*terms.target, *keys.row_predicates]))
            pairs = stage_pairs(self._pairs(scan), self.stage)
        acting_alone = scan_alone = unmatched = new = None
        if self._conditions(NOT_MATCHED_BY_SOURCE):
            acting_alone = self._acting_alone()
            scan_alone = self.snapshot.candidates(acting_alone).with_known_files()
            unmatched = self.stage.stage_rows(self._unmatched(scan_alone, pairs.rows), "unmatched")
        inserts = bool(self._conditions(NOT_MATCHED))
        if inserts and (pairs.known is None or pairs.num_source_rows < keys.num_rows):
            alone = self.source.rows.join(pairs.rows.select(SOURCE_ROW), SOURCE_ROW, "left_anti")
            new = alone.select("*", self._clause(NOT_MATCHED)).filter(_ACTS)
        counts = self._row_counts(pairs, unmatched, new, keys.num_rows)
        self._check_repeated(counts, pairs, terms.keys)
        matches = MergeMatches(
            pairs=pairs,
            unmatched=unmatched,
            new=new,
            num_rows={each.clause: each.num_rows for each in counts},
            num_source_rows=keys.num_rows,
            matching=matching,
            matching_scan=scan,
            inserts=inserts,
            acting_alone=acting_alone,
            scan_alone=scan_alone,
            again=expression(self.condition) if self._joins_again(terms.keys) else None,
            count_by_row=None
            if pairs.known is not None
            else partial(self._counts_by_row, pairs, terms.keys),
        )
        # The deletion vectors of the rows that a clause acts on tell whether any is counted twice.
        is_counted_later = None not in matches.num_rows or self._only_inserts()
        return matches if is_counted_later else matches.counted_by_row()

    def _pairs(self, scan: Scan) -> DataFrame:
        conditions = [self.condition, *self._conditions(MATCHED).values()]
        rows = self._target_rows(self.frames.both, conditions, scan)
        joined = rows.join(self.source.broadcast, expression(self.condition))
        return joined.select(FILE, POSITION, SOURCE_ROW, self._clause(MATCHED))

    def _unmatched(self, scan: Scan, pairs: DataFrame) -> DataFrame:
        conditions = list(self._conditions(NOT_MATCHED_BY_SOURCE).values())
        rows = self._target_rows(self.frames.target, conditions, scan)
        rows = rows.select(FILE, POSITION, self._clause(NOT_MATCHED_BY_SOURCE)).filter(_ACTS)
        return rows.join(pairs.select(FILE, POSITION), [FILE, POSITION], "left_anti")

    def _target_rows(
        self,
        frame: DataFrame,
        conditions: Sequence[str | Column | None],
        scan: Scan,
    ) -> DataFrame:
        """The rows of a scan, with the columns that conditions on a frame need."""
        table = self.snapshot.configuration
        checked = frame.select(*(expression(each) for each in conditions if each is not None))
        engine = engine_of(self.stage.spark)
        used = {
            name.removeprefix(TARGET) for name in engine.columns_used(checked, self.frames.target)
        }
        columns = [name for name in table.schema.names if name in used]
        rows = scan.select(columns).rows_with(MetadataColumn.FILE, MetadataColumn.ROW_POSITION)
        rows = positioned(rows, table, columns)
        return with_target_names(rows, columns, target_names(table.schema, self.names))

    def _conditions(self, rows: str) -> dict[int, str | Column | None]:
        """The conditions of the clauses for one kind of rows, by the clauses' indexes."""
        return {
            index: clause.condition
            for index, clause in enumerate(self.clauses)
            if clause.kind.rows == rows
        }

    def _clause(self, rows: str) -> Column:
        """The index of the first clause for these rows whose condition is true, as `CLAUSE`."""
        first = F.expr("CAST(NULL AS INT)")
        for index, condition in reversed(self._conditions(rows).items()):
            number = F.expr(str(index))
            if condition is not None:
                number = F.when(expression(condition), number).otherwise(first)
            first = number
        return first.alias(CLAUSE)

    def _terms(self, frame: DataFrame, condition: str | Column) -> MatchTerms:
        table = self.snapshot.configuration
        return engine_of(self.stage.spark).match_terms(
            frame.filter(condition),
            self.frames.target,
            self.frames.source,
            table.schema,
            alias=self.names.alias or qualifier_of(table.schema),
        )

    def _joins_again(self, keys: Sequence[EqualKey]) -> bool:
        matched = [*self._conditions(MATCHED).values()]
        if not keys or len(matched) != 1 or matched[0] is not None:
            return False
        return not has_changing_condition(self.frames.both.filter(self.condition))

    def _acting_alone(self) -> Predicate | None:
        """A predicate of the rows that a clause acts on if they match no row of the source; None
        for all rows.
        """
        each = [
            None if given is None else self._all_of(self._terms(self.frames.target, given).target)
            for given in self._conditions(NOT_MATCHED_BY_SOURCE).values()
        ]
        known = tuple(predicate for predicate in each if predicate is not None)
        return Or(known) if len(known) == len(each) else None

    def _all_of(self, terms: Sequence[Predicate]) -> Predicate | None:
        if not terms:
            return None
        return with_partition_terms(
            self.stage.spark, And(tuple(terms)), self.snapshot.configuration
        )

    def _row_counts(
        self,
        pairs: MergePairs,
        unmatched: DataFrame | None,
        new: DataFrame | None,
        num_source_rows: int,
    ) -> list[RowCount]:
        """The numbers of rows by clause; a query counts those that the driver does not know."""
        known, counted, unknown = [], [], []
        if pairs.known is None:
            counted.append(pairs.rows)
        else:
            known += pairs.known_counts
        if unmatched is not None:
            counted.append(unmatched)
        if new is not None:
            index, condition = next(iter(self._conditions(NOT_MATCHED).items()))
            if condition is not None:
                counted.append(new)
            elif pairs.known is not None:
                known.append(RowCount(index, num_source_rows - pairs.num_source_rows))
            else:
                others = f"{num_source_rows}L - count(DISTINCT {quoted(SOURCE_ROW)})"
                unknown.append(pairs.rows.agg(F.expr(others)).selectExpr(f"{index}", "*"))
        unknown += [rows.groupBy(CLAUSE).agg(F.expr("count(1)")) for rows in counted]
        if not unknown:
            return known
        found = read_rows(
            reduce(DataFrame.union, unknown),
            what="rows of a merge by clause",
            bound=len(self.clauses) + 1,
            version=self.snapshot.version,
        )
        return known + [RowCount(*row) for row in found]

    def _counts_by_row(self, pairs: MergePairs, keys: Sequence[EqualKey]) -> dict[int | None, int]:
        """The numbers of rows of the table that match, by clause."""
        counts = pairs.by_row.groupBy(CLAUSE).agg(F.count("*"), F.count_if(REPEATED))
        found = read_rows(
            counts,
            what="matching rows of a merge by clause",
            bound=len(self.clauses) + 1,
            version=self.snapshot.version,
        )
        self._check_repeated([RowCount(*row) for row in found], pairs, keys)
        return {row[0]: row[1] for row in found}

    def _check_repeated(
        self, counts: Sequence[RowCount], pairs: MergePairs, keys: Sequence[EqualKey]
    ) -> None:
        """Refuse rows of the table that match several rows of the source."""
        num_repeated = sum(each.num_repeated for each in counts)
        if num_repeated and not self._allows_repeated():
            raise MultipleSourceRowsError(
                path=self.snapshot.path,
                num_rows=num_repeated,
                keys=self._shown_keys(pairs.by_row.filter(REPEATED), keys),
            )

    def _shown_keys(self, repeated: DataFrame, keys: Sequence[EqualKey]) -> list[str]:
        """The keys of some of these rows, as text."""
        shown = F.to_json(F.array(*(key.source.cast("string") for key in keys)))
        rows = self.source.rows.join(repeated.select(SOURCE_ROW).limit(_MAX_SHOWN), SOURCE_ROW)
        found = read_rows(rows.select(shown), what="keys of ambiguous rows", bound=_MAX_SHOWN)
        return sorted(row[0] for row in found)

    def _allows_repeated(self) -> bool:
        """True if several rows of the source may match the same row of the table: it is deleted, or
        left alone.
        """
        matched = [clause for clause in self.clauses if clause.kind.is_matched]
        deletes = [c.kind is Clause.MATCHED_DELETE and c.condition is None for c in matched]
        return self._only_inserts() or deletes == [True]

    def _only_inserts(self) -> bool:
        return all(clause.kind.is_not_matched for clause in self.clauses)
