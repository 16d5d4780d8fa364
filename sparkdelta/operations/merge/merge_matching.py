"""Rows of a table and of a source that match, and the clause of a MERGE that acts on each.

Only keys, positions and what conditions need take part; whole rows are read later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.predicates.analyzed_text import qualifier_of
from sparkdelta.base.predicates.predicate_rules import And, Or, Predicate
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.match_terms import EqualKey, MatchTerms
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError
from sparkdelta.operations.merge.merge_clauses import Clause
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
    StagedMerge,
    StagedSource,
    positioned,
    row_file,
)
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.log.local_add_files import LocalAddFiles
from sparkdelta.table.scan.conditions import has_changing_condition, with_partition_terms
from sparkdelta.table.scan.file_row_frames import expression_of
from sparkdelta.table.scan.scan import Scan
from sparkdelta.table.scan.scan_request import MetadataColumn

OPERATION = "MERGE"
MATCHED = Clause.MATCHED_UPDATE.rows
NOT_MATCHED = Clause.NOT_MATCHED_INSERT.rows
NOT_MATCHED_BY_SOURCE = Clause.NOT_MATCHED_BY_SOURCE_UPDATE.rows

_ACTS = f"{quoted(CLAUSE)} IS NOT NULL"
_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
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
    keys
        The expressions of table and source that the condition compares.
    matching, acting_alone
        True of the rows of the table in `pairs`, and of those that a clause may act on without the
        source; None where nothing is known.
    matching_scan, scan_alone
        Of the same rows; the second is None without such clauses.
    joins_again
        True if a join by the condition of the merge finds the rows in `pairs` again, without their
        positions: a single clause acts on them all.
    is_counted_by_row
        True if `num_rows` counts each row of the table once.
    """

    merge: StagedMerge
    pairs: MergePairs
    unmatched: DataFrame | None
    new: DataFrame | None
    num_rows: Mapping[int | None, int]
    num_source_rows: int
    keys: Sequence[EqualKey]
    matching: Predicate | None
    matching_scan: Scan
    acting_alone: Predicate | None
    scan_alone: Scan | None
    joins_again: bool
    is_counted_by_row: bool

    def count(self, *kinds: Clause) -> int:
        """Return the number of rows that clauses of these kinds act on."""
        return sum(self.num_rows.get(index, 0) for index in self.merge.resolved.of_kinds(*kinds))

    @property
    def num_updated(self) -> int:
        return self.count(Clause.MATCHED_UPDATE, Clause.NOT_MATCHED_BY_SOURCE_UPDATE)

    @property
    def num_deleted(self) -> int:
        return self.count(Clause.MATCHED_DELETE, Clause.NOT_MATCHED_BY_SOURCE_DELETE)

    @property
    def num_inserted(self) -> int:
        return self.count(Clause.NOT_MATCHED_INSERT)

    @property
    def num_affected(self) -> int:
        return self.num_updated + self.num_deleted + self.num_inserted

    def counted_by_row(self) -> MergeMatches:
        """Return the matches with the numbers of rows of the table by clause, each row counted
        once.
        """
        if self.is_counted_by_row:
            return self
        counts = grouped(self.pairs.by_row, [CLAUSE], F.count("*"), F.count_if(REPEATED))
        rows = read_rows(
            counts,
            what="matching rows of a merge by clause",
            bound=len(self.merge.resolved.clauses) + 1,
            version=self.merge.snapshot.version,
        )
        by_row = [RowCount(*row) for row in rows]
        _check_repeated(self.merge, by_row, self.pairs, self.keys)
        num_rows = {**self.num_rows, **{each.clause: each.num_rows for each in by_row}}
        return replace(self, num_rows=num_rows, is_counted_by_row=True)

    @property
    def either(self) -> Predicate | None:
        """A predicate that every table row the merge depends on matches; None if unknown."""
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
            whole_table=predicate is None or self.merge.reads_target,
            # Without such a row, its row of the source would have been inserted.
            leaves_rows=bool(self.merge.conditions(NOT_MATCHED)) and None in self.num_rows,
            only_rows=not self.merge.reads_target,
        )


