"""The actions' types have the fields of the protocol's text."""

from __future__ import annotations

from sparkdelta.base.schema.action_schemas import ACTIONS, ADD, REMOVE, actions


def test_fields_of_file_actions() -> None:
    """PROTOCOL.md#add-file-and-remove-file"""
    assert ADD.names == [
        "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags",
        "deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
    ]  # fmt: skip
    assert REMOVE.names == [
        "path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues",
        "size", "deletionVector", "baseRowId", "defaultRowCommitVersion",
    ]  # fmt: skip
    assert ADD["deletionVector"].dataType.names == [
        "storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality",
    ]  # fmt: skip


def test_every_field_may_be_missing() -> None:
    """PROTOCOL.md#protocol-evolution: a reader does not break on what it does not find."""
    assert all(field.nullable for field in ACTIONS)
    assert all(inner.nullable for field in ACTIONS for inner in field.dataType)


def test_a_choice_of_actions_keeps_their_order() -> None:
    assert actions("txn", "add").names == ["add", "txn"]
