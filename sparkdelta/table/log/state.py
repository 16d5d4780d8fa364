"""The reconciled state of a snapshot, as lazy DataFrames.

References
----------
PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.protocol.actions import Sidecar
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.schema.action_schemas import ADD, DOMAIN_METADATA, FILE_REFERENCES, REMOVE, TXN
from sparkdelta.base.schema.checkpoint_schema import PARTITION_VALUES_PARSED, STATS_PARSED
from sparkdelta.base.schema.partition_value_frames import typed_partition_values
from sparkdelta.base.schema.statistics_frames import conformed, parsed_statistics
from sparkdelta.base.schema.statistics_schema import narrowed_statistics
from sparkdelta.base.skipping.data_skipping_frames import (
    NOTHING_STORED,
    DataSkipping,
    StoredFacts,
    stored_in_checkpoint,
)
from sparkdelta.base.skipping.file_mark_frames import FileMarks
from sparkdelta.base.skipping.path_filter_frames import PathFilter
from sparkdelta.base.spark.local_data import empty_frame, local_frame
from sparkdelta.base.spark.session_settings import CharTypes
from sparkdelta.table.checkpoint.checkpoint_reader import CheckpointReader
from sparkdelta.table.log.commit_range import DISTINCT_FILES
from sparkdelta.table.log.local_add_files import LocalAddFiles
from sparkdelta.table.log.log_reader import LogReader
from sparkdelta.table.log.reconciliation_frames import (
    keyed_file_actions,
    newest_actions,
    newest_adds,
    newest_by_key,
    newest_file_actions,
    newest_removes,
    superseding_files,
    superseding_keys,
    surviving_actions,
    surviving_actions_by_path,
)
from sparkdelta.table.log.table_configuration import TableConfiguration

Skipping: TypeAlias = DataSkipping | FileMarks | PathFilter

NUM_RECORDS = "numRecords"
_FROM_CHECKPOINT = -1
_MAX_NAMED_FILES = 100
"""Up to this many files of the commits are named in a condition on a checkpoint's rows."""

_SEED = 1  # the same log is laid out in the same way
_LEAST_BYTES_PER_FILE = 8  # in a checkpoint, where paths differ in little but their number


@dataclass(frozen=True, slots=True)
class CachedAdds:
    """The live adds of a version, without JSON statistics, kept in Spark."""

    version: Version
    adds: DataFrame


