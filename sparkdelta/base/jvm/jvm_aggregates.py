"""Aggregates over all rows of a scan: how classic Spark plans them, and rows in their place that
are computed when Spark plans the query that reads them.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple, cast, get_args

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from sparkdelta.base.jvm.jvm import (
    analyzed,
    class_name,
    frame_of,
    none_of,
    plan_tag,
    scala_items,
    singleton,
)
from sparkdelta.base.jvm.jvm_callbacks import complete_interfaces
from sparkdelta.base.jvm.jvm_plans import JvmPlans
from sparkdelta.base.jvm.jvm_query_callbacks import QueryCallback, answer, let_errors_pass
from sparkdelta.base.parquet.parquet_options import QueryId
from sparkdelta.base.schema.aggregates import Aggregate, AggregateFunction, AggregateQuery
from sparkdelta.exceptions import SparkMemberNotFoundError

_CONNECTOR = "org.apache.spark.sql.connector"
_MAX_FIELDS = 10_000
_ID = re.compile(r"#\d+L?")
_MAY_BE_MARKED = ("Project", "Union")
_KEEPS_ROWS = ("Project", "SubqueryAlias", "View")
_ORDERS_ROWS = ("Sort", "GlobalLimit", "LocalLimit")

_scans: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""The scans of plans by the tags of these; the plans keep them."""

_numbers = count()


class AggregatesOfScan(NamedTuple):
    """The aggregates of all rows of a scan, in a plan.

    Attributes
    ----------
    plan
        The node that computes them.
    above
        The nodes above it, from the top.
    """

    scan: Any
    query: AggregateQuery
    plan: Any
    above: list[Any]


class JvmAggregates(JvmPlans):
    """The part of a classic engine that knows aggregates over all rows of a scan."""

    def mark_rows_of_scan(self, rows: DataFrame, scan: object) -> None:
        """Mark rows, whose plan keeps a scan, as all rows of it."""
        plan, mark, number = analyzed(rows), self._scan_mark, str(next(_numbers))
        _scans[number] = scan
        for node in (plan, plan.collectLeaves().apply(0)):
            node.setTagValue(mark, number)

    def scan_of_rows(self, rows: DataFrame) -> Any:
        """Return the scan of which rows are all rows, with any columns; None for other rows, and
        for those that Spark has in its cache.
        """
        plan = analyzed(rows)
        found = self._marked_plan(plan)
        return None if found is None or self._is_cached(plan) else self._scan_of(found)

    def aggregates_of_scan(self, rows: DataFrame) -> AggregatesOfScan | None:
        """Return the scan whose aggregates are rows, perhaps sorted or limited; None as above."""
        plan, above = analyzed(rows), []
        while plan.nodeName() in _ORDERS_ROWS:
            above.append(plan)
            plan = plan.child()
        if plan.nodeName() not in ("Aggregate", "Distinct"):
            return None
        marked = self._marked_plan(plan.child())
        if marked is None or self._is_cached(plan):
            return None
        scan, columns = self._scan_of(marked), marked.outputSet()
        is_distinct = plan.nodeName() == "Distinct"
        results = plan.output() if is_distinct else plan.aggregateExpressions()
        keys = plan.output() if is_distinct else plan.groupingExpressions()
        found = [_aggregate(each, columns) for each in scala_items(results)]
        groups = [_aggregate(each, columns) for each in scala_items(keys)]
        names = tuple(key.column for key in groups if key is not None and key.column is not None)
        known = tuple(each for each in found if each is not None)
        if scan is None or len(known) < len(found) or len(names) < len(groups):
            return None
        return AggregatesOfScan(scan, AggregateQuery(known, names), plan, above)

    def rows_when_planned(
        self,
        rows: DataFrame,
        found: AggregatesOfScan,
        answer_of: Callable[[QueryId], DataFrame | None],
        listing: SparkSession,
    ) -> DataFrame:
        """Return rows in the place of others, which take no Spark job; these if Spark cannot.

        Parameters
        ----------
        found
            The aggregates in `rows`, which are read where there is no answer.
        answer_of
            Returns the aggregates as local data in the listing session.
        """
        try:
            relation = self._relation_of(_AnsweredRows(self.spark, listing, found.plan, answer_of))
        except (Py4JError, SparkMemberNotFoundError):  # Spark has other interfaces
            return rows
        aggregates = frame_of(found.plan, self.spark)
        answered = self.with_attributes_of(frame_of(relation, self.spark), aggregates)
        if not found.above:
            return answered
        plan = analyzed(answered)
        for node in reversed(found.above):
            plan = node.withNewChildren(self.jvm.PythonUtils.toSeq([plan]))
        return frame_of(plan, self.spark)

    def _relation_of(self, table: _AnsweredRows) -> Any:
        gateway: Any = self.spark.sparkContext._gateway
        let_errors_pass(gateway)
        if gateway not in _completed:
            complete_interfaces(self.spark, _AnsweredRows)
            _completed.add(gateway)
        sources, none = self.jvm.org.apache.spark.sql.execution.datasources.v2, none_of(self.jvm)
        return singleton(sources, "DataSourceV2Relation$").create(table, none, none)

    def _marked_plan(self, plan: Any) -> Any:
        """Return the marked plan of which a plan has all rows; None if there is none."""
        mark = self._scan_mark
        if not plan.collectLeaves().apply(0).getTagValue(mark).isDefined():
            return None  # with few calls, whatever is above
        while True:
            kind = str(plan.nodeName())
            if kind in _MAY_BE_MARKED and plan.getTagValue(mark).isDefined():
                return plan
            is_all = kind == "Filter" and str(plan.condition()) == "true"  # as `spliced` puts it
            if kind not in _KEEPS_ROWS and not is_all:
                return None
            plan = plan.child()

    def _scan_of(self, marked: Any) -> Any:
        return _scans.get(str(marked.getTagValue(self._scan_mark).get()))

    def _is_cached(self, plan: Any) -> bool:
        """Return True if Spark's cache has rows that a plan reads."""
        # A DataFrame keeps its own plan with the rows that are cached when it is first asked.
        leaves = frame_of(plan, self.spark)._jdf.queryExecution().withCachedData().collectLeaves()
        return any(str(leaf.nodeName()).startswith("InMemory") for leaf in scala_items(leaves))

    @property
    def _scan_mark(self) -> Any:
        return plan_tag(self.jvm, "rowsOfScan")


