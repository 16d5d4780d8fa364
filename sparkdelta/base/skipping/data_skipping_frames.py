"""Data skipping over add actions, by the rules of `base.skipping.skipping_frames`.

Conditions are applied in this order: those on typed columns of the checkpoint, which Spark pushes
down to the Parquet scan; partition values; statistics. JSON statistics are parsed only for the
columns of the predicate, and only for the remaining files.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sparkdelta.base.predicates.calendar_gap_rules import has_day_of_gap
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Predicate,
    columns,
    is_usable,
    marked_conjuncts,
    unusable_parts,
    without_not,
)
from sparkdelta.base.predicates.predicate_text_rules import describe
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.table_properties import ColumnMappingMode
from sparkdelta.base.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED
from sparkdelta.base.schema.column_mapping import physical_name, physical_path
from sparkdelta.base.schema.partition_value_frames import (
    is_invalid_partition_value,
    partition_value,
    partition_value_or_null,
)
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.statistics_frames import parsed_statistics
from sparkdelta.base.schema.statistics_schema import (
    covers,
    narrowed_statistics,
    reliable_statistics,
    spelled,
    statistics_schema,
)
from sparkdelta.base.schema.table_schema import as_nullable, partition_fields, quoted
from sparkdelta.base.skipping.skipping_frames import Condition, FileFacts, SkippingRules

_MIN, _MAX, _NULLS, _RECORDS = "minValues", "maxValues", "nullCount", "numRecords"
_IN_JSON = "parsed"

_UNDECIDED = "no minimum, maximum or null count tells"

_NOT_PUSHED = (FloatType, DoubleType, BinaryType)
# Writers differ in the time zone with which they parse timestamps that have none, and in whether
# they decode escaped bytes.
_NOT_TAKEN = (TimestampType, TimestampNTZType, BinaryType)


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The typed columns of add actions: `partitionValues_parsed` and `stats_parsed`.

    Attributes
    ----------
    partition_values
        The field of `partitionValues_parsed` of each partition column, by column name.
    statistics
        The type of `stats_parsed`; None without this column.
    has_json
        True if add actions also have `stats`.
    """

    partition_values: Mapping[str, str]
    statistics: StructType | None
    has_json: bool = True


NOTHING_STORED = StoredFacts({}, None)


def stored_in_checkpoint(
    add: StructType | None,
    partition_keys: Sequence[tuple[str, StructField]],
    statistics: StructType,
) -> StoredFacts:
    """Return the reliable typed columns of a checkpoint.

    Parameters
    ----------
    add
        The type of `add` in the checkpoint; None if it has no such column.
    partition_keys
        The physical name and the field of each partition column.
    statistics
        The type of `stats_parsed` for the table.
    """
    types = {} if add is None else {field.name: field.dataType for field in add.fields}
    parsed, summaries = types.get(PARTITION_VALUES_PARSED), types.get(STATS_PARSED)
    stored = {f.name: f.dataType for f in parsed.fields} if isinstance(parsed, StructType) else {}
    return StoredFacts(
        {
            field.name: key
            for key, field in partition_keys
            if stored.get(key) == as_nullable(field.dataType)
            and not isinstance(field.dataType, _NOT_TAKEN)
        },
        reliable_statistics(summaries, statistics) if isinstance(summaries, StructType) else None,
    )


def stored_partition_value(stored: StoredFacts, field: StructField) -> str:
    """Return SQL for a partition value in `partitionValues_parsed`.

    delta-spark leaves empty strings there, which stand for null.
    """
    column = f"{PARTITION_VALUES_PARSED}.{quoted(stored.partition_values[field.name])}"
    if not isinstance(field.dataType, StringType):
        return column
    return f"nullif(CAST({column} AS STRING), '')"  # a collation may ignore trailing spaces


