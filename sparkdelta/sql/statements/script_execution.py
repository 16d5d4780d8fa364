"""Execution of SQL scripts, ``BEGIN ... END``, whose statements may be about Delta tables.

A variable of a script is a variable of the session while its block runs, so that Spark resolves its
name. A variable of the session that has the same name gets its value back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StructField, StructType

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.table_schema import quoted
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.spark_errors import unlogged_errors
from sparkdelta.exceptions import DeltaError, InvalidArgumentError
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.scripts import (
    NOT_FOUND,
    SQL_EXCEPTION,
    Block,
    Body,
    Choice,
    Declaration,
    Handler,
    Jump,
    Loop,
    Plain,
    RowLoop,
    Step,
)
from sparkdelta.sql.grammar.statement_grammar import CHANGES, common_queries
from sparkdelta.sql.grammar.tokens import tokenize

MAX_LOOP_ROWS = 100_000
"""The limit of rows that a FOR loop goes through."""
Run: TypeAlias = Callable[[str, None, Mapping[str, DataFrame]], DataFrame]
_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "EXECUTE")


class _JumpTaken(Exception):  # noqa: N818 - a change of the flow, not an error
    """LEAVE or ITERATE on its way to the statement with its label."""

    def __init__(self, jump: Jump) -> None:
        super().__init__(jump.label)
        self.jump = jump


class _ExitTaken(Exception):  # noqa: N818 - a change of the flow, not an error
    """An EXIT handler on its way to its block."""

    def __init__(self, block: Block, handler: Handler) -> None:
        super().__init__(block.label)
        self.block = block
        self.handler = handler


def run_script(
    spark: SparkSession, run: Run, script: Block, frames: Mapping[str, DataFrame]
) -> DataFrame | None:
    """Run a script, and return the rows of its last query; None if it has none.

    Parameters
    ----------
    run
        Runs a statement that may be about Delta tables; takes its text, its parameters and
        DataFrames for names in braces.
    frames
        The DataFrames that the user gave.

    Raises
    ------
    InvalidArgumentError
        A condition is not BOOLEAN, no branch of CASE is chosen, or a label is not there.
    PySparkException
        As of its statements; those before it are done.
    """
    script_run = _ScriptRun(spark, run, frames)
    try:
        script_run.carry_out(script)
    except _JumpTaken as taken:
        raise InvalidArgumentError(
            argument="LEAVE or ITERATE", problem=f"no label {taken.jump.label} is around it"
        ) from None
    return script_run.result


@dataclass(slots=True)
class _ScriptRun:
    """One run of a script.

    Attributes
    ----------
    result
        The rows of the last query.
    scopes
        For each block that runs, its variables, with the values of those that they hide.
    blocks
        The blocks that run, the innermost one last.
    """

    spark: SparkSession
    run_statement: Run
    frames: Mapping[str, DataFrame]
    result: DataFrame | None = None
    scopes: list[dict[str, DataFrame | None]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def run(self, text: str, **more: DataFrame) -> DataFrame:
        """Run a statement, with DataFrames for further names in braces."""
        return self.run_statement(text, None, {**self.frames, **more})

    def _steps(self, body: Body) -> None:
        for step in body:
            try:
                self.carry_out(step)
            except (DeltaError, PySparkException) as error:
                self._handle(error)

    def _handle(self, error: PySparkException) -> NoReturn:
        """Raise the exit to the block that handles an error, or the error if none does."""
        for number, block in reversed(list(enumerate(self.blocks, 1))):
            handler = _handler_of(error, block, self.blocks[:number])
            if handler is not None:
                raise _ExitTaken(block, handler) from error
        raise error

    def _block(self, block: Block) -> None:
        self.blocks.append(block)
        try:
            return self._steps(block.body)
        except _ExitTaken as taken:
            if taken.block is not block:
                raise
            handler = taken.handler
        finally:
            self.blocks.pop()
        return self._steps(handler.body)

    def carry_out(self, step: Step) -> None:
        """Carry out one step, which is perhaps made of others."""
        match step:
            case Plain():
                self._plain(step.text)
            case Declaration():
                self._declare(step.names, step.text)
            case Choice():
                self._choose(step)
            case Jump():
                raise _JumpTaken(step)
            case Block():
                with self._scope(), self._leaving(step.label):
                    self._block(step)
            case Loop():
                with self._leaving(step.label):
                    while step.condition is None or self._is_true(step.condition):
                        self._round(step)
                        if step.until is not None and self._is_true(step.until):
                            break
            case RowLoop():
                with self._scope(), self._leaving(step.label):
                    self._each_row(step)

    @contextmanager
    def _leaving(self, label: str) -> Iterator[None]:
        """Stop LEAVE of a label at the end of the block."""
        try:
            yield
        except _JumpTaken as taken:
            if taken.jump.repeats or taken.jump.label != label:
                raise

    def _round(self, loop: Loop | RowLoop) -> None:
        try:
            self._steps(loop.body)
        except _JumpTaken as taken:
            if not taken.jump.repeats or taken.jump.label != loop.label:
                raise

    def _plain(self, text: str) -> None:
        rows = self.run(text)
        if _is_query(text) and rows.columns:  # EXECUTE IMMEDIATE may have run something else
            # Later statements must not change it, and its errors are this statement's.
            self.result = rows.localCheckpoint()

    def _is_true(self, condition: str) -> bool:
        rows = self.run(f"SELECT ({condition}) AS value")
        if not isinstance(rows.schema["value"].dataType, BooleanType):
            raise InvalidArgumentError(
                argument="condition", problem=f"the value of {condition} is not BOOLEAN"
            )
        [(value,)] = read_rows(rows, what="condition of a script", bound=1)
        return value is True

    def _choose(self, choice: Choice) -> None:
        for condition, body in choice.branches:
            if self._is_true(condition):
                return self._steps(body)
        if choice.otherwise is None:
            raise InvalidArgumentError(
                argument="CASE", problem="no condition is true, and it has no ELSE"
            )
        return self._steps(choice.otherwise)

    def _each_row(self, loop: RowLoop) -> None:
        found = self.run(loop.query)
        schema = found.schema
        fields = list(schema.fields)
        values = [quoted(each.name) for each in fields]
        if loop.variable is not None:
            fields.insert(0, StructField(loop.variable, schema))
            values.insert(0, "struct(*)")
        for each in fields:
            self._declare((each.name,), type_text(each.dataType))
        names = ", ".join(quoted(each.name) for each in fields)
        for row in read_rows(found, what="rows of a FOR loop", bound=MAX_LOOP_ROWS):
            one = self.spark.createDataFrame([row], StructType(schema.fields))
            query = f"SELECT {', '.join(values)} FROM {{row}}"  # noqa: S608 - quoted names
            self.run(f"SET VAR ({names}) = ({query})", row=one)
            self._round(loop)

    # Variables.

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Drop a block's variables at its end, and restore the session variables that they hid."""
        self.scopes.append({})
        try:
            yield
        finally:
            for name, hidden in self.scopes.pop().items():
                with suppress(AnalysisException):  # the script has dropped it
                    self.run(f"DROP TEMPORARY VARIABLE {quoted(name)}")
                if hidden is not None:
                    kind = type_text(hidden.schema.fields[0].dataType)
                    self.run(f"DECLARE OR REPLACE VARIABLE {quoted(name)} {kind}")
                    self.run(f"SET VAR {quoted(name)} = (TABLE {{value}})", value=hidden)

    def _declare(self, names: tuple[str, ...], rest: str) -> None:
        scope = self.scopes[-1]
        for name in names:
            key = name_key(name)
            is_new = key not in scope  # else Spark raises its error
            hidden = self._variable(name) if is_new else None
            self.run(f"DECLARE {'OR REPLACE ' if is_new else ''}VARIABLE {quoted(name)} {rest}")
            scope[key] = hidden

    @unlogged_errors()
    def _variable(self, name: str) -> DataFrame | None:
        """Return the value of a variable of the session as a DataFrame; None without one."""
        try:
            value = self.run(f"SELECT system.session.{quoted(name)} AS value")
        except DeltaError:
            raise
        except AnalysisException:
            return None
        rows = read_rows(value, what="value of a variable", bound=1)
        return self.spark.createDataFrame([tuple(each) for each in rows], value.schema)


