"""Data skipping over the log: the rules of `frames.skipping.skipping_rules`, applied to its facts.

In this order: conditions on the checkpoint's own typed columns, which Spark hands to the Parquet
scan; partition values; statistics. JSON statistics are parsed only for the columns that the
predicate names, and only for files that are left.

References
----------
PROTOCOL.md#per-file-statistics, PROTOCOL.md#partition-value-serialization
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

from sparkdelta.frames.log.partition_values import (
    is_no_partition_value,
    partition_value,
    partition_value_or_null,
)
from sparkdelta.frames.log.statistics import parsed_statistics
from sparkdelta.frames.skipping.skipping_rules import Condition, FileFacts, SkippingRules
from sparkdelta.protocol.predicate_text import describe
from sparkdelta.protocol.predicates import (
    And,
    ColumnPath,
    Predicate,
    columns,
    is_usable,
    marked_conjuncts,
    unusable_parts,
)
from sparkdelta.protocol.table_properties import ColumnMappingMode
from sparkdelta.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED
from sparkdelta.schema.column_mapping import physical_path
from sparkdelta.schema.sql_text import type_text
from sparkdelta.schema.statistics_schema import (
    covers,
    narrowed_statistics,
    reliable_statistics,
    spelled,
)
from sparkdelta.schema.table_schema import as_nullable, quoted

_MIN, _MAX, _NULLS, _RECORDS = "minValues", "maxValues", "nullCount", "numRecords"
_IN_JSON = "parsed"

_UNDECIDED = "no minimum, maximum or null count tells"

_NOT_PUSHED = (FloatType, DoubleType, BinaryType)
# A writer parses timestamps without a zone in a zone of its own; we have our own rule.
_ZONED = (TimestampType, TimestampNTZType)


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """The typed columns that add actions have beside those of the protocol.

    Attributes
    ----------
    partition_values
        Which fields of `partitionValues_parsed` hold which partition column, by its name.
    statistics
        The type of `stats_parsed`.
    has_json
        Whether there is `stats`, too.
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
    """What a checkpoint with this type of `add` has stored, as far as it can be relied on.

    Parameters
    ----------
    partition_keys
        The physical name and the field of each partition column.
    statistics
        Of the table; the type of `stats_parsed`.
    """
    types = {} if add is None else {field.name: field.dataType for field in add.fields}
    parsed, summaries = types.get(PARTITION_VALUES_PARSED), types.get(STATS_PARSED)
    stored = {f.name: f.dataType for f in parsed.fields} if isinstance(parsed, StructType) else {}
    return StoredFacts(
        {
            field.name: key
            for key, field in partition_keys
            if stored.get(key) == as_nullable(field.dataType)
            and not isinstance(field.dataType, _ZONED)
        },
        reliable_statistics(summaries, statistics) if isinstance(summaries, StructType) else None,
    )


