"""The columns that a table is clustered by.

References
----------
PROTOCOL.md#clustered-table, PROTOCOL.md#writer-requirements-for-clustered-table
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkdelta.base.protocol.actions import DomainMetadata
from sparkdelta.base.protocol.column_names import ColumnPath
from sparkdelta.base.protocol.exact_json import json_text
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.column_mapping import physical_path
from sparkdelta.base.schema.type_folds import fields_within
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.snapshot.listed_actions import find_domain
from sparkdelta.table.snapshot.snapshot import Snapshot

CLUSTERING_DOMAIN = "delta.clustering"


def clustering_columns(snapshot: Snapshot) -> tuple[ColumnPath, ...] | None:
    """Read the physical paths of the clustering columns; None if the table is not clustered.

    A column in the domain is a list of names, or one name, as in the protocol's own example.
    """
    if not is_supported(snapshot.protocol, TableFeature.CLUSTERING):
        return None
    domain = find_domain(snapshot, CLUSTERING_DOMAIN)
    if domain is None:
        return None
    columns = domain.document(path=snapshot.path, version=snapshot.version).get("clusteringColumns")
    if not isinstance(columns, list):
        return ()
    return tuple((name,) if isinstance(name, str) else tuple(name) for name in columns)


def clustering_domain(columns: Iterable[ColumnPath]) -> DomainMetadata:
    """Return the domain of a table that is clustered by columns with these physical paths."""
    document = {
        "clusteringColumns": [list(path) for path in columns],
        "domainName": CLUSTERING_DOMAIN,
    }
    return DomainMetadata(CLUSTERING_DOMAIN, json_text(document))


def logical_columns(
    table: TableConfiguration, physical: Iterable[ColumnPath]
) -> tuple[ColumnPath, ...]:
    """Return the logical paths of columns, given their physical paths."""
    logical = {
        physical_path(table.schema, part.path, table.column_mapping): part.path
        for part in fields_within(table.schema)
        if not part.repeated
    }
    return tuple(logical.get(path, path) for path in physical)
