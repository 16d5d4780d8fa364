"""SQL for the paths of deletion vector files.

References
----------
PROTOCOL.md#derived-fields
"""

from __future__ import annotations

from sparkdelta.table.log.absolute_file_frames import encoded_path, vector_file


def vector_uri(vector: str) -> str:
    """Return SQL for the URI (STRING) of a deletion vector's file, relative or absolute.

    Null for an inline vector, or without one.
    """
    name = f"{vector}.pathOrInlineDv"
    return (
        f"CASE {vector}.storageType WHEN 'u' THEN {encoded_path(vector_file(name))} "
        f"WHEN 'p' THEN {name} END"
    )
