"""The grammar of the statements that define tables: CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.operations.alter.altered_columns import column_path
from sparkdelta.operations.write.create_table import Creation
from sparkdelta.sql.grammar.cursor import Cursor, syntax_error
from sparkdelta.sql.grammar.parser import Parser
from sparkdelta.sql.grammar.statement_values import (
    AddColumns,
    Alter,
    ChangeColumns,
    Clone,
    ColumnText,
    CreateLike,
    CreateTable,
    DropFeature,
    DropTable,
    Name,
    RenameTable,
    ReplaceColumns,
    SetLocation,
    Unsupported,
)
from sparkdelta.sql.grammar.tokens import Kind

_CONSTRAINTS = ("CONSTRAINT", "CHECK", "PRIMARY KEY", "FOREIGN KEY", "UNIQUE", "REFERENCES")
_COLUMN_ENDS = ("NOT NULL", "COMMENT", "DEFAULT", "GENERATED", "FIRST", "AFTER", *_CONSTRAINTS)
_COLUMN_CHANGES = ("TYPE", "COMMENT", "FIRST", "AFTER", "SET", "DROP", "SYNC")
_NO_PROPERTIES = {
    "provider": "it comes after USING",
    "location": "it comes after LOCATION",
    "owner": "it is the user",
    "external": "a table is external if it has a location",
}
_CONSTRAINT_CLAUSE = "a constraint in CREATE TABLE; use ALTER TABLE ... ADD CONSTRAINT ... CHECK"
_Altered: TypeAlias = (
    Alter | ChangeColumns | AddColumns | ReplaceColumns | RenameTable | SetLocation | DropFeature
    | Unsupported
)  # fmt: skip
_Created: TypeAlias = CreateTable | CreateLike | Clone | Unsupported


def create_table(parser: Parser) -> _Created:
    """``CREATE TABLE [IF NOT EXISTS]``, after its first keywords."""
    if_missing = parser.cursor.accept("IF NOT EXISTS")
    return _created(parser, Creation.CREATE_IF_NOT_EXISTS if if_missing else Creation.CREATE)


def create_or_replace_table(parser: Parser) -> _Created:
    """``CREATE OR REPLACE TABLE``, after its keywords."""
    return _created(parser, Creation.CREATE_OR_REPLACE)


def replace_table(parser: Parser) -> _Created:
    """``REPLACE TABLE``, after its keywords."""
    return _created(parser, Creation.REPLACE)


def _created(parser: Parser, creation: Creation) -> _Created:
    cursor, target = parser.cursor, parser.table()
    if cursor.accept("LIKE"):
        return _like(parser, creation)
    if cursor.peek("SHALLOW") or cursor.peek("DEEP") or cursor.peek("CLONE"):
        return _clone(parser, creation)
    statement = CreateTable(target=target, creation=creation)
    if cursor.accept("("):
        columns = _columns(cursor)
        if any(map(cursor.peek, _CONSTRAINTS)):
            cursor.rest()
            return Unsupported(target, _CONSTRAINT_CLAUSE)
        cursor.expect(")")
        statement = replace(statement, columns=columns)
    seen: set[str] = set()
    while cursor.token.kind is not Kind.END:
        clause = cursor.token.text.upper()
        if clause in seen:
            raise cursor.error(f"{clause} is there twice")
        seen.add(clause)
        if cursor.accept("USING"):
            statement = replace(statement, provider=cursor.word().lower())
        elif cursor.accept("PARTITIONED BY"):
            names, more = _partitions(cursor)
            columns = (*statement.columns, *more)
            statement = replace(statement, partition_by=names, columns=columns)
        elif cursor.accept("CLUSTER BY"):
            statement = replace(statement, cluster_by=cursor.names())
        elif cursor.peek("LOCATION") or cursor.peek("OPTIONS"):
            if statement.location is not None:
                raise cursor.error("the location is there twice")
            statement = replace(statement, location=_location(cursor))
        elif cursor.accept("COMMENT"):
            statement = replace(statement, comment=cursor.string())
        elif cursor.accept("TBLPROPERTIES"):
            statement = replace(statement, properties=_table_properties(cursor))
        else:
            cursor.accept("AS")
            starts = cursor.token.is_word("SELECT", "WITH", "VALUES", "TABLE", "FROM")
            if not starts and not cursor.peek("("):
                raise cursor.error("a clause of CREATE TABLE is expected")
            if statement.columns:
                raise cursor.error("a table has either definitions of columns or a query")
            return replace(statement, query=cursor.rest())
    return statement


def _location(cursor: Cursor) -> str:
    """Return ``LOCATION '/p'`` or ``OPTIONS (path = '/p')``, and go past it."""
    if cursor.accept("LOCATION"):
        return cursor.string()
    cursor.expect("OPTIONS")
    start, options = cursor.token.start, cursor.properties()
    if list(map(str.lower, options)) != ["path"]:
        raise syntax_error(cursor.text, start, "the only option of a Delta table is its path")
    return next(iter(options.values()))


def _partitions(cursor: Cursor) -> tuple[tuple[str, ...], tuple[ColumnText, ...]]:
    """Return the names of partition columns, and the definitions of those that have a type here."""
    names, columns = list[str](), list[ColumnText]()
    cursor.expect("(")
    while True:
        if cursor.ahead().is_symbol("("):
            raise cursor.error("the name of a column is expected")
        if cursor.ahead().is_symbol(",", ")"):
            names.append(cursor.word())
        else:
            columns.append(_column(cursor, in_table=True))
            names += column_path(columns[-1].name)
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(names), tuple(columns)


def _like(parser: Parser, creation: Creation) -> CreateLike:
    cursor = parser.cursor
    statement = CreateLike(target=parser.target or (), source=cursor.table(), creation=creation)
    if creation not in (Creation.CREATE, Creation.CREATE_IF_NOT_EXISTS):
        raise cursor.error("LIKE goes with CREATE TABLE, not with REPLACE")
    while cursor.token.kind is not Kind.END:
        if cursor.accept("USING"):
            statement = replace(statement, provider=cursor.word().lower())
        elif cursor.accept("LOCATION"):
            statement = replace(statement, location=cursor.string())
        else:
            cursor.expect("TBLPROPERTIES")
            statement = replace(statement, properties=_table_properties(cursor))
    return statement


def _clone(parser: Parser, creation: Creation) -> Clone:
    cursor, target = parser.cursor, parser.target or ()
    parser.is_clone = True
    deep = not cursor.accept("SHALLOW")
    cursor.accept("DEEP")
    cursor.expect("CLONE")
    clone = Clone(target=target, source=cursor.table(), deep=deep, creation=creation)
    version = parser.version()
    if version is not None:
        clone = replace(clone, version=version)
    elif parser.takes_time():
        clone = replace(clone, timestamp=cursor.expression("TBLPROPERTIES", "LOCATION"))
    if cursor.accept("TBLPROPERTIES"):
        clone = replace(clone, properties=_table_properties(cursor))
    return replace(clone, location=cursor.string()) if cursor.accept("LOCATION") else clone


def drop_table(parser: Parser) -> DropTable:
    """``DROP TABLE``, after its keywords."""
    parser.cursor.accept("IF EXISTS")
    target = parser.table()
    parser.cursor.accept("PURGE")
    return DropTable(target)


def _columns(cursor: Cursor) -> tuple[ColumnText, ...]:
    """Return the definitions of all columns of a table, and go past them."""
    found = [_column(cursor, in_table=True)]
    while cursor.accept(",") and not _is_constraint(cursor):
        found.append(_column(cursor, in_table=True))
    return tuple(found)


def _is_constraint(cursor: Cursor) -> bool:
    """True at a constraint, but not at a column whose name is such a keyword."""
    if cursor.token.is_word("CONSTRAINT"):
        return cursor.ahead(2).is_word("CHECK", "PRIMARY", "FOREIGN", "UNIQUE")
    return any(map(cursor.peek, ("CHECK (", "PRIMARY KEY", "FOREIGN KEY", "UNIQUE (")))


def _added_columns(cursor: Cursor) -> tuple[ColumnText, ...]:
    """Return the definitions of new columns, perhaps in parentheses, and go past them."""
    if cursor.peek("IF NOT EXISTS"):
        raise cursor.error("the name of a column is expected")
    is_enclosed = cursor.accept("(")
    found = [_column(cursor, in_table=False)]
    while cursor.accept(","):
        found.append(_column(cursor, in_table=False))
    if is_enclosed:
        cursor.expect(")")
    return tuple(found)


def _column(cursor: Cursor, *, in_table: bool) -> ColumnText:
    start = cursor.token.start
    name = cursor.column()
    if in_table and len(column_path(name)) > 1:
        problem = "a column is expected, not a field of one; give a struct with all of its fields"
        raise syntax_error(cursor.text, start, problem)
    column = ColumnText(name=name, data_type=_type(cursor))
    while True:
        if cursor.accept("NOT NULL"):
            column = replace(column, nullable=False)
        elif cursor.accept("COMMENT"):
            column = replace(column, comment=cursor.string())
        elif cursor.accept("DEFAULT"):
            default = cursor.expression(*_COLUMN_ENDS, closing=",")
            column = replace(column, default=default)
        elif in_table and cursor.accept("GENERATED"):
            column = _generated(cursor, column)
        elif not in_table and cursor.accept("FIRST"):
            column = replace(column, is_first=True)
        elif not in_table and cursor.accept("AFTER"):
            column = replace(column, after=cursor.column())
        else:
            return column


def _generated(cursor: Cursor, column: ColumnText) -> ColumnText:
    by_default = cursor.accept("BY DEFAULT")
    if not by_default:
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    if not cursor.accept("IDENTITY"):
        return replace(column, generated=cursor.in_parentheses())
    start = step = 1
    if cursor.accept("("):
        while not cursor.accept(")"):
            if cursor.accept("START WITH"):
                start = cursor.number()
            else:
                cursor.expect("INCREMENT BY")
                step = cursor.number()
            cursor.accept(",")
    return replace(column, identity=(start, step, by_default))


def _type(cursor: Cursor) -> str:
    """Return the text of a type, and go past it."""
    depth, start, last = 0, cursor.token, None
    while cursor.token.kind is not Kind.END:
        token = cursor.token
        is_end = token.is_symbol(",", ")") or any(map(cursor.peek, _COLUMN_ENDS))
        if not depth and is_end:
            break
        if token.kind is Kind.SYMBOL:
            depth += sum(token.text.count(sign) for sign in "(<")
            depth -= sum(token.text.count(sign) for sign in ")>")
        last = cursor.next()
    if last is None:
        raise cursor.error("a type is expected")
    return cursor.text[start.start : last.end]


def _table_properties(cursor: Cursor) -> dict[str, str]:
    """Return the properties of a table, and go past them.

    Raises
    ------
    StatementSyntaxError
        One is no property: Spark's SQL has another clause for it.
    """
    start, properties = cursor.token.start, cursor.properties()
    for name in properties:
        if name in _NO_PROPERTIES:
            problem = f"{name} is no property of a table: {_NO_PROPERTIES[name]}"
            raise syntax_error(cursor.text, start, problem)
    return properties


def alter_table(
    parser: Parser,
) -> _Altered:
    """``ALTER TABLE``, after its keywords."""
    cursor, target = parser.cursor, parser.table()

    def alter(method: str, *values: Any, **options: Any) -> Alter:
        return Alter(target, method, values, options)

    if cursor.accept("SET TBLPROPERTIES"):
        return alter("set_properties", _table_properties(cursor))
    if cursor.accept("UNSET TBLPROPERTIES"):
        if_exists = cursor.accept("IF EXISTS")
        cursor.expect("(")
        keys = [cursor.property()]
        while cursor.accept(","):
            keys.append(cursor.property())
        cursor.expect(")")
        return alter("unset_properties", keys, if_exists=if_exists)
    if cursor.accept("ADD CONSTRAINT"):
        name = cursor.word()
        cursor.expect("CHECK")
        return alter("add_constraint", name, cursor.in_parentheses())
    if cursor.accept("DROP CONSTRAINT"):
        if_exists = cursor.accept("IF EXISTS")
        return alter("drop_constraint", cursor.word(), if_exists=if_exists)
    if cursor.accept("DROP FEATURE"):
        name = cursor.property()
        return DropFeature(target, name, truncates_history=cursor.accept("TRUNCATE HISTORY"))
    if cursor.accept("ADD COLUMNS") or cursor.accept("ADD COLUMN"):
        return AddColumns(target, _added_columns(cursor))
    if cursor.accept("REPLACE COLUMNS"):
        cursor.expect("(")
        columns = _columns(cursor)
        cursor.expect(")")
        return ReplaceColumns(target, columns)
    if cursor.accept("RENAME TO"):
        return RenameTable(target, cursor.name())
    if cursor.accept("SET LOCATION"):
        return SetLocation(target, cursor.string())
    if cursor.accept("RENAME COLUMN"):
        name = cursor.column()
        cursor.expect("TO")
        return alter("rename_column", name, cursor.word())
    if cursor.accept("DROP COLUMNS") or cursor.accept("DROP COLUMN"):
        if_exists = cursor.accept("IF EXISTS")
        names = cursor.names() if cursor.peek("(") else cursor.columns()
        return alter("drop_columns", *names, if_exists=if_exists)
    if cursor.accept("CLUSTER BY"):
        return alter("cluster_by", *(() if cursor.accept("NONE") else cursor.names()))
    if cursor.accept("ALTER COLUMN") or cursor.accept("ALTER"):
        return _altered_columns(cursor, alter, target)
    if cursor.accept("CHANGE COLUMN") or cursor.accept("CHANGE"):
        return _changed_column(cursor, alter, target)
    words = " ".join(token.text.upper() for token in (cursor.token, cursor.ahead()))
    cursor.rest()
    return Unsupported(target, f"ALTER TABLE ... {words.strip()}")


def _altered_columns(
    cursor: Cursor, alter: Callable[..., Alter], target: Name
) -> Alter | ChangeColumns | Unsupported:
    """``ALTER [COLUMN] a TYPE INT, b FIRST``."""
    found = _change(cursor, alter, target, cursor.column())
    changes = list[Alter]()
    while isinstance(found, Alter) and found.method == "change_column":
        if name_key(found.values[0]) in (name_key(each.values[0]) for each in changes):
            raise cursor.error(f"{found.values[0]} is changed twice")
        changes.append(found)
        if not cursor.accept(","):
            return found if len(changes) == 1 else ChangeColumns(target, tuple(changes))
        found = _change(cursor, alter, target, cursor.column())
    if changes and isinstance(found, Alter):
        raise cursor.error("SYNC IDENTITY goes with one column alone")
    return found


def _change(
    cursor: Cursor, alter: Callable[..., Alter], target: Name, name: str
) -> Alter | Unsupported:
    """Go past what changes in a column."""
    if cursor.accept("SYNC IDENTITY"):
        return alter("sync_identity", name)
    if cursor.accept("TYPE"):
        return alter("change_column", name, _type(cursor))
    if cursor.accept("COMMENT"):
        return alter("change_column", name, comment=cursor.string())
    if cursor.accept("FIRST"):
        return alter("change_column", name, first=True)
    if cursor.accept("AFTER"):
        return alter("change_column", name, after=cursor.column())
    if cursor.accept("DROP NOT NULL"):
        return alter("change_column", name, drop_not_null=True)
    if cursor.accept("SET NOT NULL"):
        return alter("change_column", name, set_not_null=True)
    if cursor.accept("DROP DEFAULT"):
        return alter("change_column", name, drop_default=True)
    if cursor.accept("SET DEFAULT"):
        return alter("change_column", name, default=cursor.expression(closing=","))
    words = cursor.rest()
    return Unsupported(target, f"ALTER COLUMN ... {words}")


def _changed_column(
    cursor: Cursor, alter: Callable[..., Alter], target: Name
) -> Alter | Unsupported:
    """``CHANGE [COLUMN] a a INT [COMMENT] [FIRST | AFTER]``, or what follows ALTER COLUMN, too."""
    name = cursor.column()
    is_named = name_key(cursor.token.text) == name_key(column_path(name)[-1])
    if cursor.token.is_word(*_COLUMN_CHANGES) and not is_named:
        return _change(cursor, alter, target, name)
    column = _column(cursor, in_table=False)
    if name_key(column.name.split(".")[-1].strip("`")) != name_key(name.split(".")[-1].strip("`")):
        return Unsupported(target, "CHANGE COLUMN to another name; use RENAME COLUMN")
    if not column.nullable or column.default is not None:
        return Unsupported(target, "CHANGE COLUMN with NOT NULL or DEFAULT")
    options: Mapping[str, Any] = {
        "comment": column.comment,
        "first": column.is_first,
        "after": column.after,
    }
    return alter("change_column", name, column.data_type, **options)
