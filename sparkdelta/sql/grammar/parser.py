"""The parts that Delta's statements have in common: tables, aliases, conditions, assignments."""

from __future__ import annotations

from collections.abc import Mapping

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.exceptions import ConflictingSetColumnsError
from sparkdelta.sql.grammar.cursor import Cursor
from sparkdelta.sql.grammar.statement_values import Name
from sparkdelta.sql.grammar.tokens import Kind, Token


class Parser:
    """The state of parsing one statement, and the rules that statements have in common.

    Attributes
    ----------
    target
        The table that it is about, once its name was read.
    is_clone
        True if it creates a table by CLONE.
    """

    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        self.cursor = Cursor(text, tokens)
        self.target: Name | None = None
        self.is_clone = False

    def table(self) -> Name:
        """Go past the name of the table that the statement is about, or its path as a string."""
        token = self.cursor.token
        is_path = token.kind is Kind.STRING
        self.target = ("delta", self.cursor.string()) if is_path else self.cursor.table()
        return self.target

    def alias(self, *ends: str) -> str | None:
        """Return an alias and go past it; None if there is none. The keywords `ends` are no
        aliases.
        """
        if self.cursor.accept("AS"):
            return self.cursor.word()
        token = self.cursor.token
        return self.cursor.word() if token.is_name and not token.is_word(*ends) else None

    def version(self) -> int | None:
        """Go past ``VERSION AS OF`` and its number, if they are next."""
        place = self.cursor.place
        self.cursor.accept("FOR")
        if not (self.cursor.accept("VERSION AS OF") or self.cursor.accept("SYSTEM_VERSION AS OF")):
            self.cursor.place = place
            return None
        token = self.cursor.token
        if token.kind is Kind.STRING and token.text.isdigit():
            return int(self.cursor.string())
        return self.cursor.number()

    def takes_time(self) -> bool:
        """Go past ``TIMESTAMP AS OF``, if it is next; True if it was."""
        for words in ("TIMESTAMP AS OF", "SYSTEM_TIME AS OF"):
            if self.cursor.accept(words) or self.cursor.accept(f"FOR {words}"):
                return True
        return False

    def condition(self, *ends: str) -> str | None:
        """Go past WHERE and its condition, if they are next."""
        return self.cursor.expression(*ends) if self.cursor.accept("WHERE") else None

    def assignments(self, *ends: str) -> Mapping[str, str]:
        """Go past ``a = 1, b.c = 2``.

        Raises
        ------
        ConflictingSetColumnsError
            A column is assigned twice.
        """
        values: dict[str, str] = {}
        while True:
            name = self.cursor.column()
            if not self.cursor.accept("=="):
                self.cursor.expect("=")
            if name in values:
                raise ConflictingSetColumnsError(columns=[name, name])
            values[name] = self.cursor.expression(*ends, closing=",")
            if not self.cursor.accept(","):
                return values

    def partition(self) -> Mapping[str, str | None]:
        """Go past ``(a = 1, b)``; return the values by column, None for those without."""
        cursor, found = self.cursor, dict[str, str | None]()
        cursor.expect("(")
        while True:
            name = cursor.word()
            if name_key(name) in map(name_key, found):
                raise cursor.error(f"{name} is there twice")
            found[name] = cursor.constant() if cursor.accept("=") else None
            if not cursor.accept(","):
                cursor.expect(")")
                return found
