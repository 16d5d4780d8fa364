"""REPLACE USING and REPLACE ON: new rows replace the table's rows that they match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.base.schema.store_assignment import can_convert
from sparkdelta.base.schema.table_schema import field_named, quoted
from sparkdelta.base.spark.session_settings import store_assignment
from sparkdelta.exceptions import ColumnNotFoundError
from sparkdelta.table.definition.schema_changes import with_merged_schema
from sparkdelta.table.listing.table_names import column_name
from sparkdelta.table.rows.column_binding import with_values
from sparkdelta.table.rows.conformed_row_frames import WrittenColumn, column_value
from sparkdelta.table.rows.row_changes import unchanged_definition
from sparkdelta.table.snapshot.snapshot import Snapshot

SOURCE = "sparkdelta_source"
"""The alias of rows that have none."""
_TARGET, _MARK = "sparkdelta_target", "sparkdelta_deletes"


def replace_equal(
    rows: DataFrame,
    table: DeltaTable,
    snapshot: Snapshot,
    columns: Iterable[str],
    *,
    values: Mapping[str, str],
    time_zone: str,
    evolves: bool = False,
) -> None:
    """Delete the rows of a table that equal some rows, converted to its types, in some columns, and
    insert these, as one version; nulls equal nothing.

    Parameters
    ----------
    snapshot
        The table, before it gets columns of the rows.
    columns
        Names of columns of the table as SQL text.
    values
        As of `replace_matching`, over the rows under the alias `SOURCE`.
    time_zone
        In which values are converted.

    Raises
    ------
    ColumnNotFoundError
        The rows have no value for a column.
    DeltaError
        Nothing was committed; see `DeltaTable.merge`.
    """
    inserted = rows.alias(SOURCE).selectExpr(*(f"{text} AS {n}" for n, text in values.items()))
    schema = snapshot.schema
    if evolves:
        change = with_merged_schema(
            unchanged_definition(snapshot), inserted.schema, path=snapshot.path
        )
        schema = change.after.schema
    names, conversions, policy = [], {}, store_assignment()
    for text in columns:
        name = column_name(text)
        given, field = field_named(inserted.schema, name), field_named(schema, name)
        if given is None or field is None:
            raise ColumnNotFoundError(column=name, available=inserted.columns)
        if can_convert(given.dataType, field.dataType, policy=policy):
            column = WrittenColumn(field, given.name)
            value = column_value(column, inserted.schema, policy=policy)
            if value != quoted(given.name):
                conversions[given.name] = value
        names.append(quoted(given.name))
    replace_matching(
        with_values(inserted, conversions, time_zone=time_zone, policy=policy).alias(SOURCE),
        table.alias(_TARGET),
        " AND ".join(f"{_TARGET}.{name} = {SOURCE}.{name}" for name in names),
        values={name: f"{SOURCE}.{name}" for name in values},
        evolves=evolves,
    )


def replace_matching(
    rows: DataFrame,
    table: DeltaTable,
    condition: str,
    *,
    values: Mapping[str, str],
    evolves: bool = False,
) -> None:
    """Delete the rows of a table that some rows match, and insert these, as one version.

    Parameters
    ----------
    values
        Expressions to insert, by column of the table; the table fills the others.
    evolves
        True if columns that the table does not have are added.

    Raises
    ------
    DeltaError
        Nothing was committed; see `DeltaTable.merge`.
    """
    # Each row is there twice: one deletes what it matches, the other is inserted.
    both = rows.select("*", F.explode(F.array(F.lit(True), F.lit(False))).alias(_MARK))
    merge = table.merge(both, f"({condition}) AND {_MARK}").whenMatchedDelete()
    merge = merge.whenNotMatchedInsert(f"NOT {_MARK}", dict(values))
    (merge.withSchemaEvolution() if evolves else merge).execute()