@dataclass(frozen=True, slots=True)
class TermUse:
    """What one term of a condition is used for, besides deciding rows.

    Attributes
    ----------
    condition
        The term as text for people.
    by_partition_values, by_statistics
        What it is compared with to leave out files.
    reason
        Why it leaves out none; None if it does.
    is_implied
        Whether it only follows from the terms before it: it is about a generated partition column.
    """

    condition: str
    by_partition_values: bool
    by_statistics: bool
    reason: str | None
    is_implied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSkipping:
    """Chooses files by one predicate.

    Attributes
    ----------
    predicate
        As `protocol.predicates.without_not` gives it.
    schema, partition_keys, column_mapping, statistics
        Of the table; the type of `stats_parsed`.
    time_zone
        Of timestamp partition values that were written without one.
    """

    predicate: Predicate
    schema: StructType
    partition_keys: Sequence[tuple[str, StructField]]
    column_mapping: ColumnMappingMode
    statistics: StructType
    time_zone: str

    @property
    def partition_columns(self) -> frozenset[str]:
        return frozenset(field.name for _, field in self.partition_keys)

    def keep(self, adds: DataFrame, stored: StoredFacts = NOTHING_STORED) -> DataFrame:
        """The add actions whose files may hold a matching row; columns as they come.

        Parameters
        ----------
        adds
            partitionValues MAP<STRING, STRING>, stats STRING if `stored.has_json`, and the columns
            that `stored` names.
        """
        pushed = self.pushed(stored)
        if pushed is not None:
            adds = adds.filter(pushed)
        for condition in (self.by_partition(stored), self.by_statistics(stored)):
            if condition is not None:
                adds = adds.filter(condition)
        return adds

    def uses(self) -> tuple[TermUse, ...]:
        """What each term of the predicate is used for."""
        asked = set()

        def partition(_: ColumnPath) -> str:
            asked.add("partition values")
            return PARTITION_VALUES_PARSED

        def statistic(kind: str, path: ColumnPath) -> Condition:
            if self.wanted_type(kind, path) is None:
                return None
            asked.add("statistics")
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
            asked.clear()
            if rules.condition(term) is None:
                unusable = next(unusable_parts(term), None)
                reason = _UNDECIDED if unusable is None else unusable.reason
                uses.append(TermUse(describe(term), False, False, reason, is_implied))
                continue
            by_statistics = "statistics" in asked
            # A constant is decided together with partition values.
            by_partition = "partition values" in asked or not by_statistics
            uses.append(TermUse(describe(term), by_partition, by_statistics, None, is_implied))
        return tuple(uses)

    def pushed(self, stored: StoredFacts) -> Condition:
        """What Spark can hand to a Parquet scan, a weaker form of the other conditions."""
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
        """The terms that speak of partition columns alone."""
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
        condition = self._or_no_value(condition, predicate, stored)
        if not stored.partition_values:
            return condition
        return f"({PARTITION_VALUES_PARSED} IS NULL OR {condition})"

    def by_statistics(self, stored: StoredFacts) -> Condition:
        """The other terms."""
        predicate = And(self._terms(of_partitions=False))
        narrowed = self._narrowed(predicate)
        is_stored = narrowed is None or not stored.has_json or self._has_all(stored, narrowed)
        facts = self._facts(stored, None if is_stored else _IN_JSON)
        condition = self._rules(facts).condition(predicate)
        if condition is None:
            return None
        condition = self._or_no_value(condition, predicate, stored)
        if narrowed is None or is_stored:
            return condition
        # Inside a lambda, because there Spark parses only where it comes to: as a common
        # subexpression it would parse the JSON of files that were dropped before.
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
        if path[0] in stored.partition_values:
            return f"{PARTITION_VALUES_PARSED}.{quoted(stored.partition_values[path[0]])}"
        key, field = next(entry for entry in self.partition_keys if entry[1].name == path[0])
        text = partition_value("partitionValues", key)
        return partition_value_or_null(text, field, time_zone=self.time_zone)

    def _or_no_value(self, condition: str, predicate: Predicate, stored: StoredFacts) -> str:
        """A condition, or that the text of a partition value is none: the file may be dead, and if
        it is not, who reads it is told.
        """
        names = {path[0] for path in columns(predicate)} - set(stored.partition_values)
        wrong = [
            is_no_partition_value(
                partition_value("partitionValues", key), field, time_zone=self.time_zone
            )
            for key, field in self.partition_keys
            if field.name in names and not isinstance(field.dataType, StringType)
        ]
        return f"({' OR '.join([condition, *wrong])})" if wrong else condition

    def _stored_partition(self, stored: StoredFacts, path: ColumnPath) -> Condition:
        field = next(field for _, field in self.partition_keys if field.name == path[0])
        if path[0] not in stored.partition_values or isinstance(field.dataType, _NOT_PUSHED):
            return None
        return self._partition_value(stored, path)

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
        found: DataType | None = stored.statistics
        if wanted is None or found is None:
            return None
        column = STATS_PARSED
        for name in (spelled(found, kind), *self.physical(path)):
            if not isinstance(found, StructType) or name not in found.names:
                return None
            found, column = found[name].dataType, f"{column}.{quoted(name)}"
        if found == wanted:
            return None if is_pushed and isinstance(wanted, _NOT_PUSHED) else column
        return None if is_pushed else f"TRY_CAST({column} AS {type_text(wanted)})"

    def wanted_type(self, kind: str, path: ColumnPath) -> DataType | None:
        """The type of one of the statistics of a column; None if there is none to compare with."""
        wanted: DataType = self.statistics
        for name in (kind, *self.physical(path)):
            if not isinstance(wanted, StructType) or name not in wanted.names:
                return None
            wanted = wanted[name].dataType
        is_leaf = not isinstance(wanted, StructType | BooleanType)
        return wanted if is_leaf else None

    def physical(self, path: ColumnPath) -> ColumnPath:
        """The names of a column in statistics."""
        return physical_path(self.schema, path, self.column_mapping)

    def _narrowed(self, predicate: Predicate) -> StructType | None:
        paths = [self.physical(path) for path in columns(predicate)]
        return narrowed_statistics(self.statistics, paths)

    def _has_all(self, stored: StoredFacts, narrowed: StructType) -> bool:
        return stored.statistics is not None and covers(stored.statistics, narrowed)


def _unknown(_: ColumnPath) -> Condition:
    return None
