"""SQL for the paths of deletion vector files."""

from __future__ import annotations

from sparkdelta.schema.sql_text import text_literal

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def vector_uri(vector: str) -> str:
    """Return SQL for the path of a deletion vector's file as a URI (STRING), relative to the
    table's root or absolute; null for an inline vector or none.

    See `protocol.deletion_vectors.dv_file_name`.

    Parameters
    ----------
    vector
        SQL expression of type STRUCT.

    References
    ----------
    PROTOCOL.md#derived-fields
    """
    name = f"{vector}.pathOrInlineDv"
    place = f"instr({text_literal(_Z85)}, substring({name}, length({name}) - 20 + 5 * g + i, 1))"
    number = f"aggregate(sequence(1, 5), 0L, (sum, i) -> sum * 85 + {place} - 1)"
    digits = f"concat_ws('', transform(sequence(0, 3), g -> lpad(hex({number}), 8, '0')))"
    groups = "^(.{8})(.{4})(.{4})(.{4})(.{12})$"
    uuid = f"regexp_replace(lower({digits}), '{groups}', '$1-$2-$3-$4-$5')"
    prefix = (
        f"CASE WHEN length({name}) > 20 THEN concat(left({name}, length({name}) - 20), '/') "
        "ELSE '' END"
    )
    escaped = f"replace({prefix}, '%', '%25')"  # a plain path, where others are URIs
    return (
        f"CASE {vector}.storageType "
        f"WHEN 'u' THEN concat({escaped}, 'deletion_vector_', {uuid}, '.bin') "
        f"WHEN 'p' THEN {name} END"
    )
