"""What new data must respect in a table, and which of it is implemented.

`table_features` tells whose log can be written at all; this is about rows and their files.

References
----------
PROTOCOL.md#writer-version-requirements, PROTOCOL.md#active-features
"""

from __future__ import annotations

from sparkdelta.exceptions import WriteNotImplementedError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.table_features import TableFeature, check_writable, is_supported

_NEVER_WRITTEN = (
    TableFeature.COLLATIONS,
    TableFeature.MATERIALIZE_PARTITION_COLUMNS,
    TableFeature.ICEBERG_COMPAT_V3,
    TableFeature.ICEBERG_WRITER_COMPAT_V1,
    TableFeature.ICEBERG_WRITER_COMPAT_V3,
)
"""Whoever writes data into a table with one of these must do something for it."""


def check_data_writable(protocol: Protocol, *, path: str) -> None:
    """Refuse a table that asks more of new data than is implemented.

    Raises
    ------
    WriteNotImplementedError
        Naming everything that is missing.
    DeltaError
        What `check_writable` raises.

    References
    ----------
    PROTOCOL.md#writer-version-requirements
    """
    check_writable(protocol, path=path)
    missing = tuple(f.value for f in _NEVER_WRITTEN if is_supported(protocol, f))
    if missing:
        raise WriteNotImplementedError(path=path, missing=missing)
