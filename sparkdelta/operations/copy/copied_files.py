"""The files of a deep clone: copied, kept from an earlier clone, or removed.

References
----------
PROTOCOL.md#add-file-and-remove-file, PROTOCOL.md#deletion-vectors, PROTOCOL.md#data-files,
PROTOCOL.md#writer-requirements-for-row-tracking
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.log_files import data_directory
from sparkdelta.base.schema.action_schemas import ADD as ADD_TYPE
from sparkdelta.base.schema.file_key_frames import (
    absolute_path,
    deletion_vector_id,
    is_absolute,
    plain_path,
)
from sparkdelta.base.schema.sql_text import from_json_text
from sparkdelta.base.spark.driver import read_row
from sparkdelta.base.spark.row_groups import grouped
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.base.spark.worker_python import worker_python
from sparkdelta.base.spark.worker_storage import worker_files
from sparkdelta.base.storage.log_store import LogStore
from sparkdelta.operations.copy.cloned_table import NO_ROW_IDS
from sparkdelta.operations.copy.cloning_workers import (
    ADD,
    CLONED,
    COPY,
    FILE_TAG,
    VECTOR_TAG,
    CloneWriter,
    write_clone,
)
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.rows.orphans import report_orphans
from sparkdelta.table.rows.removed_files import remove_actions
from sparkdelta.table.snapshot.snapshot import Snapshot
from sparkdelta.table.snapshot.staging import Staging

_TASK_BYTES = 256 << 20  # of data files that one task copies
_FILE, _VECTOR, _SIZE, _IS_KEPT = "file", "vector", "size", "is_kept"
_PLAN = StructType(
    [
        StructField(ADD, StringType()),
        StructField(_SIZE, LongType()),
        StructField(COPY, StringType()),
        StructField("copy_vector", StringType()),
        StructField(_IS_KEPT, BooleanType()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFiles:
    """Copied and uncommitted files of a deep clone.

    Attributes
    ----------
    actions
        The actions of the commit in columns `add` and `remove`, one of them in each row.
    num_files, num_bytes
        The copied data files.
    places
        Of the copies, see `orphans.report_orphans`.
    """

    actions: DataFrame
    num_files: int
    num_bytes: int
    places: tuple[str, ...]


def copy_files(
    source: Snapshot, target: Snapshot | None, store: LogStore, stage: Staging
) -> CopiedFiles:
    """Copy new deletion vectors, and the data files of which the target has no copy.

    The snapshots are in the session of `stage`, a directory of temporary files; `store` is the
    target's.
    """
    plan = stage.compute_once(_plan(source, target), "plan", _PLAN)
    copied = plan.filter(f"NOT {_IS_KEPT}")
    totals = read_row(
        copied.agg(
            F.count("*").alias("files"),
            F.count_if(F.isnull(COPY)).alias("new_files"),
            F.coalesce(F.sum(F.when(F.isnull(COPY), F.col(_SIZE))), F.lit(0)).alias("bytes"),
        ),
        what="totals of files to copy",
    )
    directory = data_directory(str(uuid4()))
    place = f"{store.table_root}/{directory}/"
    with report_orphans(store.table_root, [place], store.table_files()):
        adds = _copied(source, store, stage, copied, directory, totals["files"], totals["bytes"])
    actions = adds
    if target is not None:
        kept = plan.filter(_IS_KEPT).select(COPY, "copy_vector")
        live = target.add_files().withColumn(
            "live_vector", F.expr(deletion_vector_id("deletionVector"))
        )
        is_kept = (F.col("path") == F.col(COPY)) & (F.col("live_vector") == F.col("copy_vector"))
        removed = remove_actions(live.join(kept, is_kept, "left_anti"))
        actions = adds.unionByName(removed, allowMissingColumns=True)
    return CopiedFiles(
        actions=actions,
        num_files=totals["new_files"],
        num_bytes=totals["bytes"],
        places=(place,) if totals["files"] else (),
    )


def _plan(source: Snapshot, target: Snapshot | None) -> DataFrame:
    """Return `_PLAN`: each file of the source, and the target's copy of it.

    The copy is kept as it is if neither file nor copy has got another deletion vector since.
    """
    files = source.add_files().selectExpr(
        "*",
        f"{plain_path(absolute_path('path', table_root=source.path))} AS {_FILE}",
        f"{deletion_vector_id('deletionVector')} AS {_VECTOR}",
    )
    if target is None:
        nothing = F.lit(None).cast("string")
        return files.selectExpr(f"{_add_text(source)} AS {ADD}", _SIZE).select(
            "*", nothing.alias(COPY), nothing.alias("copy_vector"), F.lit(False).alias(_IS_KEPT)
        )
    own_vector = deletion_vector_id("deletionVector")
    marked = (
        target.add_files()
        .filter(f"NOT {is_absolute('path')}")
        .selectExpr(
            f"tags['{FILE_TAG}'] AS copied_file",
            f"struct(path AS {COPY}, {own_vector} AS vector, size, "
            f"tags['{VECTOR_TAG}'] AS vectors, baseRowId, defaultRowCommitVersion) AS found",
        )
        .filter("copied_file IS NOT NULL")
    )
    copies = grouped(marked, ["copied_file"], F.min("found").alias("found"))
    is_copy = (F.col("copied_file") == F.col(_FILE)) & (F.col("found.size") == F.col(_SIZE))
    joined = files.join(copies, is_copy, "left")
    is_same = (
        f"found.vectors = concat({_VECTOR}, ' ', found.vector) "
        f"OR {_VECTOR} = found.vector AND ({_VECTOR} = '' OR startswith({_VECTOR}, 'i'))"
    )
    # A copy that is committed again keeps its row ids.
    own_ids = {name: f"found.{name}" for name in ("baseRowId", "defaultRowCommitVersion")}
    return joined.selectExpr(
        f"{_add_text(source, **own_ids)} AS {ADD}", _SIZE,
        f"found.{COPY} AS {COPY}", "found.vector AS copy_vector",
        f"coalesce({is_same}, false) AS {_IS_KEPT}",
    )  # fmt: skip


def _add_text(source: Snapshot, **facts: str) -> str:
    """Return SQL for the JSON of a source file's add action, without the source's row ids."""
    return f"to_json({add_fields(source.configuration.statistics, **{**NO_ROW_IDS, **facts})})"


def _copied(
    source: Snapshot,
    store: LogStore,
    stage: Staging,
    files: DataFrame,
    directory: str,
    num_files: int,
    num_bytes: int,
) -> DataFrame:
    spark, root = stage.spark, store.table_root
    tasks = max(num_bytes // _TASK_BYTES + 1, engine_of(spark).parallelism)
    writer = CloneWriter(
        files=worker_files(spark, source.path, source.log.options, root),
        source_root=source.path,
        target_root=root,
        directory=directory,
        version=source.version,
    )
    with worker_python(spark):
        written = write_clone(files.repartition(max(min(tasks, num_files), 1)), writer)
    rows = stage.compute_once(written, "copied", CLONED)
    return rows.select(F.expr(from_json_text(ADD, ADD_TYPE)).alias(ADD))
