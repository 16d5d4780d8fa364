"""Predicates from conditions in SQL text, parsed by sqlglot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pyspark.sql.types import StructType
from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from sparkdelta.base.predicates.literals import INTEGER_BITS, cast, decimal_literal
from sparkdelta.base.predicates.predicate_rules import (
    And,
    Call,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Truth,
    Unusable,
    is_known,
)
from sparkdelta.base.predicates.resolved_names import (
    UnusableError,
    extract_field,
    find_comparable_column,
)
from sparkdelta.base.protocol.column_names import name_key


class _SparkText(Spark):
    """The Spark SQL dialect, with functions kept as written instead of translated."""

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]  # made by a metaclass
        STRICT_CAST = True
        FUNCTIONS: Mapping[str, Any] = {}
        FUNCTION_PARSERS = {  # noqa: RUF012 - declared by sqlglot
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")
        }


def parse_condition(text: str, schema: StructType, *, time_zone: str) -> Predicate:
    """Return the predicate of a Spark SQL condition.

    `time_zone` is the session time zone, for timestamps without one.
    """
    try:
        return _Condition(schema, time_zone, text).predicate(parsed_text(text))
    except UnusableError as error:
        return Unusable(text, error.reason)
    except RecursionError:
        return Unusable(text, "it is nested too deeply")


def parse_expression(text: str, schema: StructType, *, time_zone: str) -> Expression:
    """Return the expression of Spark SQL text."""
    return _Condition(schema, time_zone, text).expression(parsed_text(text))


_PLAIN = re.compile(
    r"""(
        \s
        |'[^']*'(?!\s*['"])  # adjacent strings are concatenated, or an escaped quote
        |"[^"]*"(?!\s*['"])
        |`([^`]|``)*`
        |--[^\n\\]*(\n|$)
        |(?<![\w.])([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?(BD|[LSYDF])?(?![\w.])
        |(?<!\w)[a-z_]\w*(?!\w)
        |(?!/\*|--)[][(),.<>=!+*/%&|^~:-]
    )*""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""Text that Spark and sqlglot split into the same tokens. It excludes, for example, `0xAB` and
`5a`, which are names in Spark.
"""


def parsed_text(text: str) -> exp.Expr:
    """Return the tree of a condition, or raise `UnusableError`."""
    if "${" in text:
        raise UnusableError("it contains variables, which Spark substitutes")
    if not _PLAIN.fullmatch(text):
        raise UnusableError("a name, a number, a text or a comment in it is of an unusual form")
    try:
        return parse_one(text, dialect=_SparkText, into=exp.Condition)
    except (SqlglotError, ValueError, RecursionError) as error:
        problem = str(error).partition("\n")[0]
        raise UnusableError(f"sqlglot cannot parse it: {problem}") from error


def parse_type_name(text: str) -> str:
    """Return the simple name of a type, as in `Cast`, or raise `UnusableError`."""
    try:
        return _data_type(exp.DataType.build(text, dialect=_SparkText))
    except SqlglotError as error:
        raise UnusableError(f"a cast to {text}") from error


_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MATCHES: Mapping[type[exp.Expr], str] = {
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
}
_ARITHMETIC: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_AMBIGUOUS_PRECEDENCE = (
    *_COMPARISONS, *_MATCHES, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Not, exp.And,
    exp.Or, exp.Escape,
)  # fmt: skip
"""Operators whose precedence may differ between Spark and sqlglot when one is an operand of
another.
"""
_TYPES = {
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.TINYINT: "tinyint",
    exp.DataType.Type.SMALLINT: "smallint",
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DataType.Type.BINARY: "binary",
}


class _Condition:
    """A converter of the sqlglot nodes of one text."""

    def __init__(self, schema: StructType, time_zone: str, text: str) -> None:
        self._schema = schema
        self._time_zone = time_zone
        # The meaning of backslashes and double quotes depends on session settings.
        self._has_backslash = "\\" in text
        self._quoted_columns = {name_key(name) for name in schema.names} if '"' in text else set()

    def predicate(self, node: exp.Expr) -> Predicate:
        if isinstance(node, exp.Paren):
            return self.predicate(node.this)
        if isinstance(node, exp.And | exp.Or):
            terms = tuple(self.predicate(term) for term in node.flatten())
            return And(terms) if isinstance(node, exp.And) else Or(terms)
        if node.args.get("negate"):  # as in NOT LIKE
            positive = node.copy()
            positive.set("negate", None)
            return Not(self.predicate(positive))
        if isinstance(node, exp.Not):
            return Not(self.predicate(node.this))
        if isinstance(node, exp.Between):
            return self._between(node)
        try:
            return self._atom(node)
        except UnusableError as error:
            return Unusable(_shown(node), error.reason)

    def _between(self, node: exp.Between) -> Predicate:
        if node.args.get("symmetric"):
            return Unusable(_shown(node), "BETWEEN SYMMETRIC")
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        return And((self.predicate(low), self.predicate(high)))

    def _atom(self, node: exp.Expr) -> Predicate:
        if any(isinstance(operand, _AMBIGUOUS_PRECEDENCE) for operand in node.iter_expressions()):
            raise UnusableError(f"Spark may group {_shown(node)} in another way")
        if type(node) in _COMPARISONS:
            operator = _COMPARISONS[type(node)]
            return Comparison(
                operator, self.expression(node.this), self.expression(node.expression)
            )
        if isinstance(node, exp.NullSafeNEQ):
            same = Comparison("<=>", self.expression(node.this), self.expression(node.expression))
            return Not(same)
        if isinstance(node, exp.Is):
            child, what = self.expression(node.this), node.expression
            if isinstance(what, exp.Null):
                return IsNull(child)
            if isinstance(what, exp.Boolean):
                return Comparison("<=>", child, Literal(bool(what.this), "boolean"))
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() in ("isnull", "isnotnull"):
            (argument,) = node.expressions
            is_null = IsNull(self.expression(argument))
            return is_null if node.name.lower() == "isnull" else Not(is_null)
        return Truth(self.expression(node))

    def _in(self, node: exp.In) -> Predicate:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise UnusableError("IN with something other than a list")
        child = self.expression(node.this)
        return In(child, tuple(self.expression(value) for value in node.expressions))

    def expression(self, node: exp.Expr) -> Expression:
        """Return the expression of a node, or raise `UnusableError`."""
        if isinstance(node, exp.Paren):
            return self.expression(node.this)
        if isinstance(node, exp.Column):
            return find_comparable_column(self._schema, [part.name for part in node.parts])
        if isinstance(node, exp.Dot):
            return extract_field(self._schema, self.expression(node.this), node.expression.name)
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.HexString):
            return Literal(_bytes(node.this), "binary")
        if isinstance(node, exp.Null):
            return Literal(None, "void")
        if isinstance(node, exp.Boolean):
            return Literal(bool(node.this), "boolean")
        if isinstance(node, exp.Neg):
            return self._negative(node.this)
        if isinstance(node, exp.Cast):  # TryCast too
            return self._cast(node)
        name, arguments = _call(node)
        if not is_known(name, len(arguments)):
            raise UnusableError(f"{_shown(node)} is not supported")
        return Call(name, tuple(self.expression(argument) for argument in arguments))

    def _negative(self, node: exp.Expr) -> Expression:
        """Return a negated expression; the sign is part of a number literal.

        -128Y is a TINYINT, but 128Y is out of range.
        """
        if isinstance(node, exp.Literal) and not node.is_string:
            return _number(f"-{node.this}")
        if isinstance(node, exp.Cast) and node.this.is_int and _data_type(node.to) in INTEGER_BITS:
            number, is_try = _number(f"-{node.this.this}"), isinstance(node, exp.TryCast)
            return cast(number, _data_type(node.to), is_try=is_try, time_zone=self._time_zone)
        if isinstance(node, exp.Cast) and _data_type(node.to) == "string":
            raise UnusableError("the sign of a number that is cast to a text")
        child = self.expression(node)
        if isinstance(child, Literal) and isinstance(child.value, Decimal):
            return Literal(child.value.copy_negate(), child.data_type)  # unary minus rounds
        if isinstance(child, Literal) and isinstance(child.value, int | float):
            return Literal(-child.value, child.data_type)
        return Call("negative", (child,))

    def _literal(self, node: exp.Literal) -> Literal:
        if node.is_string:
            if self._has_backslash or name_key(node.this) in self._quoted_columns:
                raise UnusableError(
                    "a string that depends on settings: it has a backslash, or is a "
                    "column's name in double quotes"
                )
            return Literal(node.this, "string")
        return _number(node.this)

    def _cast(self, node: exp.Cast) -> Expression:
        data_type = _data_type(node.to)
        is_try = isinstance(node, exp.TryCast)
        return cast(self.expression(node.this), data_type, is_try=is_try, time_zone=self._time_zone)


def _shown(node: exp.Expr) -> str:
    return node.sql(dialect=_SparkText)


def _call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    if node.args.get("negate"):
        raise UnusableError(f"{_shown(node)} is not supported as a value")
    if isinstance(node, exp.Anonymous):
        return node.name.lower(), node.expressions
    for names in (_MATCHES, _ARITHMETIC):
        if type(node) in names:
            return names[type(node)], [node.this, node.expression]
    raise UnusableError(f"{_shown(node)} is not supported")


def _bytes(digits: str) -> bytes:
    return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")


def _number(text: str) -> Literal:
    if "e" in text.lower():
        return Literal(float(text), "double")
    if "." not in text:
        value = int(text)
        for data_type in ("int", "bigint"):
            limit = 1 << (INTEGER_BITS[data_type] - 1)
            if -limit <= value < limit:
                return Literal(value, data_type)
    return decimal_literal(Decimal(text))


def _data_type(data_type: exp.DataType) -> str:
    if data_type.this is exp.DataType.Type.DECIMAL:
        parameters = [parameter.name for parameter in data_type.expressions]
        precision = parameters[0] if parameters else "10"
        scale = parameters[1] if len(parameters) > 1 else "0"
        return f"decimal({precision},{scale})"
    if data_type.this not in _TYPES or data_type.expressions:
        raise UnusableError(f"a cast to {data_type.sql(dialect=_SparkText)}")
    return _TYPES[data_type.this]
