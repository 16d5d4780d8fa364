"""What a table says of its rows beyond types: constraints, and columns that compute themselves.

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

from sparkdelta.exceptions import InvalidSchemaError, WriteNotImplementedError
from sparkdelta.protocol.actions import Protocol
from sparkdelta.protocol.property_rules import CONSTRAINT
from sparkdelta.protocol.protocol_upgrades import (
    FIELD_FEATURES,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    INVARIANTS,
)
from sparkdelta.protocol.table_features import TableFeature, is_supported
from sparkdelta.schema.type_folds import fields_within

HIGH_WATER_MARK = "delta.identity.highWaterMark"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition in SQL that must be true of every row: not false, and not null."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Identity:
    """How the values of an identity column are made.

    Attributes
    ----------
    mark
        The value that was generated last; None before the first.
    takes_values
        Whether rows may bring their own.

    References
    ----------
    PROTOCOL.md#identity-columns
    """

    start: int
    step: int
    mark: int | None
    takes_values: bool

    @property
    def next_value(self) -> int:
        """The next value that may be generated.

        Examples
        --------
        >>> Identity(10, 5, None, False).next_value, Identity(10, 5, 15, False).next_value
        (10, 20)
        >>> Identity(-1, -2, -4, True).next_value
        -5
        """
        if self.mark is None:
            return self.start
        return self.start + self.step * max(0, (self.mark - self.start) // self.step + 1)


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules of one table; expressions are texts in SQL, by the column's name."""

    constraints: tuple[Constraint, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    generated: Mapping[str, str] = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=dict)


def row_rules(
    schema: StructType, protocol: Protocol, configuration: Mapping[str, str], *, path: str
) -> RowRules:
    """The rules in force: what a column's metadata says counts where its feature is supported.

    Raises
    ------
    InvalidSchemaError
        A rule is not in the form that the protocol gives it.
    WriteNotImplementedError
        A rule stands where it is not carried out: inside a struct, an array or a map.
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
                raise WriteNotImplementedError(path=path, missing=(f"{feature.value} ({name})",))
            text = str(column.metadata[key])
            if key == INVARIANTS:
                constraints.append(_invariant(name, text))
            elif key == IDENTITY_START:
                identities[name] = _identity(column)
            else:
                (generated if key == GENERATION_EXPRESSION else defaults)[name] = text
    return RowRules(tuple(constraints), defaults, generated, identities)


def with_marks(schema_string: str, marks: Mapping[str, int]) -> str:
    """A schema as the log has it, with the identity columns' new marks; all else as it is.

    References
    ----------
    PROTOCOL.md#identity-columns
    """
    document = json.loads(schema_string)
    for column in document["fields"]:
        if column["name"] in marks:
            column["metadata"][HIGH_WATER_MARK] = marks[column["name"]]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _invariant(name: str, text: str) -> Constraint:
    try:
        expression = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        raise InvalidSchemaError(
            problem=f"column {name} has an invalid invariant: {text!r}"
        ) from None
    return Constraint(f"invariant of {name}", str(expression))


def _identity(column: StructField) -> Identity:
    metadata = column.metadata
    start, step = metadata.get(IDENTITY_START), metadata.get("delta.identity.step")
    mark = metadata.get(HIGH_WATER_MARK)
    whole = [n for n in (start, step, mark) if isinstance(n, int) and not isinstance(n, bool)]
    if len(whole) < (2 if mark is None else 3) or step == 0 or column.dataType != LongType():
        problem = f"identity column {column.name} must be a LONG with a start and a step"
        raise InvalidSchemaError(problem=problem)
    takes_values = metadata.get("delta.identity.allowExplicitInsert") is True
    return Identity(whole[0], whole[1], mark, takes_values)
