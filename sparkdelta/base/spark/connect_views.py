"""Permanent views in the session catalog of a Spark Connect server.

The server analyzes the text of a view when it is created or renamed. It does so in a session of our
own, which knows Delta tables by name, while the session catalog shows their columns.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, finalize

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from sparkdelta.base.predicates.resolved_names import name_parts
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.schema.row_checks import CHAR_OR_VARCHAR
from sparkdelta.base.schema.sql_text import type_text
from sparkdelta.base.schema.stored_view import StoredView, TablesOfView, TableView
from sparkdelta.base.schema.table_schema import quoted, quoted_path
from sparkdelta.base.spark.connect_catalog import ConnectCatalog, comment_of, line_of, literal
from sparkdelta.base.spark.connect_sessions import (
    change_settings,
    connect_sibling,
    copy_sql_settings,
)
from sparkdelta.base.spark.connect_temporary_views import (
    SentView,
    forget_global_view,
    sent_view,
)
from sparkdelta.base.spark.connect_view_plans import (
    RowsMark,
    is_query,
    mark_rows,
    table_of_relation,
)
from sparkdelta.base.spark.driver import read_rows
from sparkdelta.base.spark.library_sessions import set_up_for_view
from sparkdelta.exceptions import DeltaError

_GLOBAL_VIEWS = "spark.sql.globalTempDatabase"
_VERSION_OPTIONS = ("spark.sql.timeTravelVersionKey", "spark.sql.timeTravelTimestampKey")
_KEPT_SETTING = "view.sqlConfig."
_CURRENT_SETTINGS = "spark.sql.legacy.useCurrentConfigsForView"
_ATTEMPTS, MAX_COLUMNS = 5, 100_000
_defining = threading.Lock()
"""Held while the catalog shows the columns of tables: threads of a program define many views."""

_released: WeakKeyDictionary[SparkSession, list[str]] = WeakKeyDictionary()
"""Temporary views of the users' sessions whose DataFrames are gone."""


