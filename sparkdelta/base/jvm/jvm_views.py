"""Views of classic Spark: permanent ones in the session catalog, and temporary ones of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sparkdelta.base.jvm.jvm import analyzed, class_name, frame_of, plan_tag, scala_items
from sparkdelta.base.jvm.jvm_catalog import JvmCatalog, copied
from sparkdelta.base.jvm.jvm_scans import java_schema_of
from sparkdelta.base.protocol.log_files import Version
from sparkdelta.base.schema.stored_view import StoredView, TablesOfView, TableView
from sparkdelta.base.schema.table_schema import as_nullable, quoted_path

_COUNT_OF_VIEW, _COLUMN_OF_VIEW = "view.query.out.numCols", "view.query.out.col."


class JvmViews(JvmCatalog):
    """The part of a classic engine that knows views."""

    def text_of_view(
        self,
        query: str,
        without_versions: Callable[[], str],  # noqa: ARG002 - the plan of the rows has them
    ) -> str:
        """Return the query that a permanent view keeps.

        Parameters
        ----------
        without_versions
            Returns the query with ``VERSION AS OF`` and ``TIMESTAMP AS OF`` as options.
        """
        return query

    def define_view(
        self,
        name: Sequence[str],  # noqa: ARG002 - the plan has it
        statement: str,
        rows: DataFrame,
        tables: Callable[[], TablesOfView],  # noqa: ARG002 - the rows have the columns
    ) -> None:
        """Define a permanent view as Spark does, with the text of a statement.

        Parameters
        ----------
        statement
            CREATE VIEW, or ALTER VIEW with a query.
        rows
            The rows of the view, or others with its columns; not made from temporary views.
        tables
            Returns the tables that the text reads; only Spark Connect asks for them.
        """
        plan = self._state.parser.parsePlan(statement)
        children = self.jvm.PythonUtils.toSeq([plan.children().apply(0), analyzed(rows)])
        frame_of(plan.withNewChildren(children), self.spark)

    def update_columns_of_view(self, view: StoredView, schema: StructType) -> None:
        """Keep the columns that a permanent view has now, as Spark does where its mode allows it;
        does nothing on Spark Connect.
        """
        if as_nullable(schema) == as_nullable(view.schema):
            return
        catalog, identifier = self._catalog, self._identifier(view.name[1:])
        stored = catalog.getTableMetadata(identifier)
        properties = stored.properties()
        if view.mode == "EVOLUTION":
            kept = {_COUNT_OF_VIEW: str(len(schema))}
            kept |= {f"{_COLUMN_OF_VIEW}{n}": name for n, name in enumerate(schema.names)}
            for name, value in kept.items():
                properties = properties.updated(name, value)
        columns = java_schema_of(self.jvm, schema)
        catalog.alterTable(copied(stored, schema=columns, properties=properties))

    def rename_view(
        self,
        name: Sequence[str],
        new_name: Sequence[str],
        tables: Callable[[], TablesOfView],  # noqa: ARG002 - the text is not analyzed
    ) -> None:
        """Rename a permanent view, see `define_view` and `rename_table`."""
        self.rename_table(name, new_name)

    def mark_rows_of_table(
        self, rows: DataFrame, table_root: str, version: Version | None = None
    ) -> None:
        """Mark rows in their plan as all rows of a table, for `table_of_view`.

        Parameters
        ----------
        version
            The version that the rows stay at, if they do not follow the table.
        """
        plan = analyzed(rows)
        plan.setTagValue(self._mark, table_root)
        if version is not None:
            plan.setTagValue(self._version_mark, str(version))

    def mark_query(self, rows: DataFrame) -> None:
        """Mark rows in their plan as a query that defines a view, for `is_view_of_query`."""
        analyzed(rows).setTagValue(self._query_mark, "")

    def mark_rows_of_view(self, rows: DataFrame) -> None:
        """Mark rows in their plan as all rows of a permanent view, for `table_of_view`."""
        analyzed(rows).setTagValue(self._view_mark, "")

    def is_view_of_query(self, name: Sequence[str]) -> bool:
        """Return True for a temporary view that a statement defined by a query on Delta tables."""
        if not self.is_temporary_view(name):
            return False
        plan = self.java.table(quoted_path(name)).queryExecution().analyzed()
        while str(plan.nodeName()) in ("SubqueryAlias", "View"):
            plan = plan.child()
        return bool(plan.getTagValue(self._query_mark).isDefined())

    def table_of_view(self, name: Sequence[str]) -> TableView | None:
        """Return the table of which a temporary view has rows, without a limit or order; None for
        other views and names.
        """
        if not self.is_temporary_view(name):
            return None
        plan = self.java.table(quoted_path(name)).queryExecution().analyzed()
        columns = {str(each.name()): each.exprId() for each in scala_items(plan.output())}
        is_frame, is_partial, mark = True, False, self._mark
        is_by_permanent_view, view_mark = False, self._view_mark
        while not plan.getTagValue(mark).isDefined():
            kind = str(plan.nodeName())
            is_by_permanent_view |= plan.getTagValue(view_mark).isDefined()
            if kind == "Project":
                is_frame, sources = False, _sources(plan)
                columns = {name: sources.get(each) for name, each in columns.items()}
            elif kind == "View" and not plan.isTempView():
                return None
            elif kind == "Filter":
                is_frame = False
                is_partial |= str(plan.condition()) != "true"  # which `spliced` puts there
            elif kind not in ("SubqueryAlias", "View"):
                return None
            plan = plan.child()
        names = {each.exprId(): str(each.name()) for each in scala_items(plan.output())}
        version = plan.getTagValue(self._version_mark)
        return TableView(
            root=str(plan.getTagValue(mark).get()),
            version=str(version.get()) if version.isDefined() else None,
            columns={name: names.get(each) for name, each in columns.items()},
            num_columns=len(names),
            is_frame=is_frame,
            is_partial=is_partial,
            is_by_permanent_view=is_by_permanent_view,
        )

    @property
    def _mark(self) -> Any:
        """The tag of plans that are all rows of a table."""
        return plan_tag(self.jvm, "rowsOfTable")

    @property
    def _version_mark(self) -> Any:
        return plan_tag(self.jvm, "rowsOfVersion")

    @property
    def _view_mark(self) -> Any:
        return plan_tag(self.jvm, "rowsOfView")

    @property
    def _query_mark(self) -> Any:
        return plan_tag(self.jvm, "viewOfQuery")


def _sources(projection: Any) -> dict[Any, Any]:
    """Return the ids of the columns that a projection has as they are, by their ids above it."""
    sources = {}
    for each in scala_items(projection.projectList()):
        source = each.child() if class_name(each) == "Alias" else each
        if class_name(source) == "Cast" and source.dataType().equals(source.child().dataType()):
            source = source.child()  # as Spark adds it to the columns of a view
        if class_name(source) == "AttributeReference":
            sources[each.exprId()] = source.exprId()
    return sources
