"""Tokens of a SQL text, of sqlglot's tokenizer for Databricks SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from sqlglot import TokenType
from sqlglot.dialects.databricks import Databricks
from sqlglot.errors import TokenError


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
        """Return True if it is one of some keywords, which are given in upper case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.text in symbols

    @property
    def is_name(self) -> bool:
        """True if it may be a part of a name."""
        return self.kind in (Kind.WORD, Kind.NAME)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a text, with its tokens and some for its end, so that a few can be looked at.

    Attributes
    ----------
    whole
        The text that it is a part of.
    follows_from
        True if it comes after FROM, which is not among its tokens.
    """

    whole: str
    tokens: tuple[Token, ...]
    start: int
    end: int
    follows_from: bool = False

    @property
    def text(self) -> str:
        return self.whole[self.start : self.end]


def with_ends(tokens: Sequence[Token], place: int = 0) -> tuple[Token, ...]:
    """Return tokens with some for their end, which is at a place of the text if there are none."""
    end = tokens[-1].end if tokens else place
    return (*tokens, *[Token(Kind.END, "", end, end)] * _LOOK_AHEAD)


class _Tokenizer(Databricks.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()  # else the rest of a statement is one token
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        word: kind
        for word, kind in Databricks.Tokenizer.KEYWORDS.items()
        if word != "?::"  # for Spark a parameter and a cast
    }


_KINDS = {
    TokenType.STRING: Kind.STRING,
    TokenType.RAW_STRING: Kind.STRING,
    TokenType.IDENTIFIER: Kind.NAME,
    TokenType.NUMBER: Kind.NUMBER,
}
_WORD = re.compile(r"\w+")
_LINE = re.compile(r"[^\r\n]*")
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[01][0-7]{2}|.)", re.DOTALL)
_CHARACTERS = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_",
}  # fmt: skip
_LOOK_AHEAD = 4


def tokenize(text: str) -> Fragment | None:
    """Return the tokens of a text; None if it is not SQL, or has comments that Spark does not take
    for comments.
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
        if not _is_blank(text[before.end if before else 0 : start]):
            return None
        joined = before if before is not None and before.end == start else None
        if joined and joined.kind is Kind.NUMBER and _WORD.fullmatch(text, joined.start, end):
            # Names may begin with digits.
            found[-1] = Token(Kind.WORD, text[joined.start : end], joined.start, end)
        elif joined and kind is Kind.STRING and text[joined.start] == quote:
            # Two quotes within a string are one.
            value = f"{joined.text}{quote}{_unquoted(text[start:end])}"
            found[-1] = Token(kind, value, joined.start, end)
        elif kind is Kind.STRING:
            found.append(Token(kind, _unquoted(text[start:end]), start, end))
        elif kind is not None:
            found.append(Token(kind, token.text, start, end))
        elif _WORD.match(text, start) and not text[start:end].endswith(("'", '"')):
            # A keyword may be several words.
            words = _WORD.finditer(text, start, end)
            found += [Token(Kind.WORD, word[0], word.start(), word.end()) for word in words]
        else:
            found.append(Token(Kind.SYMBOL, text[start:end], start, end))
    if not _is_blank(text[found[-1].end if found else 0 :]):
        return None
    while found and found[-1].is_symbol(";"):
        found.pop()
    return Fragment(text, with_ends(found), 0, len(text))


def _is_blank(text: str) -> bool:
    """Return True if the text between two tokens has only blanks and comments for Spark.

    For sqlglot ``{# #}`` is a comment, too. For Spark one goes on after a backslash at its end.
    """
    place, depth = 0, 0
    while place < len(text):
        if text.startswith("/*", place):
            place, depth = place + 2, depth + 1
        elif depth:
            is_end = text.startswith("*/", place)
            place, depth = place + 1 + is_end, depth - is_end
        elif text.startswith("--", place):
            line = _LINE.match(text, place)
            place = len(text) if line is None else line.end()
            if text.startswith("\\\n", place - 1):
                return False
        elif text[place].isspace():
            place += 1
        else:
            return False
    return not depth


def _unquoted(text: str) -> str:
    """Return the value of a string: without quotes, and with Spark's escapes carried out."""
    if text[0] in "rR":
        return text[2:-1]
    return _ESCAPED.sub(_character, text[1:-1])


def _character(escaped: re.Match[str]) -> str:
    code = escaped[1]
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if len(code) > 1 else _CHARACTERS.get(code, code)
