"""The contents of a checkpoint as DataFrames; no file action passes through the driver.

References
----------
PROTOCOL.md#checkpoints-1
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.base.protocol.retention import deleted_file_retention_ms, transaction_retention_ms
from sparkdelta.base.protocol.table_features import (
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    TableFeature,
    is_supported,
)
from sparkdelta.base.protocol.table_properties import is_off
from sparkdelta.base.schema.checkpoint_schema import CheckpointSchema
from sparkdelta.operations.checkpoint.checkpoint_options import CheckpointOptions
from sparkdelta.operations.checkpoint.checkpoint_row_frames import (
    add_rows,
    checkpoint_rows,
    domain_rows,
    remove_rows,
    transaction_rows,
)
from sparkdelta.table.checkpoint.checkpoint_kind_rules import (
    WRITE_STATS_AS_JSON,
    WRITE_STATS_AS_STRUCT,
)
from sparkdelta.table.checkpoint.checkpoint_layout_frames import FileOrder, leading_paths
from sparkdelta.table.definition.clustering import clustering_columns
from sparkdelta.table.listing.line_reader import local_lines
from sparkdelta.table.listing.log_line_frames import parse_log_lines
from sparkdelta.table.log.state import TableState
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot

REMOVES_PER_SIDECAR = 250_000
"""The approximate number of tombstones in a sidecar; they have sidecars of their own."""

ROW_GROUP_BYTES = 4 * 1024 * 1024
"""The size in memory of the row groups of clustered checkpoint files: some 25,000 files each, which
a pushed predicate skips."""

_TIGHT_BOUNDS = "tightBounds"


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """The rows of a version's checkpoint.

    Attributes
    ----------
    snapshot
        Of a `log_session`.
    now_ms
        The time by which tombstones and transactions are expired.
    """

    snapshot: Snapshot
    schema: CheckpointSchema
    order: FileOrder
    options: CheckpointOptions
    now_ms: int

    @classmethod
    def of(
        cls, snapshot: Snapshot, options: CheckpointOptions, *, now_ms: int
    ) -> CheckpointContents:
        """Return the contents of a snapshot's checkpoint, by the table's properties and the
        options.
        """
        schema = checkpoint_schema(snapshot.configuration)
        leading = leading_paths(schema.statistics, clustering_columns(snapshot) or ())
        order = FileOrder(schema, leading, snapshot.state.partition_time_zone)
        return cls(snapshot, schema, order, options, now_ms)

    @property
    def fingerprint(self) -> str:
        """Identifies the schema and layout; only sidecars written with the same can be reused."""
        columns = self.order.leading if self.is_clustered else ()
        return self.schema.fingerprint(self.options.layout, columns)

    @property
    def is_clustered(self) -> bool:
        """True if files are ordered by partition values and statistics."""
        return self.options.layout == "clustered"

    @property
    def known_num_adds(self) -> int | None:
        """The number of live files in the version checksum; None if it is not known."""
        checksum = self.snapshot.version_checksum
        return None if checksum is None else checksum.num_files

    @property
    def expired_at_ms(self) -> int:
        """The latest deletion time, in milliseconds since the epoch, of tombstones that are
        dropped.
        """
        return self.now_ms - deleted_file_retention_ms(self.snapshot.properties)

    @property
    def parquet_options(self) -> dict[str, str]:
        """The options with which Spark writes files with adds."""
        options = {
            f"parquet.enable.dictionary#{leaf}": "false" for leaf in self.schema.rarely_repeated
        }
        if self.is_clustered:
            options["parquet.block.size"] = str(ROW_GROUP_BYTES)
        return {"compression": self.options.compression, **options}

    def adds(self, state: TableState) -> DataFrame:
        """Return the live files: one column `add`."""
        adds, stored = state.adds_as_stored()
        return add_rows(adds, schema=self.schema, stored=stored, time_zone=self.order.time_zone)

    def removes(self, state: TableState) -> DataFrame:
        """Return the tombstones that are not expired: one column `remove`."""
        return remove_rows(state.removes(), expired_at_ms=self.expired_at_ms)

    def table_actions(
        self, columns: StructType, more: Sequence[Mapping[str, object]] = ()
    ) -> DataFrame:
        """Return all actions but file actions, in a DataFrame with these columns.

        Parameters
        ----------
        more
            Actions in their wire form to begin with.
        """
        state, properties = self.snapshot.state, self.snapshot.properties
        keeps_for = transaction_retention_ms(properties)
        expired = None if keeps_for is None else self.now_ms - keeps_for
        opening = [*more, *self._opening()]
        names = {name for action in opening for name in action}
        rows = [self._local(opening, StructType([f for f in columns.fields if f.name in names]))]
        if state.may_hold("txn"):
            rows.append(transaction_rows(state.transactions(), expired_at_ms=expired))
        if state.may_hold("domainMetadata"):
            rows.append(domain_rows(state.domain_metadata()))
        return checkpoint_rows(*rows, columns=columns)

    def _opening(self) -> list[dict[str, object]]:
        protocol = self.snapshot.protocol.to_dict()
        if self.snapshot.protocol.min_reader_version < READER_FEATURES_VERSION:
            protocol.pop("readerFeatures", None)
        if self.snapshot.protocol.min_writer_version < WRITER_FEATURES_VERSION:
            protocol.pop("writerFeatures", None)
        return [{"protocol": protocol}, {"metaData": self.snapshot.metadata.to_dict()}]

    def _local(self, actions: Sequence[Mapping[str, object]], columns: StructType) -> DataFrame:
        lines = [json.dumps(action) for action in actions]
        version = pa.repeat(pa.scalar(self.snapshot.version, pa.int64()), len(lines))
        table = pa.table({"version": version, "line": pa.array(lines, pa.string())})
        frame = local_lines(self.snapshot.log.spark, table).coalesce(1)
        return parse_log_lines(frame, actions=columns).drop("version")


def checkpoint_schema(configuration: TableConfiguration) -> CheckpointSchema:
    """Return the types of a table's checkpoint."""
    has_vectors = is_supported(configuration.protocol, TableFeature.DELETION_VECTORS)
    statistics = configuration.statistics.fields
    return CheckpointSchema(
        StructType([f for f in statistics if has_vectors or f.name != _TIGHT_BOUNDS]),
        tuple(configuration.partition_keys),
        with_json=not is_off(configuration.properties, WRITE_STATS_AS_JSON),
        with_struct=not is_off(configuration.properties, WRITE_STATS_AS_STRUCT),
    )
