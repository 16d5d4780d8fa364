"""A cursor over the tokens of a statement, with the basic parsing steps."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sparkdelta.base.predicates.resolved_names import UnusableError, name_parts
from sparkdelta.exceptions import StatementSyntaxError
from sparkdelta.sql.grammar.tokens import Kind, Token

_BITS = re.compile(r"CAST\(X'((?:[0-9a-f]{2})*)' AS string\)")
"""Regular expression of the literal of a string parameter that is not plain text."""
_LITERAL = (
    "NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "INTERVAL", "X",
    "CAST", "AS", "STRING", "DOUBLE",
)  # fmt: skip
"""Words that occur in literals, including the literals of parameters."""


class Cursor:
    """A position among a statement's tokens, with the basic parsing steps.

    Attributes
    ----------
    token
        The token at this place.
    """

    def __init__(self, text: str, tokens: tuple[Token, ...], place: int = 0) -> None:
        self.text = text
        self.tokens = tokens
        self.place = place

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

    def peek(self, words: str) -> bool:
        """True if some keywords or symbols, separated by blanks, are next."""
        return all(
            self.ahead(number).is_word(word) or self.ahead(number).is_symbol(word)
            for number, word in enumerate(words.split())
        )

    def accept(self, words: str) -> bool:
        """Go past some keywords or symbols if they are next; True if they were."""
        if not self.peek(words):
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
        if not self.accept(words):
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
        while self.accept("."):
            parts.append(self.word())
        return tuple(parts)

    def table(self) -> tuple[str, ...]:
        """Return the name of a table, perhaps within IDENTIFIER, and go past it."""
        found = name_of_table(self.text, self.tokens, self.place)
        if found is None:
            raise self.error("a name is expected")
        self.place, name = found
        return name

    def column(self) -> str:
        """Return a name of a column as text, with backticks where it was written so."""
        start = self.token
        self.name()
        return self.since(start)

    def since(self, token: Token) -> str:
        """Return the text from a token up to this place."""
        return self.text[token.start : self.tokens[self.place - 1].end]

    def columns(self) -> tuple[str, ...]:
        """Return names of columns, and go past them."""
        names = [self.column()]
        while self.accept(","):
            names.append(self.column())
        return tuple(names)

    def names(self) -> tuple[str, ...]:
        """Return names of columns in parentheses, and go past them."""
        self.expect("(")
        names = self.columns()
        self.expect(")")
        return names

    def words(self) -> tuple[str, ...]:
        """Return names of columns, not of their fields, in parentheses, and go past them."""
        self.expect("(")
        names = [self.word()]
        while self.accept(","):
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
        sign = -1 if self.accept("-") else 1
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

    def properties(self) -> dict[str, str]:
        """Return ``(key = value, ...)``, and go past it."""
        found = {}
        self.expect("(")
        while True:
            key = self.property()
            self.accept("=")
            if self.token.is_word("TRUE", "FALSE"):
                found[key] = self.next().text.lower()
            elif self.token.kind in (Kind.STRING, Kind.NUMBER):
                found[key] = self.next().text
            else:
                raise self.error("a string, a number, TRUE or FALSE is expected")
            if not self.accept(","):
                self.expect(")")
                return found

    def property(self) -> str:
        """Return the key of a property, a string or a name, and go past it."""
        return self.string() if self.token.kind is Kind.STRING else ".".join(self.name())

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
        return self.text[first.start : last.end]

    def constant(self) -> str:
        """Return the text of a literal, and go past it."""
        start, place = self.token, self.place
        text = self.expression(closing=",")
        for token in self.tokens[place : self.place]:
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


def name_of_table(
    text: str, tokens: Sequence[Token], place: int
) -> tuple[int, tuple[str, ...]] | None:
    """Return the name of a table, as a name with dots or in ``IDENTIFIER('a' || '.b')``, and the
    place after it; None if there is none.

    Raises
    ------
    StatementSyntaxError
        IDENTIFIER has something else than strings.
    """
    if not tokens[place].is_name:
        return None
    if tokens[place].is_word("IDENTIFIER") and tokens[place + 1].is_symbol("("):
        return _identifier(text, tokens, place + 2)
    name = [tokens[place].text]
    place += 1
    while tokens[place].is_symbol(".") and tokens[place + 1].is_name:
        name.append(tokens[place + 1].text)
        place += 2
    return place, tuple(name)


def _identifier(text: str, tokens: Sequence[Token], place: int) -> tuple[int, tuple[str, ...]]:
    """Return the name that strings spell, after IDENTIFIER and its parenthesis."""
    start, parts = tokens[place].start, []
    while True:
        if tokens[place].kind is Kind.STRING:
            parts.append(tokens[place].text)
            place += 1
        elif tokens[place].is_word("CAST") and (bits := _BITS.match(text, tokens[place].start)):
            parts.append(bytes.fromhex(bits[1]).decode())
            while tokens[place].start < bits.end():
                place += 1
        else:
            raise syntax_error(text, tokens[place].start, "a string is expected")
        if not tokens[place].is_symbol("||"):
            break
        place += 1
    if not tokens[place].is_symbol(")"):
        raise syntax_error(text, tokens[place].start, ") is expected")
    try:
        return place + 1, tuple(name_parts("".join(parts).strip()))
    except UnusableError:
        raise syntax_error(text, start, "the name of a table is expected") from None


_SHOWN = 30


def syntax_error(text: str, position: int, problem: str) -> StatementSyntaxError:
    """Return the error for a place in a statement."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    shown = text[max(0, position - _SHOWN) : position] + "⟨here⟩" + text[position:][:_SHOWN]
    return StatementSyntaxError(problem=problem, line=line, column=column, excerpt=shown)
