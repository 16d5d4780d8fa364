"""REPLACE USING and REPLACE ON: new rows replace the table's rows that they match."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.api.delta_table import DeltaTable
from sparkdelta.base.schema.table_schema import quoted

SOURCE = "sparkdelta_source"
"""The alias of rows that have none."""
_TARGET, _MARK = "sparkdelta_target", "sparkdelta_deletes"


def replace_equal(
    rows: DataFrame,
    table: DeltaTable,
    names: Mapping[str, str],
    *,
    values: Mapping[str, str],
    evolves: bool = False,
) -> None:
    """Delete the rows of a table that equal some rows in some columns, and insert these, as one
    version; nulls equal nothing.

    Parameters
    ----------
    names
        Columns of the rows by columns of the table, neither of them quoted.
    """
    condition = " AND ".join(
        f"{_TARGET}.{quoted(name)} = {SOURCE}.{quoted(given)}" for name, given in names.items()
    )
    target = table.alias(_TARGET)
    replace_matching(rows.alias(SOURCE), target, condition, values=values, evolves=evolves)


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
