"""Tokens of a SQL text, and a cursor over them; sqlglot's tokenizer for Databricks SQL."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sqlglot import TokenType
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError

from sparkdelta.exceptions import StatementSyntaxError


class Kind(Enum):
    """The kinds of tokens."""

    WORD = "word"
    NAME = "name in backticks"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it is in the text.

    Attributes
    ----------
    text
        Without quotes and escapes.
    """

    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """True if it is one of some keywords, which are given in upper case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.text in symbols

    @property
    def is_name(self) -> bool:
        """True if it may be a part of a name."""
        return self.kind in (Kind.WORD, Kind.NAME)


class _Tokenizer(Databricks.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()  # else the rest of a statement is one token


_KINDS = {
    TokenType.STRING: Kind.STRING,
    TokenType.RAW_STRING: Kind.STRING,
    TokenType.IDENTIFIER: Kind.NAME,
    TokenType.NUMBER: Kind.NUMBER,
}
_WORD = re.compile(r"\w+")
_LOOK_AHEAD = 4
_LITERAL = (
    "NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X",
    "CAST", "AS", "STRING", "DOUBLE",
)  # fmt: skip
"""Words in literals, and in those that stand for parameters."""


def tokenize(text: str) -> tuple[Token, ...] | None:
    """Return the tokens of a text and some for its end, so that a few of them can always be looked
    at; None if it is not SQL.
    """
    found: list[Token] = []
    try:
        tokens = _Tokenizer().tokenize(text)
    except TokenError:
        return None
    for token in tokens:
        start, end = token.start, token.end + 1
        if found and start < found[-1].end:
            continue  # a suffix of a number, as in 2Y
        kind = _KINDS.get(token.token_type)
        quote = text[start]
        before = found[-1] if found else None
        if kind is Kind.STRING and before and before.end == start and text[before.start] == quote:
            # Two quotes within a string are one.
            found[-1] = Token(kind, f"{before.text}{quote}{token.text}", before.start, end)
        elif kind is not None:
            found.append(Token(kind, token.text, start, end))
        elif _WORD.match(text, start) and not text[start:end].endswith(("'", '"')):
            # A keyword may be several words.
            words = _WORD.finditer(text, start, end)
            found += [Token(Kind.WORD, word[0], word.start(), word.end()) for word in words]
        else:
            found.append(Token(Kind.SYMBOL, text[start:end], start, end))
    while found and found[-1].is_symbol(";"):
        found.pop()
    end = found[-1].end if found else 0
    return (*found, *[Token(Kind.END, "", end, end)] * _LOOK_AHEAD)


class Cursor:
    """A place among the tokens of a statement, and the rules of its grammar that are the smallest.

    Attributes
    ----------
    token
        The token at this place.
    """

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self.text = text
        self._tokens = tokens
        self._place = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._place]

    def ahead(self, count: int = 1) -> Token:
        """Return a token after this one."""
        return self._tokens[min(self._place + count, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Return the token at this place, and go on."""
        token = self.token
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def looks_at(self, words: str) -> bool:
        """True if some keywords or symbols, separated by blanks, are next."""
        return all(
            self.ahead(number).is_word(word) or self.ahead(number).is_symbol(word)
            for number, word in enumerate(words.split())
        )

    def takes(self, words: str) -> bool:
        """Go past some keywords or symbols if they are next; True if they were."""
        if not self.looks_at(words):
            return False
        for _ in words.split():
            self.next()
        return True

    def expect(self, words: str) -> None:
        """Go past some keywords or symbols.

        Raises
        ------
        StatementSyntaxError
            They are not next.
        """
        if not self.takes(words):
            raise self.error(f"{words} is expected")

    def error(self, problem: str) -> StatementSyntaxError:
        """Return the error for the token at this place."""
        return syntax_error(self.text, self.token.start, problem)

    def expect_end(self) -> None:
        """Raise an error if the statement goes on."""
        if self.token.kind is not Kind.END:
            raise self.error("the statement should end")

    def word(self) -> str:
        """Return a part of a name, and go past it."""
        if not self.token.is_name:
            raise self.error("a name is expected")
        return self.next().text

    def name(self) -> tuple[str, ...]:
        """Return a name with dots, and go past it."""
        parts = [self.word()]
        while self.takes("."):
            parts.append(self.word())
        return tuple(parts)

    def column(self) -> str:
        """Return a name of a column as text, with backticks where it was written so."""
        start = self.token
        self.name()
        return self.since(start)

    def since(self, token: Token) -> str:
        """Return the text from a token up to this place."""
        return self.text[token.start : self._tokens[self._place - 1].end]

    def names(self) -> tuple[str, ...]:
        """Return names of columns in parentheses, and go past them."""
        self.expect("(")
        names = [self.column()]
        while self.takes(","):
            names.append(self.column())
        self.expect(")")
        return tuple(names)

    def words(self) -> tuple[str, ...]:
        """Return names of columns, not of their fields, in parentheses, and go past them."""
        self.expect("(")
        names = [self.word()]
        while self.takes(","):
            names.append(self.word())
        self.expect(")")
        return tuple(names)

    def string(self) -> str:
        """Return the text of a string, and go past it."""
        if self.token.kind is not Kind.STRING:
            raise self.error("a string is expected")
        return self.next().text

    def number(self) -> int:
        """Return an integer, and go past it."""
        sign = -1 if self.takes("-") else 1
        token = self.token
        if token.kind is not Kind.NUMBER or not token.text.isdigit():
            raise self.error("an integer is expected")
        self.next()
        return sign * int(token.text)

    def hours(self) -> float:
        """Return a number, and go past it."""
        if self.token.kind is not Kind.NUMBER:
            raise self.error("a number is expected")
        return float(self.next().text)

    def expression(self, *ends: str, closing: Collection[str] = ()) -> str:
        """Return the text up to keywords outside of parentheses and CASE, and go there.

        Parameters
        ----------
        ends
            Keywords, separated by blanks where several belong together.
        closing
            Symbols that end it, too; a closing parenthesis always does.
        """
        first, last = self.token, None
        opened: list[Token] = []
        while self.token.kind is not Kind.END:
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
            if not opened and (
                token.is_symbol(")", *closing)
                or (any(map(self.looks_at, ends)) and not (is_field or is_operator or is_subquery))
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
        return self.text[first.start : last.end]

    def constant(self) -> str:
        """Return the text of a literal, and go past it."""
        start, place = self.token, self._place
        text = self.expression(closing=",")
        for token in self._tokens[place : self._place]:
            is_name = token.kind is Kind.NAME or (token.is_name and not token.is_word(*_LITERAL))
            if is_name or token.is_symbol("*"):
                raise syntax_error(self.text, start.start, "a constant is expected")
        return text

    def in_parentheses(self) -> str:
        """Return the text between parentheses, and go past them."""
        self.expect("(")
        inner = self.expression()
        self.expect(")")
        return inner

    def rest(self) -> str:
        """Go past the rest of the statement."""
        first = last = self.token
        while self.token.kind is not Kind.END:
            last = self.next()
        return self.text[first.start : last.end]


_SHOWN = 30


def syntax_error(text: str, position: int, problem: str) -> StatementSyntaxError:
    """Return the error for a place in a statement."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    shown = text[max(0, position - _SHOWN) : position] + "⟨here⟩" + text[position:][:_SHOWN]
    return StatementSyntaxError(problem=problem, line=line, column=column, excerpt=shown)
