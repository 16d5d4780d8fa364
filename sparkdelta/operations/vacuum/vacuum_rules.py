"""The rules of VACUUM: the paths that it looks at, its retention period and its last run.

References
----------
PROTOCOL.md#vacuum-protocol-check, PROTOCOL.md#data-files
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping

from sparkdelta.base.protocol.file_paths import scheme_and_authority
from sparkdelta.base.protocol.log_files import WRITE_DIRECTORY, Version
from sparkdelta.base.protocol.retention import deleted_file_retention_ms
from sparkdelta.exceptions import DeltaError

LAST_VACUUM_INFO = "_last_vacuum_info"
"""The file in `_delta_log` about the last run, as delta-spark names it."""

HOUR_MS = 3_600_000

_UNIFORM_FORMATS = "delta.universalFormat.enabledFormats"
_COVERED_VERSION = "latestCommitVersionOutsideOfRetentionWindow"
_LOGGED_SCHEMES = frozenset({"wasb", "wasbs", "abfs", "abfss", "adl", "gs", "file", "hdfs"})


def visible_paths(partition_columns: Collection[str], properties: Mapping[str, str]) -> str:
    """Return the regular expression, of Python and of Spark, of the paths below a table's root that
    VACUUM does not leave alone.

    It leaves alone what begins with ``_`` or ``.``, but for change data, indexes, directories of
    partitions, and what a write of this package left when its process died. It also leaves alone
    Iceberg's directory ``metadata`` if the properties ask for Iceberg metadata.

    Parameters
    ----------
    partition_columns
        Logical and physical names; a directory ``_c=1`` belongs to column ``_c``.

    Examples
    --------
    >>> written = "_sparkdelta-3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
    >>> pattern = re.compile(visible_paths(["_c"], {}))
    >>> paths = ("_log/f", "_c=1/f", "_change_data/f", "_temporary/0", f"{written}/_temporary/0")
    >>> [pattern.match(path) is not None for path in paths]
    [False, True, True, False, True]
    """
    known = "|".join(
        ["_delta_index", "_change_data", *(f"{re.escape(c)}=" for c in partition_columns)]
    )
    is_uniform = "iceberg" in properties.get(_UNIFORM_FORMATS, "").lower()
    hidden = "[_.]|metadata(?![^/])" if is_uniform else "[_.]"
    name = f"(?:(?={known})|(?!{hidden}))[^/]*"
    # Spark keeps new files in directories `_temporary` until a write is complete.
    written = f"{WRITE_DIRECTORY}(?:/(?:_temporary(?![^/])|{name}))*"
    return rf"^(?:{name}/)*(?:{written}|{name})(?![\s\S])"


def vacuum_retention_ms(
    hours: float | None,
    properties: Mapping[str, str],
    *,
    path: str,
    is_checked: bool,
    raises_short: bool = False,
) -> int:
    """Return the retention period of a run in milliseconds.

    Parameters
    ----------
    hours
        By default that of `delta.deletedFileRetentionDuration`.
    is_checked
        True if it must not be shorter than the property.
    raises_short
        True if one that is shorter, but not 0, is raised to the property's, as in delta-spark.

    Examples
    --------
    >>> vacuum_retention_ms(None, {}, path="t", is_checked=True) // HOUR_MS
    168
    """
    least = deleted_file_retention_ms(properties)
    if hours is None:
        return least
    if not 0 <= hours < math.inf:
        raise DeltaError.of("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", path=path, hours=hours)
    wanted = int(hours * HOUR_MS)
    if raises_short and hours:
        return max(wanted, least)
    if is_checked and wanted < least:
        raise DeltaError.of(
            "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            path=path,
            hours=hours,
            least_hours=math.ceil(least / HOUR_MS),
        )
    return wanted


def is_logged(table_root: str) -> bool:
    """Return True if delta-spark commits the start and end of VACUUM to storage of this kind."""
    scheme = scheme_and_authority(table_root).partition(":")[0].lower()
    return scheme in _LOGGED_SCHEMES


def last_vacuum_bytes(version: Version | None) -> bytes:
    """Serialize the newest version of which VACUUM has deleted all removed files.

    Examples
    --------
    >>> last_vacuum_bytes(5)
    b'{"latestCommitVersionOutsideOfRetentionWindow":5}'
    """
    document = {} if version is None else {_COVERED_VERSION: version}
    return json.dumps(document, separators=(",", ":")).encode()


def parse_last_vacuum(content: bytes) -> Version | None:
    """Parse `last_vacuum_bytes`; None if it names no version or is not valid.

    Examples
    --------
    >>> parse_last_vacuum(last_vacuum_bytes(5)), parse_last_vacuum(b"{}"), parse_last_vacuum(b"x")
    (5, None, None)
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    version = document.get(_COVERED_VERSION) if isinstance(document, dict) else None
    return version if type(version) is int and version >= 0 else None