class ConnectViews(ConnectCatalog):
    """The part of a Spark Connect engine that reads and defines permanent views."""

    def table_or_view(self, name: Sequence[str], provider: str) -> str | StoredView | None:
        """Return the location of a table of a provider, or a permanent view; None for the rest."""
        text = self._information(name)
        if line_of(text, "Type") != "VIEW":
            return self._location(text, provider)
        named = quoted_path((line_of(text, "Database") or "", line_of(text, "Table") or ""))
        described = self.spark.sql(f"DESCRIBE TABLE EXTENDED {named} AS JSON")
        (row,) = read_rows(described, what="definition of a view", bound=1)
        shown = self.spark.sql(f"DESCRIBE TABLE {named}")
        columns = read_rows(shown, what="columns of a view", bound=MAX_COLUMNS)
        kinds = {column[0]: str(column[1]) for column in columns}  # JSON has no CHAR and VARCHAR
        return _stored_view(json.loads(row[0]), kinds)

    def is_temporary_view(self, name: Sequence[str]) -> bool:
        if len(name) > 2:
            return False
        shared = str(self.spark.conf.get(_GLOBAL_VIEWS))
        within = "" if len(name) == 1 else shared
        if len(name) == 2 and name[0].lower() != shared:
            return False
        listed = self.spark.sql(f"SHOW VIEWS IN {shared}")  # and the session's own
        is_named = F.lower("viewName") == name[-1].lower()
        found = listed.where(is_named & (F.col("namespace") == within) & F.col("isTemporary"))
        return bool(read_rows(found, what="a temporary view", bound=1))

    def update_columns_of_view(self, view: StoredView, schema: StructType) -> None:
        """Keep the columns of the creation: no statement changes them alone."""

    def mark_rows_of_table(
        self, rows: DataFrame, table_root: str, version: Version | None = None
    ) -> None:
        if version is None:
            mark_rows(rows, RowsMark(table_root, columns=tuple(rows.columns)))
        else:
            mark_rows(rows, RowsMark(table_root, str(version)))

    def mark_query(self, rows: DataFrame) -> None:
        mark_rows(rows, RowsMark(is_query=True))

    def mark_rows_of_view(self, rows: DataFrame) -> None:
        mark_rows(rows, RowsMark())

    def is_view_of_query(self, name: Sequence[str]) -> bool:
        view = self._sent_view(name)
        return view is not None and is_query(view.relation, view.marks)

    def table_of_view(self, name: Sequence[str]) -> TableView | None:
        view = self._sent_view(name)
        return None if view is None else table_of_relation(view.relation, view.marks)

    def following_view(self, name: Sequence[str]) -> DataFrame | None:
        view = self._sent_view(name)
        return None if view is None else _named_rows(self.spark, quoted_path(name))

    def _sent_view(self, name: Sequence[str]) -> SentView | None:
        client: Any = self.spark.client
        return sent_view(client, name)

    @contextmanager
    def view_session(self, view: StoredView) -> Iterator[SparkSession]:
        with connect_sibling(self.spark, {}) as sibling:
            set_up_for_view(sibling, view, self.spark)
            yield sibling

    def rows_of_view(self, rows: DataFrame) -> DataFrame:
        """Return the rows by a temporary view, which keeps their analyzed plan and goes from one
        session to the other by a global one.

        A temporary view is dropped with the session, or by the next call after its DataFrame is
        gone: no request may be sent wherever Python finds that.
        """
        name, before = f"sparkdelta_{uuid4().hex}", _released.setdefault(self.spark, [])
        while before:
            self.spark.catalog.dropTempView(before.pop())
        rows.createGlobalTempView(name)
        made: Any = rows.sparkSession
        forget_global_view(made.client, name)  # the plan may call functions that are dropped next
        try:
            shared = _named_rows(self.spark, f"{self.spark.conf.get(_GLOBAL_VIEWS)}.{name}")
            shared.createTempView(name)
        finally:
            rows.sparkSession.catalog.dropGlobalTempView(name)
        kept: Any = _named_rows(self.spark, name)
        finalize(kept._plan, before.append, name).atexit = False
        return cast(DataFrame, kept)

    def text_of_view(
        self,
        query: str,  # noqa: ARG002 - the server knows no versions
        without_versions: Callable[[], str],
    ) -> str:
        return without_versions()

    def define_view(
        self,
        name: Sequence[str],
        statement: str,
        rows: DataFrame,  # noqa: ARG002 - the server finds the columns
        tables: Callable[[], TablesOfView],
    ) -> None:
        read = tables()
        with self._knowing(read) as run:
            settings = run(statement)
        if settings:  # Spark keeps them with the view; only the text may count
            kept = ", ".join(f"'{_KEPT_SETTING}{each}'" for each in settings)
            view = quoted_path(self._qualified(name))
            self.spark.sql(f"ALTER VIEW {view} UNSET TBLPROPERTIES IF EXISTS ({kept})")

    def rename_view(
        self, name: Sequence[str], new_name: Sequence[str], tables: Callable[[], TablesOfView]
    ) -> None:
        old, new = self._names_to_rename(name, new_name)
        with self._knowing(tables()) as run:
            run(f"ALTER VIEW {quoted_path(old)} RENAME TO {quoted_path(new)}")

    def drop_view(self, name: Sequence[str]) -> None:
        self._change(f"DROP VIEW {self._quoted(name)}")

    @contextmanager
    def _knowing(self, read: TablesOfView) -> Iterator[Callable[[str], Collection[str]]]:
        """Yield a function that runs a statement in which the server analyzes text over tables, in
        the user's database and with the user's settings, and returns other settings it needed.
        """
        others = dict.fromkeys(_VERSION_OPTIONS, "sparkdelta") if read.has_versions else {}
        others |= {_CURRENT_SETTINGS: "true"} if read.has_inner_versions else {}
        with self._naming_session() as naming, self._naming_session() as defining:
            copy_sql_settings(self.spark, defining)
            change_settings(defining, others)
            defining.sql(f"USE {self.spark.catalog.currentDatabase()}")

            def run(statement: str) -> Collection[str]:
                for attempt in range(_ATTEMPTS):
                    with _defining, ExitStack() as undo:
                        for table, schema in read.columns.items():
                            undo.enter_context(self._showing(naming, table, schema))
                        try:
                            defining.sql(statement)
                            return others
                        except DeltaError:
                            raise
                        except AnalysisException:
                            # Another program may have hidden the columns meanwhile.
                            is_last = attempt == _ATTEMPTS - 1
                            if is_last or all(
                                _shows(naming, *each) for each in read.columns.items()
                            ):
                                raise
                raise AssertionError

            yield run

    @contextmanager
    def _showing(
        self, naming: SparkSession, name: Sequence[str], schema: StructType
    ) -> Iterator[None]:
        """Let the session catalog show the columns of a table in a block."""
        table = quoted_path(name)
        before = naming.table(table).schema
        if _texts(before) == _texts(schema):
            yield
            return
        information = self._information(name)
        with ExitStack() as undo:
            undo.callback(self._restore_comment, naming, name, comment_of(information))
            self._match_location(naming, name, information)
            columns = ", ".join(_texts(schema))
            undo.callback(_hide_columns, naming, table, schema, before)
            naming.sql(f"ALTER TABLE {table} {'REPLACE' if before else 'ADD'} COLUMNS ({columns})")
            yield