@dataclass(frozen=True)
class TableState:
    """The result of replaying a log segment, as lazy DataFrames.

    Attributes
    ----------
    num_files
        The number of live files, if the version checksum has it.
    cached
        The live files of this version or an earlier one; used instead of the checkpoint.
    known
        The only live adds of interest; used instead of the log.
    """

    log: LogReader
    configuration: TableConfiguration
    partition_time_zone: str
    char_types: CharTypes
    num_files: int | None = None
    cached: CachedAdds | None = None
    known: LocalAddFiles | None = None
    shows_progress: bool = False

    def has_few_files(self, bound: int) -> bool:
        """Return True if the log surely has at most `bound` live files, without reading it."""
        if self.num_files is not None:
            return self.num_files <= bound
        lines, checkpoint = self.log.commits.local_lines, self.log.checkpoint
        if lines is None or self.log.sidecars:
            return False
        stored = 0 if checkpoint is None else checkpoint.size_bytes // _LEAST_BYTES_PER_FILE
        return int(lines.num_rows) + stored <= bound

    def scan_files(self, *fields: str, skipping: Skipping | None = None) -> DataFrame:
        """Return the named fields of the live add actions, as in the log, and NUM_RECORDS.

        `skipping` leaves out the files without a matching row, or marks them.
        """
        if self.cached is not None:
            adds = self._adds_since_cached(self.cached, skipping)
            return adds.selectExpr(*fields, f"{STATS_PARSED}.{NUM_RECORDS} AS {NUM_RECORDS}")
        adds = self._live_adds(skipping, without_job=skipping is None)
        return adds.selectExpr(*fields, f"{self._num_records(adds)} AS {NUM_RECORDS}")

    def adds(
        self, *, with_json: bool = True, skipping: DataSkipping | PathFilter | None = None
    ) -> DataFrame:
        """Return the live adds with typed partition values and statistics.

        Without `with_json`, the text `stats`, most of an action's bytes, is left out. `skipping`
        leaves out the files without a matching row.
        """
        if self.cached is not None and not with_json:
            return self._adds_since_cached(self.cached, skipping)
        adds = self._all_adds if skipping is None else self._live_adds(skipping)
        return self._typed(adds, with_json=with_json)

    def with_known(self, adds: LocalAddFiles) -> TableState:
        """Return the state with these files as its only live files."""
        return replace(self, known=adds, num_files=adds.texts.num_rows, cached=None)

    def adds_as_stored(self) -> tuple[DataFrame, StoredFacts]:
        """Return the live adds as in the log, and the typed columns that they have."""
        return self._live_adds(), self._stored()

    def sampled_adds(
        self, fraction: float, columns: Sequence[tuple[str, ...]]
    ) -> tuple[DataFrame, StoredFacts]:
        """Sample the adds in the log, live or not, in the form of `adds_as_stored`, without replay.

        Only the partition values and the statistics of some columns are read.
        """
        fields = [ADD[name] for name in ("path", "partitionValues", "stats")]
        new = self.log.commits.actions("add").filter("add.path IS NOT NULL")
        new = new.select(*(f"add.{field.name}" for field in fields))
        checkpoint = self.log.checkpoint
        if checkpoint is None:
            return new.sample(fraction, _SEED), NOTHING_STORED
        stored = self._stored()
        if stored.statistics is not None and NUM_RECORDS in stored.statistics.names:
            stored = replace(stored, statistics=narrowed_statistics(stored.statistics, columns))
        adds = checkpoint.file_actions(_add_field(checkpoint, stored, fields))
        if self.log.has_commits:
            adds = adds.unionByName(new, allowMissingColumns=True)
        return adds.sample(fraction, _SEED), stored

    def with_sidecars(self, chosen: Sequence[Sidecar]) -> TableState:
        """Return the state as if the checkpoint had only these sidecars."""
        return replace(self, log=self.log.with_sidecars(chosen), cached=None)

    def may_hold(self, action: str) -> bool:
        """Return False if the log surely holds no `remove`, `txn` or `domainMetadata`."""
        return self.log.commits.may_hold(action) or self._checkpoint_with(action) is not None

    def _checkpoint_with(self, action: str) -> CheckpointReader | None:
        """Return the checkpoint, unless it surely holds no action of this kind."""
        checkpoint = self.log.checkpoint
        return checkpoint if checkpoint is not None and checkpoint.may_hold(action) else None

    def removes(self) -> DataFrame:
        """Return the tombstones, expired ones included."""
        new, checkpoint = self._new_removes(), self._checkpoint_with("remove")
        if checkpoint is None:
            return new
        removes = checkpoint.file_actions(StructField("remove", REMOVE))
        if not self.log.has_commits:
            return removes
        survivors = self._unsuperseded(removes, are_adds=False)
        return survivors.unionByName(new)

    def file_references(self) -> DataFrame:
        """Return the live adds and all tombstones, with the fields of `FILE_REFERENCES`.

        Other rows have neither. Without a checkpoint, they are reconciled together.
        """
        if self.log.checkpoint is None and self.known is None:
            commits = self.log.commits
            actions = commits.parsed(FILE_REFERENCES)
            if commits.distinct_files is not None:
                return actions.select("add", "remove")
            keyed = keyed_file_actions(
                actions, table_root=self.log.table_root, is_local=commits.is_local
            )
            return newest_actions(newest_file_actions(keyed))
        adds = _as_action(self._live_adds(), FILE_REFERENCES["add"])
        removes = _as_action(self.removes(), FILE_REFERENCES["remove"])
        return adds.unionByName(removes, allowMissingColumns=True)

    def transactions(self) -> DataFrame:
        """Return the latest `txn` of each application."""
        return self._newest_by_key("txn", TXN, key="appId")

    def domain_metadata(self) -> DataFrame:
        """Return the latest `domainMetadata` of each domain that is not removed."""
        latest = self._newest_by_key("domainMetadata", DOMAIN_METADATA, key="domain")
        return latest.filter("NOT coalesce(removed, false)")

    # Frames of the log are kept: to build them takes longer than to plan what uses them.

    @cached_property
    def keyed_commits(self) -> DataFrame:
        """The file actions of the commits, by `keyed_file_actions`."""
        return self._keyed_above(None)

    @cached_property
    def _newest(self) -> DataFrame:
        return newest_file_actions(self.keyed_commits)

    @cached_property
    def _superseding(self) -> DataFrame:
        """The keys of the file actions of the commits, in the columns of `superseding_keys`."""
        files = self.log.commits.distinct_files
        if files is None:
            return superseding_keys(self.keyed_commits)
        return superseding_files(local_frame(self.log.spark, files, DISTINCT_FILES))

    def _keyed_above(self, above: Version | None) -> DataFrame:
        """Return the file actions of the commits above a version, by `keyed_file_actions`."""
        return keyed_file_actions(
            self.log.commits.actions("add", "remove", above=above),
            table_root=self.log.table_root,
            is_local=self.log.commits.is_local,
        )

    @cached_property
    def _all_adds(self) -> DataFrame:
        """The fields of the live add actions, and the typed columns of the checkpoint."""
        return self._live_adds()

    def _live_adds(
        self, skipping: Skipping | None = None, *, without_job: bool = False
    ) -> DataFrame:
        """Return the adds of `_all_adds` without the files that data skipping leaves out.

        With `without_job`, or if the commits are short, the frame costs no Spark job, if the log
        allows that.
        """
        if self.known is not None:
            return _kept(self.known.frame, skipping, NOTHING_STORED)
        checkpoint = self.log.checkpoint
        without_job = without_job or self.log.commits.is_short
        new = self._new_adds(without_job=without_job and checkpoint is None)
        new = _kept(new, skipping, NOTHING_STORED)
        if checkpoint is None:
            return new
        if isinstance(skipping, DataSkipping):
            checkpoint = checkpoint.matching(skipping)
        stored = self._stored()
        adds = checkpoint.file_actions(_add_field(checkpoint, stored))
        adds = _kept(adds, skipping, stored)
        if not self.log.has_commits:
            return adds
        survivors = self._unsuperseded(adds, are_adds=True)
        return survivors.unionByName(new, allowMissingColumns=True)

    def _new_adds(self, *, without_job: bool) -> DataFrame:
        """Return the live adds of the commits."""
        commits = self.log.commits
        if commits.distinct_files is None:
            return newest_adds(self._newest)
        # Both, for a line of either that is damaged fails the query.
        rows = commits.actions("add", "remove", without_job=without_job and commits.is_local)
        return rows.filter("add.path IS NOT NULL").select("add.*")

    def _new_removes(self) -> DataFrame:
        """Return the tombstones of the commits."""
        commits = self.log.commits
        # With keys of the text for a checkpoint, lines are parsed so that a damaged one fails.
        if not commits.may_hold("remove") and (
            commits.distinct_files is None or self._checkpoint_with("remove") is None
        ):
            return empty_frame(self.log.spark, REMOVE)
        if commits.distinct_files is None:
            return newest_removes(self._newest)
        rows = commits.actions("add", "remove")
        return rows.filter("remove.path IS NOT NULL").select("remove.*")

    def _adds_since_cached(self, cached: CachedAdds, skipping: Skipping | None) -> DataFrame:
        adds = _kept(cached.adds, skipping, self._stored_in_cache())
        if cached.version == self.log.segment.version:
            return adds
        keyed = self._keyed_above(cached.version)
        new = _kept(newest_adds(newest_file_actions(keyed)), skipping, NOTHING_STORED)
        survivors = self._surviving(adds, superseding_keys(keyed), are_adds=True)
        return survivors.unionByName(self._typed(new, with_json=False))

    def _unsuperseded(self, actions: DataFrame, *, are_adds: bool) -> DataFrame:
        """Return the adds or the removes of the checkpoint that no commit supersedes."""
        files = self.log.commits.distinct_files
        if files is None or files.num_rows > _MAX_NAMED_FILES:
            return self._surviving(actions, self._superseding, are_adds=are_adds)
        return surviving_actions_by_path(
            actions,
            added=files.filter(files["is_add"])["path"].to_pylist(),
            removed=files.filter(pc.invert(files["is_add"]))["path"].to_pylist(),
            are_adds=are_adds,
            table_root=self.log.table_root,
        )

    def _surviving(self, actions: DataFrame, keys: DataFrame, *, are_adds: bool) -> DataFrame:
        return surviving_actions(
            actions,
            keys,
            are_adds=are_adds,
            table_root=self.log.table_root,
            broadcast_keys=self.log.commits.broadcasts_keys,
        )

    def _stored(self) -> StoredFacts:
        """Describe the typed columns of the checkpoint."""
        if self.log.checkpoint is None:
            return NOTHING_STORED
        return stored_in_checkpoint(
            self.log.checkpoint.stored_add_type(),
            self.configuration.partition_keys,
            self.configuration.statistics,
        )

    def _stored_in_cache(self) -> StoredFacts:
        names = {field.name: field.name for field in self.configuration.partition_fields}
        return StoredFacts(names, self.configuration.statistics, has_json=False)

    def _typed(self, adds: DataFrame, *, with_json: bool) -> DataFrame:
        # Under names of their own, for a user may join one result of `add_files` with another.
        kept = [f"{name} AS {name}" for name in ADD.names if with_json or name != "stats"]
        partition_values = typed_partition_values(
            "partitionValues",
            self.configuration.partition_keys,
            time_zone=self.partition_time_zone,
        )
        return adds.selectExpr(
            *kept,
            f"{partition_values} AS {PARTITION_VALUES_PARSED}",
            f"{self._statistics(adds)} AS {STATS_PARSED}",
        )

    def _statistics(self, adds: DataFrame) -> str:
        statistics = self.configuration.statistics
        parsed = parsed_statistics("stats", statistics=statistics)
        if STATS_PARSED not in adds.columns:
            return parsed
        stored = self._stored().statistics
        assert stored is not None
        in_checkpoint = conformed(STATS_PARSED, stored=stored, wanted=statistics)
        return f"coalesce({in_checkpoint}, {parsed})"

    def _num_records(self, adds: DataFrame) -> str:
        in_json = num_records()
        if STATS_PARSED not in adds.columns:
            return in_json
        stored = self._stored().statistics
        if stored is None or NUM_RECORDS not in stored.names:
            return in_json
        return f"coalesce(CAST({STATS_PARSED}.{NUM_RECORDS} AS BIGINT), {in_json})"

    def _newest_by_key(self, action: str, fields: StructType, *, key: str) -> DataFrame:
        commits, checkpoint = self.log.commits, self._checkpoint_with(action)
        if checkpoint is None and not commits.may_hold(action):
            return empty_frame(self.log.spark, fields)
        rows = commits.actions(action)
        if checkpoint is not None:
            stored = checkpoint.actions(StructField(action, fields))
            stored = stored.selectExpr(f"{_FROM_CHECKPOINT}L AS version", action)
            rows = stored.unionByName(rows)
            rows = rows.coalesce(1) if self.log.is_small else rows
        return newest_by_key(rows, action=action, key=key)


def num_records() -> str:
    """Return SQL for the number of rows in an added file's JSON statistics."""
    return "try_cast(get_json_object(stats, '$.numRecords') AS BIGINT)"


def _add_field(
    checkpoint: CheckpointReader,
    stored: StoredFacts,
    fields: Sequence[StructField] = tuple(ADD.fields),
) -> StructField:
    """Return the field `add` with the typed columns that the checkpoint has."""
    typed = [StructField(STATS_PARSED, stored.statistics)] if stored.statistics else []
    add = checkpoint.stored_add_type()
    if add is not None and stored.partition_values:
        typed.append(add[PARTITION_VALUES_PARSED])
    return StructField("add", StructType([*fields, *typed]))


def _as_action(rows: DataFrame, action: StructField) -> DataFrame:
    """Pack the fields of an action into one column."""
    assert isinstance(action.dataType, StructType)
    return rows.select(F.struct(*action.dataType.names).alias(action.name))


def _kept(adds: DataFrame, skipping: Skipping | None, stored: StoredFacts) -> DataFrame:
    return adds if skipping is None else skipping.keep(adds, stored)
