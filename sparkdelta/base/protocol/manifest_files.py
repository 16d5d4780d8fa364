"""Symlink manifests: lists of a table's data files for engines that read them as symlinks of Hive.

A manifest is a text file with the absolute path of a data file in each line. A partitioned table
has one in each partition directory below MANIFESTS.

References
----------
PROTOCOL.md#data-files
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.partition_values import NO_VALUE, escaped_name
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.protocol.table_properties import is_on
from sparkdelta.exceptions import DeltaError

MANIFESTS = "_symlink_format_manifest"
MANIFEST_NAME = "manifest"
ENABLE_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"


def partition_directory(names: Sequence[str], values: Sequence[str | None]) -> str:
    """Return the directory of a partition, as Hive and Spark name it.

    Examples
    --------
    >>> partition_directory(["p", "q"], ["a/b c", None])
    'p=a%2Fb c/q=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{escaped_name(name)}={escaped_name(value) if value else NO_VALUE}"
        for name, value in zip(names, values, strict=True)
    )


def check_manifest_properties(protocol: Protocol, configuration: Mapping[str, str]) -> None:
    """Raise if a table has both manifests and deletion vectors; manifests lack these."""
    has_vectors = is_supported(protocol, TableFeature.DELETION_VECTORS)
    if is_on(configuration, ENABLE_MANIFESTS) and (
        has_vectors and is_on(configuration, "delta.enableDeletionVectors")
    ):
        raise DeltaError.of("DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED")


def touched_partitions(
    lines: bytes, names: Sequence[str], most: int
) -> set[tuple[str | None, ...]] | None:
    """Return the partition values of the files that a commit, `lines`, adds or removes.

    None if they are more than `most`, if an action lacks them, or if the commit changes the
    metadata.
    """
    found = set()
    for line in lines.splitlines():
        document = json.loads(line)
        if "metaData" in document:
            return None
        action = document.get("add") or document.get("remove")
        if action is None:
            continue
        values = action.get("partitionValues")
        if values is None:
            return None
        found.add(tuple(values.get(name) for name in names))
        if len(found) > most:
            return None
    return found
