"""The statement that changes the clustering columns of a table.

References
----------
PROTOCOL.md#clustered-table, PROTOCOL.md#writer-requirements-for-clustered-table
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.protocol_upgrades import upgraded_protocol
from sparkdelta.base.protocol.table_features import TableFeature
from sparkdelta.base.schema.column_alterations import path_text
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.declared_columns import check_clustering_columns
from sparkdelta.exceptions import DeltaError
from sparkdelta.table.definition.alteration import Alteration, alteration
from sparkdelta.table.definition.clustering import (
    clustering_columns,
    clustering_domain,
    logical_columns,
)
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.snapshot import Snapshot


def cluster_by(snapshot: Snapshot, names: Sequence[str]) -> Alteration:
    """Return the alteration of the clustering columns; existing files stay as they are."""
    table = snapshot.configuration
    if table.partition_columns:
        raise DeltaError.of(
            "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            path=snapshot.path,
            columns=table.partition_columns,
        )
    before = clustering_columns(snapshot)
    paths = check_clustering_columns(table.schema, names, ())
    physical = tuple(physical_path(table.schema, path, table.column_mapping) for path in paths)
    change = DefinitionChange(table, table)
    if physical != (before or ()):
        features = (TableFeature.CLUSTERING.value,)
        after = replace(table, protocol=upgraded_protocol(table.protocol, features))
        change = DefinitionChange(table, after, (clustering_domain(physical),), physical)
    shown = {
        "oldClusteringColumns": _shown(table, before or ()),
        "newClusteringColumns": _shown(table, physical),
    }
    return alteration(change, "CLUSTER BY", shown)


def _shown(table: TableConfiguration, physical: Collection[ColumnPath]) -> str:
    """Return the logical names of columns, as history has them."""
    return ",".join(map(path_text, logical_columns(table, physical)))
