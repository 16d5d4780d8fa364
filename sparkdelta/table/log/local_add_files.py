"""Add actions as local data of the driver."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkdelta.base.protocol.file_actions import AddFile
from sparkdelta.base.protocol.wide_statistics import num_records
from sparkdelta.base.schema.action_schemas import ADD as ADD_TYPE
from sparkdelta.base.schema.file_key_frames import absolute_path, plain_path
from sparkdelta.base.schema.sql_text import from_json_text
from sparkdelta.base.spark.local_data import local_frame
from sparkdelta.table.log.commit_line_frames import add_fields
from sparkdelta.table.vectors.row_position_frames import file_key

FILE_KEY, ADD = "file_key", "add"
_TEXTS = StructType([StructField(FILE_KEY, LongType()), StructField(ADD, StringType())])


@dataclass(frozen=True, eq=False)
class LocalAddFiles:
    """A list of add actions as local data.

    Attributes
    ----------
    texts
        The rows of `keyed_adds`.
    """

    spark: SparkSession
    texts: pa.Table

    @cached_property
    def values(self) -> tuple[AddFile, ...]:
        return tuple(AddFile.from_dict(json.loads(text)) for text in self.texts[ADD].to_pylist())

    @property
    def num_rows(self) -> int | None:
        """The rows of the files, deleted ones included; None if statistics lack any."""
        counts = [num_records(add.stats) for add in self.values]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def keyed(self) -> DataFrame:
        """The actions in the columns of `keyed_adds`."""
        return local_frame(self.spark, self.texts, _TEXTS)

    @cached_property
    def frame(self) -> DataFrame:
        """The fields of the actions."""
        return self.keyed.selectExpr(f"{from_json_text(ADD, ADD_TYPE)} AS {ADD}").select(f"{ADD}.*")

    def united(self, other: LocalAddFiles) -> LocalAddFiles:
        """Return the union of these add actions and others, with each file once."""
        is_here = pc.is_in(other.texts[FILE_KEY], self.texts[FILE_KEY].combine_chunks())
        others = other.texts.filter(pc.invert(is_here))
        return LocalAddFiles(self.spark, pa.concat_tables([self.texts, others]))


def keyed_adds(adds: DataFrame, *, table_root: str, statistics: StructType) -> DataFrame:
    """Return add actions as JSON without a wrapper: file_key LONG, add STRING.

    `table.vectors.row_position_frames.file_key` defines the key.

    Parameters
    ----------
    adds
        The adds of `TableState.adds` with `stats`.
    statistics
        The type of `stats_parsed`.
    """
    file = absolute_path("path", table_root=table_root)
    texts = adds.selectExpr(f"{file} AS file", f"to_json({add_fields(statistics)}) AS {ADD}")
    return texts.selectExpr(f"{file_key(plain_path('file'))} AS {FILE_KEY}", ADD)