def _shows(naming: SparkSession, name: Sequence[str], schema: StructType) -> bool:
    return _texts(naming.table(quoted_path(name)).schema) == _texts(schema)


def _hide_columns(naming: SparkSession, table: str, schema: StructType, before: StructType) -> None:
    if before:
        naming.sql(f"ALTER TABLE {table} REPLACE COLUMNS ({', '.join(_texts(before))})")
    else:
        columns = ", ".join(map(quoted, schema.names))
        naming.sql(f"ALTER TABLE {table} DROP COLUMNS IF EXISTS ({columns})")


def _texts(schema: StructType) -> list[str]:
    """Return columns as SQL text."""
    texts = []
    for field in schema:
        metadata = field.metadata or {}
        comment = metadata.get("comment")
        kind = metadata.get(CHAR_OR_VARCHAR) or type_text(field.dataType)
        about = "" if comment is None else f" COMMENT {literal(comment)}"
        texts.append(f"{quoted(field.name)} {kind}{about}")
    return texts


def _named_rows(spark: SparkSession, name: str) -> DataFrame:
    """Return the rows of a temporary view; methods of an enabled session look for a table."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
    from pyspark.sql.connect.plan import Read

    return cast(DataFrame, ConnectFrame(Read(name), cast(Any, spark)))


def _stored_view(described: Mapping[str, Any], kinds: Mapping[str, str]) -> StoredView:
    """Return a view as DESCRIBE ... AS JSON describes it.

    Parameters
    ----------
    kinds
        The types of the columns as DESCRIBE shows them.
    """
    columns = [_field(each, kinds.get(each["name"], "")) for each in described["columns"]]
    return StoredView(
        name=(described["catalog_name"], *described["namespace"], described["table_name"]),
        text=described["view_text"],
        namespace=tuple(name_parts(described["view_catalog_and_namespace"])),
        settings=described.get("view_creation_spark_configuration", {}),
        schema=StructType(columns),
        query_columns=tuple(described.get("view_query_output_columns", ())),
        mode=described["view_schema_mode"],
    )


_SIMPLE: Mapping[str, DataType] = {
    each.simpleString(): each
    for each in (
        BinaryType(), BooleanType(), ByteType(), DateType(), DoubleType(), FloatType(),
        IntegerType(), LongType(), NullType(), ShortType(), TimestampNTZType(), VariantType(),
    )
} | {"timestamp_ltz": TimestampType()}  # fmt: skip


def _field(described: Mapping[str, Any], kind: str = "") -> StructField:
    comment, nullable = described.get("comment"), described.get("nullable", True)
    metadata = {} if comment is None else {"comment": comment}
    if kind.startswith(("char(", "varchar(")):
        metadata[CHAR_OR_VARCHAR] = kind
    return StructField(described["name"], _type(described["type"]), nullable, metadata)


def _type(described: Mapping[str, Any]) -> DataType:
    """Return a type as DESCRIBE ... AS JSON describes it."""
    name = described["name"]
    match name:
        case "struct":
            return StructType([_field(each) for each in described["fields"]])
        case "array":
            return ArrayType(_type(described["element_type"]), described["element_nullable"])
        case "map":
            key, value = _type(described["key_type"]), _type(described["value_type"])
            return MapType(key, value, described["value_nullable"])
        case "decimal":
            return DecimalType(described["precision"], described["scale"])
        case "string":
            return StringType(described.get("collation", "UTF8_BINARY"))
        case "interval":
            start, end = described["start_unit"], described["end_unit"]
            for kind in (DayTimeIntervalType, YearMonthIntervalType):
                units = kind._inverted_fields
                if start in units:
                    return kind(units[start], units[end])
    if name not in _SIMPLE:
        kind_of_view = f"a view with a column of type {name}"
        raise DeltaError.of("DELTA_STATEMENT_NOT_SUPPORTED", statement=kind_of_view)
    return _SIMPLE[name]