@dataclass(frozen=True, slots=True)
class TermUse:
    """The use of one term of a condition for skipping files.

    Attributes
    ----------
    condition
        The term in readable form.
    reason
        The reason why no files can be skipped; None if they can.
    is_implied
        True if the term is on a generated partition column and derived from the other terms.
    """

    condition: str
    by_partition_values: bool
    by_statistics: bool
    reason: str | None
    is_implied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSkipping:
    """The selection of files by one predicate.

    Attributes
    ----------
    predicate
        A predicate without `Not`, from `base.predicates.predicate_rules.without_not`.
    partition_keys
        The physical name and the field of each partition column.
    statistics
        The type of `stats_parsed` for the table.
    time_zone
        The time zone of timestamp partition values that were written without one.
    """

    predicate: Predicate
    schema: StructType
    partition_keys: Sequence[tuple[str, StructField]]
    column_mapping: ColumnMappingMode
    statistics: StructType
    time_zone: str

    @classmethod
    def of(
        cls,
        predicate: Predicate,
        schema: StructType,
        partition_columns: Sequence[str],
        *,
        column_mapping: ColumnMappingMode = ColumnMappingMode.NONE,
        time_zone: str = "UTC",
    ) -> DataSkipping:
        """Return the selection of a table's files by a predicate, which may have any `Not`."""
        fields = partition_fields(schema, partition_columns)
        return cls(
            predicate=without_not(predicate),
            schema=schema,
            partition_keys=[(physical_name(field, column_mapping), field) for field in fields],
            column_mapping=column_mapping,
            statistics=statistics_schema(schema, tuple(partition_columns), column_mapping),
            time_zone=time_zone,
        )

    @property
    def partition_columns(self) -> frozenset[str]:
        return frozenset(field.name for _, field in self.partition_keys)

    def keep(self, adds: DataFrame, stored: StoredFacts = NOTHING_STORED) -> DataFrame:
        """Return the add actions of files that may contain a matching row, with all columns.

        `adds` has partitionValues MAP<STRING, STRING>, stats STRING if `stored.has_json`, and the
        typed columns in `stored`.
        """
        if has_day_of_gap(self.predicate):  # Spark would get it wrong in the checkpoint, too
            stored = replace(
                stored,
                partition_values={},
                statistics=None if stored.has_json else stored.statistics,
            )
        pushed = self.pushed(stored)
        if pushed is not None:
            adds = adds.filter(pushed)
        for condition in (self.by_partition(stored), self.by_statistics(stored)):
            if condition is not None:
                adds = adds.filter(condition)
        return adds

    def uses(self) -> tuple[TermUse, ...]:
        """Return the use of each term of the predicate for skipping files."""
        used = set()

        def partition(_: ColumnPath) -> str:
            used.add("partition values")
            return PARTITION_VALUES_PARSED

        def statistic(kind: str, path: ColumnPath) -> Condition:
            if self.wanted_type(kind, path) is None:
                return None
            used.add("statistics")
            return STATS_PARSED

        facts = FileFacts(
            partition=partition,
            minimum=partial(statistic, _MIN),
            maximum=partial(statistic, _MAX),
            null_count=partial(statistic, _NULLS),
            num_records=_RECORDS,
        )
        rules = self._rules(facts).within(self._terms(of_partitions=False))
        uses = []
        for term, is_implied in marked_conjuncts(self.predicate):
            used.clear()
            if rules.condition(term) is None:
                unusable = next(unusable_parts(term), None)
                reason = _UNDECIDED if unusable is None else unusable.reason
                uses.append(TermUse(describe(term), False, False, reason, is_implied))
                continue
            by_statistics = "statistics" in used
            # Constant terms are evaluated together with partition values.
            by_partition = "partition values" in used or not by_statistics
            uses.append(TermUse(describe(term), by_partition, by_statistics, None, is_implied))
        return tuple(uses)

    def pushed(self, stored: StoredFacts) -> Condition:
        """Return the condition to push down to a Parquet scan, implied by the other conditions."""
        facts = FileFacts(
            partition=partial(self._stored_partition, stored),
            minimum=partial(self._stored_statistic, stored, _MIN, is_pushed=True),
            maximum=partial(self._stored_statistic, stored, _MAX, is_pushed=True),
            null_count=partial(self._stored_statistic, stored, _NULLS, is_pushed=True),
            num_records=None,
            is_pushed=True,
        )
        return self._rules(facts).condition(self.predicate)

    def by_partition(self, stored: StoredFacts) -> Condition:
        """Return the condition of the terms that reference only partition columns."""
        facts = FileFacts(
            partition=partial(self._partition_value, stored),
            minimum=_unknown,
            maximum=_unknown,
            null_count=_unknown,
            num_records=None,
        )
        predicate = And(self._terms(of_partitions=True))
        condition = self._rules(facts).condition(predicate)
        if condition is None:
            return None
        return self._or_unknown_value(condition, predicate, stored)

    def by_statistics(self, stored: StoredFacts) -> Condition:
        """Return the condition of all terms that `by_partition` does not include."""
        predicate = And(self._terms(of_partitions=False))
        narrowed = self._narrowed(predicate)
        is_stored = narrowed is None or not stored.has_json or self._has_all(stored, narrowed)
        facts = self._facts(stored, None if is_stored else _IN_JSON)
        condition = self._rules(facts).condition(predicate)
        if condition is None:
            return None
        condition = self._or_unknown_value(condition, predicate, stored)
        if narrowed is None or is_stored:
            return condition
        # In a lambda, Spark parses the JSON only when it evaluates the condition. As a common
        # subexpression, it would also be parsed for files that earlier conditions dropped.
        parsed = parsed_statistics("stats", statistics=narrowed)
        return f"`exists`(array({parsed}), {_IN_JSON} -> {condition})"

    def _terms(self, *, of_partitions: bool) -> tuple[Predicate, ...]:
        names = self.partition_columns
        return tuple(
            term
            for term, _ in marked_conjuncts(self.predicate)
            if (is_usable(term) and all(path[0] in names for path in columns(term)))
            == of_partitions
        )

    def _rules(self, facts: FileFacts) -> SkippingRules:
        return SkippingRules(self.schema, self.partition_columns, facts)

    def _facts(self, stored: StoredFacts, json: str | None) -> FileFacts:
        def fact(kind: str, path: ColumnPath) -> Condition:
            return self._statistic(stored, json, kind, path)

        return FileFacts(
            partition=partial(self._partition_value, stored),
            minimum=partial(fact, _MIN),
            maximum=partial(fact, _MAX),
            null_count=partial(fact, _NULLS),
            num_records=fact(_RECORDS, ()),
        )

    def _partition_value(self, stored: StoredFacts, path: ColumnPath) -> str:
        key, field = next(entry for entry in self.partition_keys if entry[1].name == path[0])
        if path[0] in stored.partition_values:
            return stored_partition_value(stored, field)
        text = partition_value("partitionValues", key)
        return partition_value_or_null(text, field, time_zone=self.time_zone)

    def _or_unknown_value(self, condition: str, predicate: Predicate, stored: StoredFacts) -> str:
        """Return SQL that also keeps files whose partition values are missing or invalid.

        The checkpoint may lack typed values. Such a file may no longer be live; if it is,
        reading it raises an error.
        """
        names = {path[0] for path in columns(predicate)}
        unknown = [
            is_invalid_partition_value(
                partition_value("partitionValues", key), field, time_zone=self.time_zone
            )
            for key, field in self.partition_keys
            if field.name in names.difference(stored.partition_values)
            and not isinstance(field.dataType, StringType)
        ]
        if not names.isdisjoint(stored.partition_values):
            unknown.append(f"{PARTITION_VALUES_PARSED} IS NULL")
        return f"({' OR '.join([*unknown, condition])})" if unknown else condition

    def _stored_partition(self, stored: StoredFacts, path: ColumnPath) -> Condition:
        field = next(field for _, field in self.partition_keys if field.name == path[0])
        if path[0] not in stored.partition_values or isinstance(field.dataType, _NOT_PUSHED):
            return None
        return f"{PARTITION_VALUES_PARSED}.{quoted(stored.partition_values[path[0]])}"

    def _statistic(
        self, stored: StoredFacts, json: str | None, kind: str, path: ColumnPath
    ) -> Condition:
        in_struct = self._stored_statistic(stored, kind, path)
        if json is None or self.wanted_type(kind, path) is None:
            return in_struct
        in_json = ".".join([json, *map(quoted, (kind, *self.physical(path)))])
        return in_json if in_struct is None else f"coalesce({in_struct}, {in_json})"

    def _stored_statistic(
        self, stored: StoredFacts, kind: str, path: ColumnPath, *, is_pushed: bool = False
    ) -> Condition:
        wanted = self.wanted_type(kind, path)
        data_type: DataType | None = stored.statistics
        if wanted is None or data_type is None:
            return None
        column = STATS_PARSED
        for name in (spelled(data_type, kind), *self.physical(path)):
            if not isinstance(data_type, StructType) or name not in data_type.names:
                return None
            data_type, column = data_type[name].dataType, f"{column}.{quoted(name)}"
        if data_type == wanted:
            return None if is_pushed and isinstance(wanted, _NOT_PUSHED) else column
        return None if is_pushed else f"TRY_CAST({column} AS {type_text(wanted)})"

    def wanted_type(self, kind: str, path: ColumnPath) -> DataType | None:
        """Return the type of a statistic of a column; None if it cannot be compared."""
        wanted: DataType = self.statistics
        for name in (kind, *self.physical(path)):
            if not isinstance(wanted, StructType) or name not in wanted.names:
                return None
            wanted = wanted[name].dataType
        is_leaf = not isinstance(wanted, StructType | BooleanType)
        return wanted if is_leaf else None

    def physical(self, path: ColumnPath) -> ColumnPath:
        """Return the physical path of a column, as in statistics."""
        return physical_path(self.schema, path, self.column_mapping)

    def _narrowed(self, predicate: Predicate) -> StructType | None:
        paths = [self.physical(path) for path in columns(predicate)]
        return narrowed_statistics(self.statistics, paths)

    def _has_all(self, stored: StoredFacts, narrowed: StructType) -> bool:
        return stored.statistics is not None and covers(stored.statistics, narrowed)


def _unknown(_: ColumnPath) -> Condition:
    return None