def find_matches(merge: StagedMerge) -> MergeMatches:
    """Find the rows that match, with up to three queries, whose results are staged."""
    source, stage, snapshot = merge.source, merge.stage, merge.snapshot
    terms = _terms(merge, merge.frames.both, merge.condition)
    keys = source_keys(source, terms)
    matching = _all_of(merge, [*terms.target, *keys.predicates])
    scan = snapshot.candidates(matching)
    if keys.matches_none:
        pairs = no_pairs(stage)
    else:
        scan = scan.with_known_files(_all_of(merge, [*terms.target, *keys.row_predicates]))
        pairs = stage_pairs(_pairs(merge, scan), stage)
    acting_alone = scan_alone = unmatched = new = None
    if merge.conditions(NOT_MATCHED_BY_SOURCE):
        acting_alone = _acting_alone(merge)
        scan_alone = snapshot.candidates(acting_alone).with_known_files()
        unmatched = stage.stage_rows(_unmatched(merge, scan_alone, pairs.rows), "unmatched")
    inserts = bool(merge.conditions(NOT_MATCHED))
    if inserts and (pairs.known is None or pairs.num_source_rows < keys.num_rows):
        alone = source.rows.join(pairs.rows.select(SOURCE_ROW), SOURCE_ROW, "left_anti")
        new = alone.select("*", _clause(merge, NOT_MATCHED)).filter(_ACTS)
    counts = _row_counts(merge, pairs, unmatched, new, num_source_rows=keys.num_rows)
    _check_repeated(merge, counts, pairs, terms.keys)
    matches = MergeMatches(
        merge=merge,
        pairs=pairs,
        unmatched=unmatched,
        new=new,
        num_rows={each.clause: each.num_rows for each in counts},
        num_source_rows=keys.num_rows,
        keys=terms.keys,
        matching=matching,
        matching_scan=scan,
        acting_alone=acting_alone,
        scan_alone=scan_alone,
        joins_again=_joins_again(merge, terms),
        is_counted_by_row=pairs.known is not None,
    )
    # The deletion vectors of the rows that a clause acts on tell whether any is counted twice.
    is_counted_later = None not in matches.num_rows or _only_inserts(merge)
    return matches if is_counted_later else matches.counted_by_row()


def _pairs(merge: StagedMerge, scan: Scan) -> DataFrame:
    conditions = [merge.condition, *merge.conditions(MATCHED).values()]
    rows = _target_rows(merge, merge.frames.both, conditions, scan)
    joined = rows.join(merge.source.broadcast, expression_of(merge.condition))
    return joined.select(row_file(), POSITION, SOURCE_ROW, _clause(merge, MATCHED))


def _unmatched(merge: StagedMerge, scan: Scan, pairs: DataFrame) -> DataFrame:
    conditions = list(merge.conditions(NOT_MATCHED_BY_SOURCE).values())
    rows = _target_rows(merge, merge.frames.target, conditions, scan)
    rows = rows.select(row_file(), POSITION, _clause(merge, NOT_MATCHED_BY_SOURCE)).filter(_ACTS)
    return rows.join(pairs.select(FILE, POSITION), [FILE, POSITION], "left_anti")


def _target_rows(
    merge: StagedMerge, frame: DataFrame, conditions: Sequence[str | Column | None], scan: Scan
) -> DataFrame:
    """Return the rows of a scan, with the columns that conditions on a frame need."""
    table = merge.snapshot.configuration
    checked = frame.select(*(expression_of(each) for each in conditions if each is not None))
    engine = engine_of(merge.stage.spark)
    used = {name.removeprefix(TARGET) for name in engine.columns_used(checked, merge.frames.target)}
    columns = [name for name in table.schema.names if name in used]
    rows = scan.select(columns).rows_with(MetadataColumn.FILE, MetadataColumn.ROW_POSITION)
    return merge.target_rows(positioned(rows, table, columns), columns)


def _clause(merge: StagedMerge, rows: str) -> Column:
    """Return the index of the first clause for these rows whose condition is true, as `CLAUSE`."""
    first = F.expr("CAST(NULL AS INT)")
    for index, condition in reversed(merge.conditions(rows).items()):
        number = F.expr(str(index))
        if condition is not None:
            number = F.when(expression_of(condition), number).otherwise(first)
        first = number
    return first.alias(CLAUSE)


