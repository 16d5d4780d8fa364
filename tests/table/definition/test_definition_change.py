"""Changes of a table that commits make; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from sparkdelta.exceptions import InvalidArgumentError
from sparkdelta.table.commit.staged_commit_rules import StagedActions
from sparkdelta.table.definition.definition_change import (
    DefinitionChange,
    TableDescription,
    created_table,
    replaced_table,
)
from sparkdelta.table.definition.schema_changes import with_merged_schema, with_overwritten_schema

ID = StructField("id", IntegerType())
NAME = StructField("name", StringType())
TABLE = TableDescription(columns=(ID, NAME))
CLUSTERED = replace(TABLE, clustering_columns=("id",))
MAPPED = replace(TABLE, properties={"delta.columnMapping.mode": "name"})


def test_a_created_table_has_all_its_actions() -> None:
    """PROTOCOL.md#change-metadata: the first version has protocol and metaData."""
    change = created_table(CLUSTERED)
    assert change.actions == StagedActions(
        protocols=(change.after.protocol,),
        metadata=(change.after.metadata,),
        domains=change.domains,
    )
    assert [domain.domain for domain in change.domains] == ["delta.clustering"]
    assert ("id",) in change.statistics_columns


@pytest.mark.parametrize("description", [TABLE, CLUSTERED, MAPPED])
def test_a_table_that_stays_has_no_actions(description: TableDescription) -> None:
    table = created_table(description).after
    change = DefinitionChange(table, table)
    assert change.actions == StagedActions()
    assert with_merged_schema(change, StructType([ID]), path="t").actions == StagedActions()
    rows = StructType([ID, NAME])
    assert with_overwritten_schema(change, rows, ()).actions == StagedActions()


@pytest.mark.parametrize("description", [TABLE, MAPPED])
def test_a_new_column_changes_the_metadata_alone(description: TableDescription) -> None:
    """PROTOCOL.md#change-metadata"""
    table = created_table(description).after
    rows = StructType([StructField("more", LongType())])
    change = with_merged_schema(DefinitionChange(table, table), rows, path="t")
    assert change.actions == StagedActions(metadata=(change.after.metadata,))
    assert change.after.schema.names == ["id", "name", "more"]
    assert change.after.metadata.id == table.metadata.id


def test_a_replaced_table_keeps_id_and_features() -> None:
    """PROTOCOL.md#supported-features: a protocol never loses one."""
    before = created_table(CLUSTERED).after
    change = replaced_table(before, replace(TABLE, comment="replaced"))
    assert change.actions == StagedActions(
        metadata=(change.after.metadata,), domains=change.domains
    )
    assert change.after.metadata.id == before.metadata.id
    assert change.after.protocol == before.protocol
    [domain] = change.domains
    assert domain.document(path="t", version=1)["clusteringColumns"] == []
    with pytest.raises(InvalidArgumentError):
        replaced_table(before, replace(TABLE, partition_by=("id",)))


def test_clustering_columns_are_kept() -> None:
    """PROTOCOL.md#writer-requirements-for-clustered-table"""
    created = created_table(CLUSTERED)
    change = DefinitionChange(
        created.after, created.after, clustering_columns=created.clustering_columns
    )
    with pytest.raises(InvalidArgumentError):
        with_overwritten_schema(change, StructType([NAME]), ())
