"""Constraints, column defaults, generated columns and identity columns of a table.

References
----------
PROTOCOL.md#check-constraints, PROTOCOL.md#column-invariants, PROTOCOL.md#generated-columns,
PROTOCOL.md#default-columns, PROTOCOL.md#identity-columns
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.types import LongType, StructField, StructType

from sparkdelta.base.protocol.actions import Protocol
from sparkdelta.base.protocol.protocol_upgrades import (
    FIELD_FEATURES,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    INVARIANTS,
)
from sparkdelta.base.protocol.settable_properties import CONSTRAINT
from sparkdelta.base.protocol.table_features import TableFeature, is_supported
from sparkdelta.base.schema.type_folds import fields_within
from sparkdelta.exceptions import DeltaError

HIGH_WATER_MARK = "delta.identity.highWaterMark"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A SQL condition that must be true for every row; false and null violate it."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The definition and state of an identity column.

    Attributes
    ----------
    mark
        The last generated value (`delta.identity.highWaterMark`); None before the first.
    """

    start: int
    step: int
    mark: int | None
    allows_explicit_values: bool

    @property
    def next_value(self) -> int:
        """The next value to generate."""
        if self.mark is None:
            return self.start
        return self.start + self.step * max(0, (self.mark - self.start) // self.step + 1)

    def is_new(self, value: int) -> bool:
        """Return True if a value is beyond the mark, which never moves back."""
        return self.mark is None or (value - self.mark) * self.step > 0


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules of one table; expressions are SQL text, keyed by column name."""

    constraints: tuple[Constraint, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    generated: Mapping[str, str] = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=dict)


def row_rules(
    schema: StructType, protocol: Protocol, configuration: Mapping[str, str], *, path: str
) -> RowRules:
    """Return the rules in force: a rule in column metadata needs the support of its table feature.

    Rules inside arrays and maps, and of structs except for invariants, are not implemented.
    """
    constraints, defaults = [], dict[str, str]()
    generated, identities = dict[str, str](), dict[str, Identity]()
    if is_supported(protocol, TableFeature.CHECK_CONSTRAINTS):
        constraints += [
            Constraint(key.removeprefix(CONSTRAINT), text)
            for key, text in sorted(configuration.items())
            if key.startswith(CONSTRAINT)
        ]
    for names, column, repeated in fields_within(schema):
        name = ".".join(names)
        for key, feature in FIELD_FEATURES.items():
            if key not in (column.metadata or {}) or not is_supported(protocol, feature):
                continue
            if repeated or (len(names) > 1 and key != INVARIANTS):
                raise DeltaError.of(
                    "DELTA_WRITE_NOT_IMPLEMENTED", path=path, missing=(f"{feature.value} ({name})",)
                )
            text = str(column.metadata[key])
            if key == INVARIANTS:
                constraints.append(_invariant(name, text))
            elif key == IDENTITY_START:
                identities[name] = _identity(column)
            else:
                (generated if key == GENERATION_EXPRESSION else defaults)[name] = text
    return RowRules(tuple(constraints), defaults, generated, identities)


def with_marks(schema_string: str, marks: Mapping[str, int]) -> str:
    """Return a schema string with new high water marks for identity columns."""
    document = json.loads(schema_string)
    for column in document["fields"]:
        if column["name"] in marks:
            column["metadata"][HIGH_WATER_MARK] = marks[column["name"]]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _invariant(name: str, text: str) -> Constraint:
    try:
        expression = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DeltaError.of(
            "DELTA_INVALID_SCHEMA", problem=f"column {name} has an invalid invariant: {text!r}"
        ) from None
    return Constraint(f"invariant of {name}", str(expression))


def _identity(column: StructField) -> Identity:
    metadata = column.metadata
    start, step = metadata.get(IDENTITY_START), metadata.get("delta.identity.step")
    mark = metadata.get(HIGH_WATER_MARK)
    whole = [n for n in (start, step, mark) if isinstance(n, int) and not isinstance(n, bool)]
    if len(whole) < (2 if mark is None else 3) or step == 0 or column.dataType != LongType():
        problem = f"identity column {column.name} must be a LONG with a start and a step"
        raise DeltaError.of("DELTA_INVALID_SCHEMA", problem=problem)
    allows_explicit_values = metadata.get("delta.identity.allowExplicitInsert") is True
    return Identity(whole[0], whole[1], mark, allows_explicit_values)
