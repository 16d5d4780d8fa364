"""Parsing of a statement's tokens: names, literals, expressions as text, and clauses that several
statements have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.exceptions import DeltaError, StatementSyntaxError
from sparkdelta.sql.grammar.tokens import Fragment, Kind, Token, with_ends

Name: TypeAlias = tuple[str, ...]
Item = TypeVar("Item")

_BITS = re.compile(r"CAST\(X'((?:[0-9a-f]{2})*)' AS string\)")
"""Regular expression of the literal of a string parameter that is not plain text."""
_LITERAL = (
    "NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X",
    "CAST", "AS", "STRING", "DOUBLE",
)  # fmt: skip
"""Words that occur in literals, including the literals of parameters."""


class Parser:
    """A place among the tokens of a statement, and the steps of parsing it.

    Attributes
    ----------
    target
        The table that the statement is about, once its name was read.
    is_path
        True if it is given by its path as a string.
    creates_delta
        True if it creates a table by CLONE.
    operation
        The statement's first keyword, for errors.
    queries
        WITH and its queries, before a statement that changes rows.
    row_expressions
        The expressions on the rows of the table.
    assigned_expressions
        The ones among them that are assigned to columns.
    explains
        The kind of plan that EXPLAIN before the statement asks for, empty for the default; None
        without EXPLAIN.
    """

    def __init__(self, text: str, tokens: Sequence[Token], place: int = 0) -> None:
        self.text = text
        self.tokens = tokens
        self.place = place
        self.target: Name | None = None
        self.is_path = False
        self.creates_delta = False
        self.operation = ""
        self.queries: Fragment | None = None
        self.row_expressions: list[Fragment] = []
        self.assigned_expressions: list[Fragment] = []
        self.explains: str | None = None

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def ahead(self, count: int = 1) -> Token:
        """Return a token after this one."""
        return self.tokens[min(self.place + count, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Return the token at this place, and go on."""
        token = self.token
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    @property
    def is_at_end(self) -> bool:
        return self.token.kind is Kind.END

    def peek(self, words: str) -> bool:
        """Return True if some keywords or symbols, separated by blanks, are next; ``A|B`` is one of
        two keywords.
        """
        for number, word in enumerate(words.split()):
            token = self.ahead(number)
            if not (token.is_word(*word.split("|")) or token.is_symbol(word)):
                return False
        return True

    def accept(self, words: str) -> bool:
        """Skip keywords or symbols if they are next; return True if they were."""
        if not self.peek(words):
            return False
        for _ in words.split():
            self.next()
        return True

    def expect(self, words: str) -> None:
        """Skip keywords or symbols.

        Raises
        ------
        StatementSyntaxError
            They are not next.
        """
        if not self.accept(words):
            raise self.error(f"{words.partition('|')[0]} is expected")

    def error(self, problem: str, token: Token | None = None) -> StatementSyntaxError:
        """Return the error for a token, by default the one at this place."""
        return syntax_error(self.text, (token or self.token).start, problem)

    def expect_end(self) -> None:
        """Raise an error if the statement goes on."""
        if not self.is_at_end:
            raise self.error("the statement should end")

    def since(self, place: int) -> str:
        """Return the text from a place up to this one."""
        return self.text[self.tokens[place].start : self.tokens[self.place - 1].end]

    def fragment(self, place: int, *, follows_from: bool = False) -> Fragment:
        """Return the tokens from a place up to this one."""
        tokens = with_ends(self.tokens[place : self.place], self.token.start)
        return Fragment(self.text, tokens, tokens[0].start, tokens[-1].end, follows_from)

    def rest(self) -> Fragment:
        """Return the rest of the statement."""
        start = self.place
        while not self.is_at_end:
            self.next()
        return self.fragment(start)

    # Names.

    def word(self) -> str:
        """Return a part of a name, and go past it."""
        if not self.token.is_name:
            raise self.error("a name is expected")
        return self.next().text

    def name(self) -> Name:
        """Return a name with dots, and go past it."""
        parts = [self.word()]
        while self.accept("."):
            parts.append(self.word())
        return tuple(parts)

    def table_name(self) -> Name:
        """Return the name of a table, as a name with dots or in ``IDENTIFIER('a' || '.b')``, and go
        past it.

        Raises
        ------
        StatementSyntaxError
            There is none, or IDENTIFIER has something else than strings.
        """
        if self.token.is_word("IDENTIFIER") and self.ahead().is_symbol("("):
            return self._identifier()
        parts = [self.word()]
        while self.peek(".") and self.ahead().is_name:
            self.next()
            parts.append(self.word())
        return tuple(parts)

    def _identifier(self) -> Name:
        self.place += 2
        first, texts = self.token, list[str]()
        while True:
            bits = _BITS.match(self.text, self.token.start) if self.token.is_word("CAST") else None
            if bits is None:
                texts.append(self.string())
            else:
                texts.append(bytes.fromhex(bits[1]).decode())
                while self.token.start < bits.end() and not self.is_at_end:
                    self.next()
            if not self.accept("||"):
                break
        self.expect(")")
        try:
            return tuple(name_parts("".join(texts).strip()))
        except UnusableError:
            raise self.error("the name of a table is expected", first) from None

    def table(self) -> Name:
        """Parse the name of the statement's table, or its path as a string."""
        self.is_path = self.token.kind is Kind.STRING
        self.target = ("delta", self.string()) if self.is_path else self.table_name()
        return self.target

    def alias(self, *ends: str) -> str | None:
        """Return an alias and go past it; None if there is none. The keywords `ends` are no
        aliases.
        """
        if self.accept("AS"):
            return self.word()
        return self.word() if self.token.is_name and not self.token.is_word(*ends) else None

    def column(self) -> str:
        """Return a name of a column as text, with backticks where it was written so."""
        start = self.place
        self.name()
        return self.since(start)

    def columns(self) -> tuple[str, ...]:
        """Return names of columns, perhaps in parentheses, and go past them."""
        return self.names() if self.peek("(") else tuple(self.listed(self.column))

    def names(self) -> tuple[str, ...]:
        """Return names of columns in parentheses, and go past them."""
        return tuple(self.enclosed(self.column))

    def words(self) -> tuple[str, ...]:
        """Return names of columns, not of their fields, in parentheses, and go past them."""
        return tuple(self.enclosed(self.word))

    # Lists.

    def listed(self, item: Callable[[], Item]) -> list[Item]:
        """Return items with commas between them, and go past them."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def enclosed(self, item: Callable[[], Item]) -> list[Item]:
        """Return items in parentheses with commas between them, and go past them."""
        self.expect("(")
        items = self.listed(item)
        self.expect(")")
        return items

    # Literals.

    def string(self) -> str:
        """Return the text of a string, and go past it."""
        if self.token.kind is not Kind.STRING:
            raise self.error("a string is expected")
        return self.next().text

    def number(self) -> int:
        """Return an integer, and go past it."""
        sign = -1 if self.accept("-") else 1
        token = self.token
        if token.kind is not Kind.NUMBER or not token.text.isdigit():
            raise self.error("an integer is expected")
        self.next()
        return sign * int(token.text)

    def properties(self) -> dict[str, str]:
        """Return ``(key = value, ...)``, and go past it."""

        def pair() -> tuple[str, str]:
            key = self.property()
            self.accept("=")
            if self.token.is_word("TRUE", "FALSE"):
                return key, self.next().text.lower()
            if self.token.kind not in (Kind.STRING, Kind.NUMBER):
                raise self.error("a string, a number, TRUE or FALSE is expected")
            return key, self.next().text

        return dict(self.enclosed(pair))

    def property(self) -> str:
        """Return the key of a property, a string or a name, and go past it."""
        return self.string() if self.token.kind is Kind.STRING else ".".join(self.name())

    def constant(self) -> str:
        """Return the text of a literal, and go past it."""
        place = self.place
        text = self.expression(closing=",")
        for token in self.tokens[place : self.place]:
            is_name = token.kind is Kind.NAME or (token.is_name and not token.is_word(*_LITERAL))
            if is_name or token.is_symbol("*"):
                raise self.error("a constant is expected", self.tokens[place])
        return text

    def partition(self) -> Mapping[str, str | None]:
        """Return the values of ``(a = 1, b)`` by column, None for those without, and go past it."""
        values = dict[str, str | None]()

        def value() -> None:
            name = self.word()
            if name_key(name) in map(name_key, values):
                raise self.error(f"{name} is there twice")
            values[name] = self.constant() if self.accept("=") else None

        self.enclosed(value)
        return values

    # Expressions.

    def expression(self, *ends: str, closing: Collection[str] = ()) -> str:
        """Return the text up to keywords outside of parentheses and CASE, and go there.

        Parameters
        ----------
        ends
            Keywords, separated by blanks where several belong together.
        closing
            Symbols that end it, too; a closing parenthesis always does.
        """
        start, last = self.place, None
        opened: list[Token] = []
        while not self.is_at_end:
            token = self.token
            is_field = last is not None and last.is_symbol(".")
            is_operator = last is not None and last.is_word("DISTINCT")  # IS DISTINCT FROM
            is_subquery = (
                last is not None
                and token.is_symbol("(")
                and (
                    last.is_word("IN", "EXISTS", "AND", "OR", "NOT", "BETWEEN")
                    or (last.kind is Kind.SYMBOL and last.text not in ")]}")
                )
            )
            if token.is_symbol(")") and all(each.is_word("CASE") for each in opened):
                break
            if not opened and (
                token.is_symbol(*closing)
                or (any(map(self.peek, ends)) and not (is_field or is_operator or is_subquery))
            ):
                break
            if token.is_symbol("(", "[", "{") or (token.is_word("CASE") and not is_field):
                opened.append(token)
            elif token.is_symbol(")", "]", "}"):
                while opened and opened.pop().is_word("CASE"):  # it was the name of a column
                    pass
            elif token.is_word("END") and not is_field and opened and opened[-1].is_word("CASE"):
                opened.pop()
            last = self.next()
        if last is None:
            raise self.error("an expression is expected")
        return self.since(start)

    def in_parentheses(self) -> str:
        """Return the text between parentheses, and go past them."""
        [inner] = self.enclosed(self.expression)
        return inner

    def of_rows(self, *ends: str, closing: Collection[str] = ()) -> str:
        """Return an `expression` on the rows of the table, and go past it."""
        start = self.place
        text = self.expression(*ends, closing=closing)
        self.row_expressions.append(self.fragment(start))
        return text

    def assigned(self, *ends: str) -> str:
        """Return an expression that is assigned to a column, and go past it."""
        text = self.of_rows(*ends, closing=",")
        self.assigned_expressions.append(self.row_expressions[-1])
        return text

    def assignments(self, *ends: str) -> Mapping[str, str]:
        """Return the values of ``a = 1, b.c = 2`` by column, and go past it.

        Raises
        ------
        DELTA_CONFLICT_SET_COLUMN
            A column is assigned twice.
        """
        values: dict[str, str] = {}

        def value() -> None:
            name = self.column()
            if not self.accept("=="):
                self.expect("=")
            if name in values:
                raise DeltaError.of("DELTA_CONFLICT_SET_COLUMN", columns=[name, name])
            values[name] = self.assigned(*ends)

        self.listed(value)
        return values

    def moment(self, *ends: str) -> dict[str, Any]:
        """Return the version or the text of the time after ``VERSION AS OF`` or ``TIMESTAMP AS
        OF``, and go past it; nothing if neither is next.
        """
        for words in ("VERSION AS OF", "SYSTEM_VERSION AS OF"):
            if self.accept(words) or self.accept(f"FOR {words}"):
                is_text = self.token.kind is Kind.STRING and self.token.text.isdigit()
                if self.peek("-"):
                    raise self.error("the number of a version is expected")
                return {"version": int(self.string()) if is_text else self.number()}
        for words in ("TIMESTAMP AS OF", "SYSTEM_TIME AS OF"):
            if self.accept(words) or self.accept(f"FOR {words}"):
                return {"timestamp": self.expression(*ends)}
        return {}


_SHOWN = 30


def syntax_error(text: str, position: int, problem: str) -> StatementSyntaxError:
    """Return the error for a place in a statement."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    shown = text[max(0, position - _SHOWN) : position] + "⟨here⟩" + text[position:][:_SHOWN]
    return StatementSyntaxError(problem=problem, line=line, column=column, excerpt=shown)
