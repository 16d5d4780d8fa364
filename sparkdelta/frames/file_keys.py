"""The identity of a logical file: its canonical path and the unique id of its deletion vector."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from sparkdelta.protocol.file_paths import scheme_and_authority


def canonical_path(path: Column, *, table_root: str) -> Column:
    """Equal for all spellings of one path in the log; see `protocol.file_paths.canonical_path`.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    decoded = decoded_path(path)
    root, slash = scheme_and_authority(table_root), F.lit("/")
    return (
        F.when(F.startswith(path, F.lit("/")), F.concat(F.lit(f"{root}/"), F.ltrim(decoded, slash)))
        .when(F.startswith(path, F.lit("file:/")), F.regexp_replace(decoded, "^file:/+", "file:/"))
        .otherwise(decoded)
    )


def decoded_path(path: Column) -> Column:
    """The path that a URI of the log stands for; see `protocol.file_paths.decode_path`.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    # url_decode is for forms: it takes "+" for a blank. A malformed escape stays as it is.
    return F.when(
        F.contains(path, F.lit("%")),
        F.coalesce(F.try_url_decode(F.replace(path, F.lit("+"), F.lit("%2B"))), path),
    ).otherwise(path)


def deletion_vector_id(deletion_vector: Column) -> Column:
    """`deletionVector.uniqueId`, and an empty string where there is no deletion vector.

    References
    ----------
    PROTOCOL.md#derived-fields
    """
    offset = deletion_vector["offset"]
    return F.coalesce(
        F.concat(
            deletion_vector["storageType"],
            deletion_vector["pathOrInlineDv"],
            F.when(offset.isNotNull(), F.concat(F.lit("@"), offset.cast("string"))).otherwise(""),
        ),
        F.lit(""),
    )


def absolute_path(path: Column, *, table_root: str) -> Column:
    """Where a file of the log is: its path, decoded, under the table's root unless it is absolute.

    References
    ----------
    PROTOCOL.md#add-file-and-remove-file
    """
    canonical = canonical_path(path, table_root=table_root)
    is_absolute = F.rlike(path, F.lit("^(/|[a-zA-Z][a-zA-Z0-9+.-]*:/)"))
    return F.when(is_absolute, canonical).otherwise(F.concat(F.lit(f"{table_root}/"), canonical))
