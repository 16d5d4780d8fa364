"""Statements that are run as others: several INSERTs from one FROM, EXECUTE IMMEDIATE, and EXPLAIN
of changes of rows and of CREATE TABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.operations.write.create_table import Creation
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.statement_grammar import Statement
from sparkdelta.sql.grammar.tokens import Fragment, Kind

_PHYSICAL_PLAN = "== Physical Plan ==\n"
_COMMANDS = {
    "DELETE": "Execute DeleteCommand",
    "UPDATE": "Execute UpdateCommand",
    "MERGE": "Execute MergeIntoCommand",
    "INSERT": "Execute WriteIntoDelta",
}
"""The commands in delta-spark's plans, by the first keyword of the statement."""


def separate_inserts(text: Fragment) -> list[str]:
    """Return the statements of ``FROM t INSERT ... SELECT ... INSERT ... SELECT ...``, each with
    the FROM of its own, and with the queries of WITH; none if a text is something else.
    """
    tokens = text.tokens
    if not tokens[0].is_word("FROM", "WITH"):
        return []
    starts, source = list(_top_level(text, "INSERT")), next(_top_level(text, "FROM"), len(tokens))
    if not starts or source > starts[0]:
        return []
    heads = (text.start, tokens[source].start, tokens[starts[0]].start)
    queries, rows = (text.whole[start:end] for start, end in pairwise(heads))
    statements = list[str]()
    for start, after in pairwise([*starts, len(tokens) - 1]):
        selects = [number for number in _top_level(text, "SELECT") if start < number < after]
        if not selects:
            return []
        places = (tokens[each].start for each in (start, selects[0], after))
        insert, select = (text.whole[start:end] for start, end in pairwise(places))
        statements.append(f"{queries} {insert} {rows} {select}")
    return statements


def _top_level(text: Fragment, word: str) -> Iterator[int]:
    """Yield the numbers of the tokens outside of parentheses that are a keyword."""
    depth = 0
    for number, token in enumerate(text.tokens):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if not depth and token.is_word(word):
            yield number


def explained_query(parser: Parser, statement: Statement) -> str:
    """Return the EXPLAIN of a query that reads the rows that a change of rows reads, or the rows of
    a new table; of any rows for a table without a query.
    """
    given, name = statement.arguments, parser.target or ()
    alias = given.get("alias")
    target = quoted_path(name) + (f" AS {quoted(alias)}" if alias is not None else "")
    queries = given.get("queries")
    before = f"EXPLAIN {parser.explains} {queries.text if queries else ''}"
    if parser.operation in ("INSERT", "CREATE", "REPLACE"):
        query = given.get("query")
        return f"{before} {'VALUES (0)' if query is None else query.text}"
    if parser.operation == "MERGE":
        source = given["source"].text
        return f"{before} SELECT * FROM {source} FULL JOIN {target} ON {given['condition']}"  # noqa: S608 - the user's text
    values = [f"({text})" for text in given.get("values", {}).values() if text.upper() != "DEFAULT"]
    where = f"WHERE {given['where']}" if "where" in given else ""
    return f"{before} SELECT {', '.join(['*', *values])} FROM {target} {where}"  # noqa: S608 - the user's text


def plan_of_command(plan: DataFrame, operation: str, statement: Statement) -> DataFrame:
    """Return the answer of EXPLAIN with a command above the physical plan."""
    command = _COMMANDS.get(operation)
    if command is None:
        replaces = statement.arguments["creation"] in (Creation.REPLACE, Creation.CREATE_OR_REPLACE)
        command = f"{'Replace' if replaces else 'Create'}Table"
        command = f"Atomic{command}AsSelect" if "query" in statement.arguments else command
    shown = F.lit(f"{_PHYSICAL_PLAN}{command}\n")
    return plan.select(F.replace(F.col("plan"), F.lit(_PHYSICAL_PLAN), shown).alias("plan"))


@dataclass(frozen=True, slots=True)
class ImmediateStatement:
    """The parts of ``EXECUTE IMMEDIATE text [INTO variables] [USING arguments]``.

    Attributes
    ----------
    text
        An expression.
    arguments
        Expressions and their names, which are empty for those by position.
    """

    text: Fragment
    variables: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]

    @classmethod
    def parsed(cls, text: Fragment) -> ImmediateStatement | None:
        """Return the parts of a text; None if it is another statement.

        Raises
        ------
        StatementSyntaxError
            It is not understood.
        """
        parser = Parser(text.whole, text.tokens)
        if not parser.accept("EXECUTE IMMEDIATE"):
            return None
        start = parser.place
        parser.expression("INTO", "USING")
        statement = parser.fragment(start)
        variables = tuple(parser.listed(parser.column)) if parser.accept("INTO") else ()
        arguments = list[tuple[str, str]]()

        def argument() -> None:
            value = parser.expression("AS", closing=",")
            arguments.append((value, parser.word() if parser.accept("AS") else ""))

        if parser.accept("USING"):
            in_parentheses = parser.accept("(")
            parser.listed(argument)
            if in_parentheses:
                parser.expect(")")
        parser.expect_end()
        return cls(statement, variables, tuple(arguments))

    def statement(self, run: Callable[..., DataFrame]) -> str | None:
        """Return the text to run, perhaps a variable's value; None if it is not a text."""
        first, second = self.text.tokens[:2]
        if (first.kind, second.kind) == (Kind.STRING, Kind.END):
            return first.text
        value = _values(run, [self.text.text])[0]
        return value if isinstance(value, str) else None

    def parameters(self, run: Callable[..., DataFrame]) -> Mapping[str, Any] | list[Any] | None:
        """Return the arguments as ``spark.sql`` takes them."""
        if not self.arguments:
            return None
        values = _values(run, [value for value, _ in self.arguments])
        if all(name for _, name in self.arguments):
            return {name: value for (_, name), value in zip(self.arguments, values, strict=True)}
        return values


def _values(run: Callable[..., DataFrame], expressions: list[str]) -> list[Any]:
    """Return the values of expressions that depend on no rows."""
    [row] = read_rows(run(f"SELECT {', '.join(expressions)}"), what="arguments", bound=1)
    return list(row)
