"""The grammar of SQL scripts, ``BEGIN ... END``; their statements and expressions stay text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparkdelta.exceptions import DeltaError
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.tokens import Fragment

SQL_EXCEPTION, NOT_FOUND = "SQLEXCEPTION", "NOT FOUND"
"""Names of conditions that stand for classes of SQLSTATEs."""
_REFUSED = ("CURSOR", "HANDLER", "ASENSITIVE", "INSENSITIVE")
"""Words after DECLARE that do not declare a variable."""
_REFUSED_STATEMENTS = ("OPEN", "FETCH", "CLOSE", "SIGNAL", "RESIGNAL")


@dataclass(frozen=True, slots=True)
class Plain:
    """A statement that also exists outside of scripts."""

    text: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """``DECLARE a, b INT DEFAULT 1``; the type and the default stay text."""

    names: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """``DECLARE name CONDITION FOR SQLSTATE '22012'``."""

    name: str
    sqlstate: str


@dataclass(frozen=True, slots=True)
class Handler:
    """``DECLARE EXIT HANDLER FOR ...``: steps that run where an error ends a block.

    Attributes
    ----------
    names, sqlstates
        Of the conditions that it handles; names are in upper case.
    """

    names: tuple[str, ...]
    sqlstates: tuple[str, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class Block:
    """Statements with variables, conditions and handlers of their own."""

    label: str
    body: Body
    conditions: tuple[Condition, ...] = ()
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """IF or CASE: the first branch whose condition is true runs.

    Attributes
    ----------
    otherwise
        Runs if no condition is true; None is an error then.
    """

    branches: tuple[tuple[str, Body], ...]
    otherwise: Body | None


@dataclass(frozen=True, slots=True)
class Loop:
    """LOOP, WHILE or REPEAT.

    Attributes
    ----------
    condition
        Of WHILE, before each round.
    until
        Of REPEAT, after each round.
    """

    label: str
    body: Body
    condition: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class RowLoop:
    """``FOR variable AS query DO``; without a variable, only the columns have names."""

    label: str
    body: Body
    variable: str | None
    query: str


@dataclass(frozen=True, slots=True)
class Jump:
    """LEAVE or ITERATE, which `repeats`."""

    label: str
    repeats: bool


Step: TypeAlias = Plain | Declaration | Condition | Handler | Block | Choice | Loop | RowLoop | Jump
Body: TypeAlias = tuple[Step, ...]


def parse_script(text: Fragment) -> Block:
    """Return the script of a text that begins with BEGIN.

    Raises
    ------
    StatementSyntaxError
        It is not understood.
    DELTA_STATEMENT_NOT_SUPPORTED
        It has CONTINUE handlers or cursors, or raises conditions.
    """
    parser = Parser(text.whole, text.tokens)
    script = _labeled(parser)
    parser.expect_end()
    assert isinstance(script, Block)
    return script


def _body(parser: Parser, *ends: str) -> Body:
    """Return the statements up to keywords, and go there."""
    steps = list[Step]()
    while not any(map(parser.peek, ends)):
        steps.append(_step(parser))
        parser.expect(";")
    return tuple(steps)


def _step(parser: Parser) -> Step:
    is_label = parser.token.is_name and parser.ahead().is_symbol(":")
    if is_label or parser.token.is_word("BEGIN", *_LOOPS):
        return _labeled(parser)
    if parser.accept("IF"):
        return _choice(parser, parser.expression("THEN"))
    if parser.accept("CASE"):
        return _case(parser)
    if parser.token.is_word("LEAVE", "ITERATE"):
        repeats = parser.next().is_word("ITERATE")
        return Jump(parser.word().lower(), repeats)
    if parser.accept("DECLARE"):
        return _declaration(parser)
    if parser.token.is_word(*_REFUSED_STATEMENTS):
        raise _not_supported()
    if parser.accept("SET"):
        parser.accept("VAR|VARIABLE")
        return Plain(f"SET VAR {parser.expression(closing=';')}")
    return Plain(parser.expression(closing=";"))


def _not_supported() -> DeltaError:
    kind = "a script that has Delta tables, and CONTINUE handlers, cursors or SIGNAL"
    return DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind)


def _declaration(parser: Parser) -> Declaration | Condition | Handler:
    if parser.accept("EXIT HANDLER FOR"):
        return _handler(parser)
    parser.accept("VARIABLE|VAR")
    after = parser.ahead()
    if parser.token.is_word(*_REFUSED) or after.is_word(*_REFUSED):
        raise _not_supported()
    if after.is_word("CONDITION"):
        name = parser.word().upper()
        parser.expect("CONDITION")
        return Condition(name, _sqlstate(parser) if parser.accept("FOR SQLSTATE") else "45000")
    names = tuple(parser.listed(parser.word))
    has_more = not parser.peek(";")
    return Declaration(names, parser.expression(closing=";") if has_more else "")


def _handler(parser: Parser) -> Handler:
    names, sqlstates = list[str](), list[str]()

    def condition() -> None:
        if parser.accept("SQLSTATE"):
            sqlstates.append(_sqlstate(parser))
        else:
            is_not_found = parser.accept("NOT FOUND")
            names.append(NOT_FOUND if is_not_found else ".".join(parser.name()).upper())

    parser.listed(condition)
    return Handler(tuple(names), tuple(sqlstates), (_step(parser),))


def _sqlstate(parser: Parser) -> str:
    parser.accept("VALUE")
    return parser.string().upper()


def _choice(parser: Parser, condition: str) -> Choice:
    branches = list[tuple[str, Body]]()
    while True:
        parser.expect("THEN")
        branches.append((condition, _body(parser, "ELSEIF", "ELSE", "END")))
        if not parser.accept("ELSEIF"):
            break
        condition = parser.expression("THEN")
    otherwise = _body(parser, "END") if parser.accept("ELSE") else ()
    parser.expect("END IF")
    return Choice(tuple(branches), otherwise)


def _case(parser: Parser) -> Choice:
    operand = None if parser.peek("WHEN") else parser.expression("WHEN")
    branches = list[tuple[str, Body]]()
    while parser.accept("WHEN"):
        value = parser.expression("THEN")
        condition = value if operand is None else f"({operand}) = ({value})"
        parser.expect("THEN")
        branches.append((condition, _body(parser, "WHEN", "ELSE", "END")))
    otherwise = _body(parser, "END") if parser.accept("ELSE") else None
    parser.expect("END CASE")
    return Choice(tuple(branches), otherwise)


def _labeled(parser: Parser) -> Step:
    """Return a block or a loop, perhaps with a label before it and after it."""
    label = ""
    if parser.ahead().is_symbol(":"):
        label = parser.word().lower()
        parser.expect(":")
    if parser.accept("BEGIN"):
        if parser.peek("ATOMIC") or parser.peek("NOT ATOMIC"):
            raise _not_supported()
        body = _body(parser, "END")
        step: Step = Block(
            label,
            tuple(each for each in body if not isinstance(each, Condition | Handler)),
            tuple(each for each in body if isinstance(each, Condition)),
            tuple(each for each in body if isinstance(each, Handler)),
        )
        parser.expect("END")
    else:
        word = parser.token.text.upper()
        if not parser.token.is_word(*_LOOPS):
            raise parser.error("BEGIN or a loop is expected")
        parser.next()
        step = _LOOPS[word](parser, label)
        parser.expect(f"END {word}")
    if label and parser.token.is_name:
        parser.next()
    return step


def _while(parser: Parser, label: str) -> Loop:
    condition = parser.expression("DO")
    parser.expect("DO")
    return Loop(label, _body(parser, "END"), condition=condition)


def _repeat(parser: Parser, label: str) -> Loop:
    body = _body(parser, "UNTIL")
    parser.expect("UNTIL")
    return Loop(label, body, until=parser.expression("END"))


def _for(parser: Parser, label: str) -> RowLoop:
    has_variable = parser.token.is_name and parser.ahead().is_word("AS")
    variable = parser.word() if has_variable else None
    parser.accept("AS")
    query = parser.expression("DO")
    parser.expect("DO")
    return RowLoop(label, _body(parser, "END"), variable, query)


_LOOPS: Mapping[str, Callable[[Parser, str], Step]] = {
    "WHILE": _while,
    "REPEAT": _repeat,
    "FOR": _for,
    "LOOP": lambda parser, label: Loop(label, _body(parser, "END")),
}
