"""Definitions of columns, in CREATE TABLE and ALTER TABLE: type and expressions are text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.errors import ParseException
from pyspark.sql.types import DataType, StructField

from sparkdelta.base.protocol.protocol_upgrades import CURRENT_DEFAULT, GENERATION_EXPRESSION
from sparkdelta.base.schema.column_alterations import Position
from sparkdelta.base.schema.declared_columns import bounded_text, declared_type, identity_metadata
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.operations.alter.altered_columns import column_path
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.tokens import Kind

CONSTRAINTS = ("CONSTRAINT", "CHECK", "PRIMARY KEY", "FOREIGN KEY", "UNIQUE", "REFERENCES")
_COLUMN_ENDS = ("NOT NULL", "COMMENT", "DEFAULT", "GENERATED", "FIRST", "AFTER", *CONSTRAINTS)
_NO_PROPERTIES = {
    "provider": "it comes after USING",
    "location": "it comes after LOCATION",
    "owner": "it is the user",
    "external": "a table is external if it has a location",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnText:
    """The definition of a column.

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

    @property
    def position(self) -> Position | None:
        return position(first=self.is_first, after=self.after)

    @property
    def field(self) -> StructField:
        """The column as a field of the table's schema.

        Raises
        ------
        InvalidArgumentError
            Its type is none.
        """
        metadata: dict[str, object] = {
            key: text
            for key, text in (
                ("comment", self.comment),
                (CURRENT_DEFAULT, self.default),
                (GENERATION_EXPRESSION, self.generated),
            )
            if text is not None
        }
        if self.identity is not None:
            start, step, by_default = self.identity
            metadata |= identity_metadata(start, step, allows_explicit_values=by_default)
        name, data_type = column_path(self.name)[-1], type_of(self.data_type)
        return bounded_text(StructField(name, data_type, self.nullable, metadata))


def position(*, first: bool, after: str | None) -> Position | None:
    """Return the place of a column; None if it is not given."""
    if after is not None:
        return Position(column_path(after)[-1])
    return Position() if first else None


def type_of(text: str) -> DataType:
    """Return a type by its SQL name.

    Raises
    ------
    InvalidArgumentError
        The type is unknown; Spark's error would show a text that is not the user's.
    """
    try:
        return declared_type(text)
    except DeltaError:
        raise
    except ParseException as error:
        problem = f"{text} is not a type"
        raise InvalidArgumentError(argument="dataType", problem=problem) from error


def columns_of_table(parser: Parser) -> tuple[ColumnText, ...]:
    """Return the definitions of all columns of a table, and go past them."""
    columns = [column_text(parser, in_table=True)]
    while parser.accept(",") and not _is_constraint(parser):
        columns.append(column_text(parser, in_table=True))
    return tuple(columns)


def _is_constraint(parser: Parser) -> bool:
    """Return True at a constraint, but not at a column whose name is such a keyword."""
    if parser.token.is_word("CONSTRAINT"):
        return parser.ahead(2).is_word("CHECK", "PRIMARY", "FOREIGN", "UNIQUE")
    return any(map(parser.peek, ("CHECK (", "PRIMARY KEY", "FOREIGN KEY", "UNIQUE (")))


def column_text(parser: Parser, *, in_table: bool = False) -> ColumnText:
    """Return the definition of a column of a new table, or of a column or field that is added to a
    table, and go past it.
    """
    start, name = parser.token, parser.column()
    if in_table and len(column_path(name)) > 1:
        problem = "a column is expected, not a field of one; give a struct with all of its fields"
        raise parser.error(problem, start)
    column = ColumnText(name=name, data_type=type_text(parser))
    while True:
        if parser.accept("NOT NULL"):
            column = replace(column, nullable=False)
        elif parser.accept("COMMENT"):
            column = replace(column, comment=parser.string())
        elif parser.accept("DEFAULT"):
            default = parser.expression(*_COLUMN_ENDS, closing=",")
            column = replace(column, default=default)
        elif in_table and parser.accept("GENERATED"):
            column = _generated(parser, column)
        elif not in_table and parser.accept("FIRST"):
            column = replace(column, is_first=True)
        elif not in_table and parser.accept("AFTER"):
            column = replace(column, after=parser.column())
        else:
            return column


def _generated(parser: Parser, column: ColumnText) -> ColumnText:
    by_default = parser.accept("BY DEFAULT")
    if not by_default:
        parser.expect("ALWAYS")
    parser.expect("AS")
    if not parser.accept("IDENTITY"):
        return replace(column, generated=parser.in_parentheses())
    start = step = 1
    if parser.accept("("):
        while not parser.accept(")"):
            if parser.accept("START WITH"):
                start = parser.number()
            else:
                parser.expect("INCREMENT BY")
                step = parser.number()
            parser.accept(",")
    return replace(column, identity=(start, step, by_default))


def type_text(parser: Parser) -> str:
    """Return the text of a type, and go past it."""
    depth, start = 0, parser.place
    while not parser.is_at_end:
        token = parser.token
        is_end = token.is_symbol(",", ")") or any(map(parser.peek, _COLUMN_ENDS))
        if not depth and is_end:
            break
        if token.kind is Kind.SYMBOL:
            depth += sum(token.text.count(sign) for sign in "(<")
            depth -= sum(token.text.count(sign) for sign in ")>")
        parser.next()
    if parser.place == start:
        raise parser.error("a type is expected")
    return parser.since(start)


def table_properties(parser: Parser) -> dict[str, str]:
    """Parse the properties of a table.

    Raises
    ------
    StatementSyntaxError
        Spark's SQL has another clause for one of them.
    """
    start, properties = parser.token, parser.properties()
    for name in properties:
        if name in _NO_PROPERTIES:
            problem = f"{name} is no property of a table: {_NO_PROPERTIES[name]}"
            raise parser.error(problem, start)
    return properties