def _terms(merge: StagedMerge, frame: DataFrame, condition: str | Column) -> MatchTerms:
    schema = merge.snapshot.schema
    return engine_of(merge.stage.spark).match_terms(
        frame.filter(condition),
        merge.frames.target,
        merge.frames.source,
        schema,
        alias=merge.names.alias or qualifier_of(schema),
    )


def _joins_again(merge: StagedMerge, terms: MatchTerms) -> bool:
    matched = [*merge.conditions(MATCHED).values()]
    if not terms.keys or len(matched) != 1 or matched[0] is not None:
        return False
    return terms.are_all or not has_changing_condition(merge.frames.both.filter(merge.condition))


def _acting_alone(merge: StagedMerge) -> Predicate | None:
    """Return a predicate of the rows that a clause acts on if they match no row of the source; None
    for all rows.
    """
    each = [
        None
        if condition is None
        else _all_of(merge, _terms(merge, merge.frames.target, condition).target)
        for condition in merge.conditions(NOT_MATCHED_BY_SOURCE).values()
    ]
    known = tuple(predicate for predicate in each if predicate is not None)
    return Or(known) if len(known) == len(each) else None


def _all_of(merge: StagedMerge, terms: Sequence[Predicate]) -> Predicate | None:
    if not terms:
        return None
    table = merge.snapshot.configuration
    return with_partition_terms(merge.stage.spark, And(tuple(terms)), table)


def _row_counts(
    merge: StagedMerge,
    pairs: MergePairs,
    unmatched: DataFrame | None,
    new: DataFrame | None,
    *,
    num_source_rows: int,
) -> list[RowCount]:
    """Return the numbers of rows by clause; a query counts rows that the driver lacks."""
    known, counted, unknown = [], [], []
    if pairs.known is None:
        counted.append(pairs.rows)
    else:
        known += pairs.known_counts
    if unmatched is not None:
        counted.append(unmatched)
    if new is not None:
        index, condition = next(iter(merge.conditions(NOT_MATCHED).items()))
        if condition is not None:
            counted.append(new)
        elif pairs.known is not None:
            known.append(RowCount(index, num_source_rows - pairs.num_source_rows))
        else:
            others = f"{num_source_rows}L - count(DISTINCT {quoted(SOURCE_ROW)})"
            unknown.append(pairs.rows.agg(F.expr(others)).selectExpr(f"{index}", "*"))
    unknown += [grouped(rows, [CLAUSE], F.expr("count(1)")) for rows in counted]
    if not unknown:
        return known
    rows = read_rows(
        reduce(DataFrame.union, unknown),
        what="rows of a merge by clause",
        bound=len(merge.resolved.clauses) + 1,
        version=merge.snapshot.version,
    )
    return known + [RowCount(*row) for row in rows]


def _check_repeated(
    merge: StagedMerge, counts: Sequence[RowCount], pairs: MergePairs, keys: Sequence[EqualKey]
) -> None:
    """Refuse rows of the table that match several rows of the source."""
    num_repeated = sum(each.num_repeated for each in counts)
    if num_repeated and not _allows_repeated(merge):
        raise DeltaError.of(
            "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            path=merge.snapshot.path,
            num_rows=num_repeated,
            keys=_shown_keys(merge.source, pairs.by_row.filter(REPEATED), keys),
        )


def _shown_keys(source: StagedSource, repeated: DataFrame, keys: Sequence[EqualKey]) -> list[str]:
    """Return the keys of some of these rows, as text."""
    shown = F.to_json(F.array(*(key.source.cast("string") for key in keys)))
    rows = source.rows.join(repeated.select(SOURCE_ROW).limit(_MAX_SHOWN), SOURCE_ROW)
    texts = read_rows(rows.select(shown), what="keys of ambiguous rows", bound=_MAX_SHOWN)
    return sorted(row[0] for row in texts)


def _allows_repeated(merge: StagedMerge) -> bool:
    """Return True if several rows of the source may match the same row of the table: it is deleted,
    or left alone.
    """
    matched = [clause for clause in merge.resolved.clauses if clause.kind.is_matched]
    deletes = [c.kind is Clause.MATCHED_DELETE and c.condition is None for c in matched]
    return _only_inserts(merge) or deletes == [True]


def _only_inserts(merge: StagedMerge) -> bool:
    return all(clause.kind.is_not_matched for clause in merge.resolved.clauses)