_completed: weakref.WeakSet[Any] = weakref.WeakSet()
"""The ways to a JVM whose interfaces have all their methods."""


def _aggregate(named: Any, columns: Any) -> Aggregate | None:
    """Return the aggregate of all rows, or of one of some columns, that a named expression is."""
    expression = named.child() if class_name(named) == "Alias" else named
    name, arguments = "group", [expression]
    if class_name(expression) == "AggregateExpression":
        if expression.filter().isDefined():
            return None
        function = expression.aggregateFunction()
        name, arguments = class_name(function).lower(), scala_items(function.children())
        if expression.isDistinct() and name == "count":
            name = "count distinct"
        elif name == "count" and [str(each) for each in arguments] == ["1"]:
            return Aggregate("count")
    if name not in get_args(AggregateFunction) or len(arguments) > 1:
        return None
    [column] = arguments
    if class_name(column) != "AttributeReference" or not columns.contains(column):
        return None
    return Aggregate(cast(AggregateFunction, name), str(column.name()))


class _AnsweredRows(QueryCallback):
    """Spark's table, and its scan, of rows that take no job."""

    class Java:
        implements = (
            f"{_CONNECTOR}.catalog.SupportsRead",
            f"{_CONNECTOR}.read.ScanBuilder",
            f"{_CONNECTOR}.read.LocalScan",
        )

    def __init__(
        self,
        spark: SparkSession,
        listing: SparkSession,
        plan: Any,
        answer_of: Callable[[QueryId], DataFrame | None],
    ) -> None:
        relation = plan.collectLeaves().apply(0).relation()
        aggregates = f"{plan.simpleString(_MAX_FIELDS)} {plan.output().mkString(', ')}"
        place = relation.location().toString()
        super().__init__(spark, listing, f"{_ID.sub('', aggregates)} of {place}")
        self._plan, self._options, self._answer_of = plan, relation.options(), answer_of

    @answer
    def name(self) -> str:
        return self.identity

    @answer
    def schema(self) -> Any:
        return self._plan.schema()

    readSchema = schema  # noqa: N815

    @answer
    def capabilities(self) -> Any:
        catalog = self.jvm.org.apache.spark.sql.connector.catalog
        return self.jvm.java.util.Collections.singleton(catalog.TableCapability.BATCH_READ)

    @answer
    def properties(self) -> Any:
        """Return the read options of the scan, among which is its mark."""
        return self.jvm.scala.jdk.javaapi.CollectionConverters.asJava(self._options)

    @answer
    def newScanBuilder(self, options: Any) -> Any:  # noqa: ARG002, N802
        return self

    @answer
    def build(self) -> Any:
        return self

    @answer
    def rows(self) -> Any:
        with self.in_listing_session() as user:
            answered = self._answer_of(self.query_id)
            if answered is not None:
                return _collected(answered._jdf)
        dataset = self.jvm.org.apache.spark.sql.classic.Dataset
        return _collected(dataset.ofRows(user or self.listing._jsparkSession, self._plan))


def _collected(rows: Any) -> Any:
    """Return Spark's internal rows."""
    return rows.queryExecution().executedPlan().executeCollect()
