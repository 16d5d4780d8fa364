"""The reconciled state of a snapshot as lazy DataFrames."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.frames.partition_values import typed_partition_values
from sparkdelta.frames.reconciliation import (
    newest_adds,
    newest_by_key,
    newest_file_actions,
    newest_removes,
    surviving_adds,
    surviving_removes,
)
from sparkdelta.frames.statistics import conform, parse_statistics
from sparkdelta.protocol.log_files import Version
from sparkdelta.schema.action_schemas import ADD, DOMAIN_METADATA, REMOVE, TXN
from sparkdelta.table.configuration import TableConfiguration
from sparkdelta.table.log_reader import LogReader

STATS_PARSED = "stats_parsed"
PARTITION_VALUES_PARSED = "partitionValues_parsed"
_FROM_CHECKPOINT = -1


@dataclass(frozen=True, slots=True)
class CachedAdds:
    """The live adds of a version as `TableState.adds` gives them without JSON, kept in Spark."""

    version: Version
    adds: DataFrame


@dataclass(frozen=True, slots=True)
class TableState:
    """What replay of a log segment gives; every method returns a lazy DataFrame.

    References
    ----------
    PROTOCOL.md#action-reconciliation
    """

    log: LogReader
    configuration: TableConfiguration
    partition_time_zone: str
    cached: CachedAdds | None = None

    def add_actions(self, *fields: str) -> DataFrame:
        """The named fields of the live add actions, as in the log."""
        wanted = StructType([field for field in ADD.fields if field.name in fields])
        needed = StructType(
            [field for field in ADD.fields if field.name in {*fields, "path", "deletionVector"}]
        )
        return self._live_adds(StructField("add", needed)).select(*wanted.names)

    def adds(self, *, with_json: bool = True) -> DataFrame:
        """The live adds with typed partition values and statistics.

        Parameters
        ----------
        with_json
            Whether to carry the text `stats` too, most of an action's bytes.
        """
        if self.cached is not None and not with_json:
            return self._adds_since_cached(self.cached)
        stored = self.log.stored_add_type() if self.log.segment.checkpoint else None
        return self._typed(self._live_adds(_add_field(stored)), stored, with_json=with_json)

    def removes(self) -> DataFrame:
        """The tombstones, expired ones included."""
        field = StructField("remove", REMOVE)
        if self.log.segment.checkpoint is None:
            return newest_removes(self._newest())
        removes = self.log.checkpoint_file_actions(field)
        if not self.log.has_commits:
            return removes
        newest = self._newest()
        survivors = surviving_removes(
            removes,
            newest,
            table_root=self.log.store.table_root,
            broadcast_keys=self.log.broadcasts_keys,
        )
        return survivors.unionByName(newest_removes(newest))

    def transactions(self) -> DataFrame:
        """The latest `txn` of each application."""
        return newest_by_key(self._actions(StructField("txn", TXN)), action="txn", key="appId")

    def domain_metadata(self) -> DataFrame:
        """The latest `domainMetadata` of each domain that is not removed."""
        actions = self._actions(StructField("domainMetadata", DOMAIN_METADATA))
        latest = newest_by_key(actions, action="domainMetadata", key="domain")
        return latest.filter("NOT coalesce(removed, false)")

    def _newest(self, above: Version | None = None) -> DataFrame:
        return newest_file_actions(
            self.log.commit_actions("add", "remove", above=above),
            table_root=self.log.store.table_root,
        )

    def _live_adds(self, field: StructField) -> DataFrame:
        if self.log.segment.checkpoint is None:
            return newest_adds(self._newest())
        adds = self.log.checkpoint_file_actions(field)
        if not self.log.has_commits:
            return adds
        return self._superseded_by(adds, self._newest())

    def _superseded_by(self, adds: DataFrame, newest: DataFrame) -> DataFrame:
        survivors = surviving_adds(
            adds,
            newest,
            table_root=self.log.store.table_root,
            broadcast_keys=self.log.broadcasts_keys,
        )
        return survivors.unionByName(newest_adds(newest), allowMissingColumns=True)

    def _adds_since_cached(self, cached: CachedAdds) -> DataFrame:
        if cached.version == self.log.segment.version:
            return cached.adds
        newest = self._newest(above=cached.version)
        survivors = surviving_adds(
            cached.adds,
            newest,
            table_root=self.log.store.table_root,
            broadcast_keys=self.log.broadcasts_keys,
        )
        new = self._typed(newest_adds(newest), None, with_json=False)
        return survivors.unionByName(new)

    def _typed(self, adds: DataFrame, stored: StructType | None, *, with_json: bool) -> DataFrame:
        kept = [name for name in ADD.names if with_json or name != "stats"]
        typed = typed_partition_values(
            F.col("partitionValues"),
            self.configuration.partition_keys,
            time_zone=self.partition_time_zone,
        )
        partition_values = F.struct(*typed) if typed else F.struct()
        return adds.select(
            *kept,
            partition_values.alias(PARTITION_VALUES_PARSED),
            self._statistics(stored).alias(STATS_PARSED),
        )

    def _statistics(self, stored: StructType | None) -> Column:
        statistics = self.configuration.statistics
        parsed = parse_statistics(F.col("stats"), statistics=statistics)
        if stored is None or STATS_PARSED not in stored.names:
            return parsed
        in_checkpoint = conform(
            F.col(STATS_PARSED), stored=stored[STATS_PARSED].dataType, wanted=statistics
        )
        return F.coalesce(in_checkpoint, parsed)

    def _actions(self, field: StructField) -> DataFrame:
        commits = self.log.commit_actions(field.name)
        if self.log.segment.checkpoint is None:
            return commits
        rows = self.log.checkpoint_actions(field)
        checkpoint = rows.select(F.lit(_FROM_CHECKPOINT).cast("long").alias("version"), field.name)
        return checkpoint.unionByName(commits)


def _add_field(stored: StructType | None) -> StructField:
    """`add` with the statistics that the checkpoint holds, in the type in which it holds them."""
    if stored is None or STATS_PARSED not in stored.names:
        return StructField("add", ADD)
    return StructField("add", StructType([*ADD.fields, stored[STATS_PARSED]]))
