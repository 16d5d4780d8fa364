"""Check that the table features that affect writing data files are implemented.

See `table_features` for writing the log.

References
----------
PROTOCOL.md#writer-version-requirements, PROTOCOL.md#active-features
"""

from __future__ import annotations

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.table_features import TableFeature, check_writable, is_supported
from sparkdelta.exceptions import DeltaError

_NEVER_WRITTEN = (
    TableFeature.ICEBERG_WRITER_COMPAT_V1,
    TableFeature.ICEBERG_WRITER_COMPAT_V3,
)
"""Features with requirements on new data files that are not implemented."""


def check_data_writable(protocol: Protocol, *, path: str) -> None:
    """Raise if writing data files to the table is not implemented."""
    check_writable(protocol, path=path)
    missing = tuple(f.value for f in _NEVER_WRITTEN if is_supported(protocol, f))
    if missing:
        raise DeltaError.of("DELTA_WRITE_NOT_IMPLEMENTED", path=path, missing=missing)