def _handler_of(error: PySparkException, block: Block, around: Sequence[Block]) -> Handler | None:
    """Return the handler of a block that handles an error: by its condition rather than by its
    SQLSTATE, and by that rather than by a class of SQLSTATEs.

    Parameters
    ----------
    around
        The blocks whose conditions a handler may name.
    """
    condition, sqlstate = (error.getCondition() or "").upper(), (error.getSqlState() or "").upper()
    declared = {each.name: each.sqlstate for outer in around for each in outer.conditions}
    is_exception = sqlstate[:2] not in ("00", "01", "02")
    names = {condition, condition.partition(".")[0]} - declared.keys()
    names_of_state = {name for name, state in declared.items() if state == sqlstate}
    of_class = SQL_EXCEPTION if is_exception else NOT_FOUND if sqlstate[:2] == "02" else ""
    for is_match in (
        lambda each: not names.isdisjoint(each.names),
        lambda each: sqlstate in each.sqlstates or not names_of_state.isdisjoint(each.names),
        lambda each: of_class in each.names,
    ):
        handler = next(filter(is_match, block.handlers), None)
        if handler is not None:
            return handler
    return None


def _is_query(text: str) -> bool:
    """Return True if a statement is a query, whose rows may be the result of a script."""
    parsed = tokenize(text)
    if parsed is None:
        return False
    parser = Parser(parsed.whole, parsed.tokens)
    if parser.peek("WITH"):
        common_queries(parser)
        return not parser.token.is_word(*CHANGES)
    is_insert = parser.peek("FROM") and any(each.is_word("INSERT") for each in parsed.tokens)
    return not is_insert and (parser.token.is_word(*_QUERIES) or parser.peek("("))
