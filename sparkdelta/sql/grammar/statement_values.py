"""Delta's statements as values: names are parsed, expressions and queries are the user's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sparkdelta.operations.merge.merge_clauses import Clause
from sparkdelta.operations.write.create_table import Creation

Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM."""

    target: Name
    alias: str | None
    where: str | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE."""

    target: Name


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE ... SET."""

    target: Name
    alias: str | None
    values: Mapping[str, str]
    where: str | None


@dataclass(frozen=True, slots=True)
class MergeAction:
    """A WHEN of a MERGE.

    Attributes
    ----------
    values
        None for ``*`` and DELETE.
    """

    kind: Clause
    condition: str | None
    values: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO.

    Attributes
    ----------
    queries
        WITH and its queries, which the source may name.
    """

    target: Name
    alias: str | None
    source: str
    source_alias: str | None
    condition: str
    actions: tuple[MergeAction, ...]
    evolves: bool
    queries: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """INSERT INTO and INSERT OVERWRITE.

    Attributes
    ----------
    alias, query_alias
        Of the table and of the rows, in the condition of REPLACE ON.
    columns
        None if the rows have all columns of the table.
    replace_using
        The columns by which the rows take the place of others.
    partition
        Texts of values by names of columns; None for columns of the rows.
    options
        The options clause after the table, ``WITH ('option' = 'value')``.
    """

    target: Name
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrites: bool = False
    replace_where: str | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    evolves: bool = False
    replace_using: tuple[str, ...] | None = None
    replace_on: str | None = None
    alias: str | None = None
    query_alias: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """DESCRIBE HISTORY."""

    target: Name
    limit: int | None


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """DESCRIBE DETAIL."""

    target: Name


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """DESCRIBE TABLE."""

    target: Name
    is_extended: bool


@dataclass(frozen=True, slots=True)
class DescribeColumn:
    """DESCRIBE [TABLE] [EXTENDED] table column."""

    target: Name
    column: Name
    is_extended: bool


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    """SHOW PARTITIONS.

    Attributes
    ----------
    partition
        The values that are asked for, as SQL text by column.
    """

    target: Name
    partition: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ShowColumns:
    """SHOW COLUMNS."""

    target: Name


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """SHOW TBLPROPERTIES.

    Attributes
    ----------
    key
        None for all properties.
    """

    target: Name
    key: str | None


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE."""

    target: Name
    where: str | None
    zorder_by: tuple[str, ...] | None
    is_full: bool


@dataclass(frozen=True, slots=True)
class Restore:
    """RESTORE."""

    target: Name
    version: int | None
    timestamp: str | None


@dataclass(frozen=True, slots=True)
class Reorg:
    """REORG TABLE ... APPLY (PURGE)."""

    target: Name
    where: str | None


@dataclass(frozen=True, slots=True)
class Refresh:
    """REFRESH TABLE."""

    target: Name


@dataclass(frozen=True, slots=True)
class CacheTable:
    """CACHE TABLE.

    Attributes
    ----------
    is_lazy
        True if the next query fills the cache.
    """

    target: Name
    is_lazy: bool
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UncacheTable:
    """UNCACHE TABLE."""

    target: Name


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement of Delta that is not implemented.

    Attributes
    ----------
    keywords
        Its name in errors.
    """

    target: Name
    keywords: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnText:
    """The definition of a column; type and expressions are text.

    Attributes
    ----------
    identity
        First value, step, and whether rows may have values.
    """

    name: str
    data_type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: tuple[int, int, bool] | None = None
    is_first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE and REPLACE TABLE.

    Attributes
    ----------
    provider
        After USING.
    query
        Of CREATE TABLE AS SELECT.
    """

    target: Name
    creation: Creation
    provider: str | None = None
    columns: tuple[ColumnText, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    query: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateLike:
    """CREATE TABLE ... LIKE.

    Attributes
    ----------
    provider
        After USING.
    """

    target: Name
    source: Name
    creation: Creation
    provider: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """CREATE TABLE ... CLONE."""

    target: Name
    source: Name
    deep: bool
    creation: Creation
    version: int | None = None
    timestamp: str | None = None
    properties: Mapping[str, str] | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """CONVERT TO DELTA.

    Attributes
    ----------
    partition_schema
        The text of PARTITIONED BY.
    """

    target: Name
    partition_schema: str | None
    collects_statistics: bool


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE."""

    target: Name


@dataclass(frozen=True, slots=True)
class Alter:
    """ALTER TABLE, as a method of `sparkdelta.AlterTable` with its arguments."""

    target: Name
    method: str
    values: tuple[Any, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangeColumns:
    """ALTER TABLE ... ALTER COLUMN of several columns, each as it would be alone."""

    target: Name
    changes: tuple[Alter, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    """ALTER TABLE ... RENAME TO."""

    target: Name
    name: Name


@dataclass(frozen=True, slots=True)
class SetLocation:
    """ALTER TABLE ... SET LOCATION."""

    target: Name
    location: str


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ALTER TABLE ... ADD COLUMNS."""

    target: Name
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True, slots=True)
class ReplaceColumns:
    """ALTER TABLE ... REPLACE COLUMNS."""

    target: Name
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True, slots=True)
class DropFeature:
    """ALTER TABLE ... DROP FEATURE."""

    target: Name
    name: str
    truncates_history: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuum:
    """VACUUM."""

    target: Name
    mode: str = "full"
    inventory: str | None = None
    retention_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Repair:
    """FSCK REPAIR TABLE."""

    target: Name
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Generate:
    """GENERATE."""

    target: Name
    mode: str


Statement: TypeAlias = (
    Delete
    | Truncate
    | Update
    | Merge
    | Insert
    | DescribeHistory
    | DescribeDetail
    | DescribeTable
    | DescribeColumn
    | ShowColumns
    | ShowPartitions
    | ShowProperties
    | Optimize
    | Restore
    | Reorg
    | CreateTable
    | CreateLike
    | Clone
    | Convert
    | DropTable
    | Alter
    | ChangeColumns
    | RenameTable
    | SetLocation
    | AddColumns
    | ReplaceColumns
    | DropFeature
    | Generate
    | Vacuum
    | Repair
    | Refresh
    | CacheTable
    | UncacheTable
    | Unsupported
)
