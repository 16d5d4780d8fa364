"""Statements that add and drop CHECK constraints.

References
----------
PROTOCOL.md#check-constraints
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.protocol.settable_properties import CONSTRAINT
from sparkdelta.base.schema.table_constraints import Constraint, RowRules
from sparkdelta.base.spark.driver import count_rows, read_rows
from sparkdelta.base.spark.session_settings import rule_evaluation
from sparkdelta.base.spark.spark_engine import engine_of
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.table.commit.conflict_rules import ReadSet
from sparkdelta.table.definition.alteration import Alteration, alteration, with_schema
from sparkdelta.table.definition.definition_change import DefinitionChange
from sparkdelta.table.definition.rule_expressions import check_expressions
from sparkdelta.table.log.table_configuration import TableConfiguration
from sparkdelta.table.rows.conformed_row_frames import is_not_true, row_text
from sparkdelta.table.snapshot.snapshot import Snapshot

MAX_SHOWN_ROWS = 3
"""Up to this many rows that violate a new constraint are shown."""

_MAX_ROW_LENGTH = 500


def add_constraint(snapshot: Snapshot, name: str, expression: str) -> Alteration:
    """Return the alteration that adds a CHECK constraint, after validating existing rows."""
    table, spark = snapshot.configuration, snapshot.log.spark
    if not name:
        raise InvalidArgumentError(argument="name", problem="it is empty")
    key = _own_key(table, name)
    if key is not None:
        raise DeltaError.of(
            "DELTA_CONSTRAINT_ALREADY_EXISTS", name=name, expression=table.properties[key]
        )
    with engine_of(spark).write_session() as session:
        check_expressions(session, table.schema, RowRules((Constraint(name, expression),)))
        _check_rows(snapshot.in_session(session), expression)
    properties = {**table.properties, f"{CONSTRAINT}{name.lower()}": expression}
    after = with_schema(table, table.schema, properties=properties)
    shown = {"name": name, "expr": expression}
    read = ReadSet(whole_table=True)
    return alteration(DefinitionChange(table, after), "ADD CONSTRAINT", shown, read)


def drop_constraint(snapshot: Snapshot, name: str, *, if_exists: bool = False) -> Alteration:
    """Return the alteration that drops a CHECK constraint."""
    table = snapshot.configuration
    existing = _own_key(table, name)
    if existing is None:
        if not if_exists:
            raise DeltaError.of("DELTA_CONSTRAINT_DOES_NOT_EXIST", name=name, path=snapshot.path)
        return alteration(DefinitionChange(table, table), "DROP CONSTRAINT", {"name": name})
    properties = {key: value for key, value in table.properties.items() if key != existing}
    after = with_schema(table, table.schema, properties=properties)
    shown = {"name": name, "expr": table.properties[existing], "existed": "true"}
    return alteration(DefinitionChange(table, after), "DROP CONSTRAINT", shown)


def _own_key(table: TableConfiguration, name: str) -> str | None:
    """Return the property that holds the constraint of a name, in any case."""
    lower_key = f"{CONSTRAINT}{name}".lower()
    return next((key for key in table.properties if key.lower() == lower_key), None)


def _check_rows(snapshot: Snapshot, expression: str) -> None:
    """Count the rows that violate a condition on executors; read some only if there are any."""
    violating = _violating_rows(snapshot, expression)
    count = count_rows(violating, what="number of rows that violate a constraint")
    if not count:
        return
    row = row_text(snapshot.schema)
    some = violating.select(F.left(row, F.lit(_MAX_ROW_LENGTH)).alias("row")).limit(MAX_SHOWN_ROWS)
    rows = read_rows(some, what="rows that violate a constraint", bound=MAX_SHOWN_ROWS)
    raise DeltaError.of(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        path=snapshot.path,
        expression=expression,
        num_rows=count,
        rows=tuple(row["row"] for row in rows),
    )


def _violating_rows(snapshot: Snapshot, expression: str) -> DataFrame:
    rows = snapshot.scan().rows_with()
    engine = engine_of(rows.sparkSession)
    with engine.in_table_session(rows, rule_evaluation()) as ours:
        violating = ours.filter(is_not_true(F.expr(expression)))
    return engine.rebind_to_session(violating)
