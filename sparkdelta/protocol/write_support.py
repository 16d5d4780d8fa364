"""What new data must respect in a table, and which of it is implemented.

`table_features` tells whose log can be written at all; this is about rows and their files.

References
----------
PROTOCOL.md#writer-version-requirements, PROTOCOL.md#active-features
"""

from __future__ import annotations

from sparkdelta.exceptions import WriteNotImplementedError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.table_features import check_writable, is_supported

_NEVER_WRITTEN = (
    "collations", "materializePartitionColumns", "icebergCompatV3", "icebergWriterCompatV1",
    "icebergWriterCompatV3",
)  # fmt: skip
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
    missing = [name for name in _NEVER_WRITTEN if is_supported(protocol, name)]
    if missing:
        raise WriteNotImplementedError(path=path, missing=tuple(missing))
