"""Analyzed plans of classic Spark: the attributes of DataFrames, and the terms of conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.types import StructField, StructType

from sparkdelta.base.jvm.jvm import (
    JvmSession,
    analyzed,
    class_name,
    frame_of,
    jvm_of,
    none_of,
    scala_items,
    texts,
)
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.table_schema import as_nullable, quoted


class JvmPlans(JvmSession):
    """The part of a classic engine that looks into plans, also of other sessions."""

    def is_local_data(self, frame: DataFrame) -> bool:
        """Return True if Spark has all rows of a DataFrame once it has optimized its plan."""
        plan = frame._jdf.queryExecution().optimizedPlan()
        return str(plan.nodeName()) == "LocalRelation"

    def columns_frame(self, rows: DataFrame) -> DataFrame | None:
        """Return an empty DataFrame whose columns stand for the columns of rows; None on Spark
        Connect, which has none.
        """
        columns = [StructField(f.name, as_nullable(f.dataType)) for f in rows.schema]
        return self.spark.createDataFrame([], StructType(columns))

    def plan_nodes(self, frame: DataFrame) -> tuple[bool, frozenset[str]]:
        """Return True if a plan is deterministic, and the class names of its operators and
        expressions; of a filter, of its condition alone.
        """
        plan = analyzed(frame)
        tree = plan.condition() if plan.nodeName() == "Filter" else plan
        return bool(plan.deterministic()), node_classes(tree)

    def read_options_named(self, rows: DataFrame, name: str) -> set[str]:
        """Return the values of a read option in the file relations of a plan and its subqueries."""
        return set(_read_options(analyzed(rows), name))

    def has_cached_read(self, rows: DataFrame, name: str, value: str) -> bool:
        """Return True if Spark's cache has the rows of a file relation with a read option."""
        execution = rows._jdf.queryExecution()
        plans = execution.analyzed(), execution.withCachedData()
        before, after = (_read_options(plan, name).count(value) for plan in plans)
        return after < before

    def columns_used(self, frame: DataFrame, rows: DataFrame) -> list[str]:
        """Return the columns of `rows` that the last projections of `frame`, whose plan contains
        theirs, refer to.
        """
        plan = analyzed(frame)
        references = plan.references()
        while plan.nodeName() == "Project":  # of the arguments of SQL functions
            plan = plan.child()
            if plan.nodeName() == "Project":
                references = getattr(references, "$plus$plus")(plan.references())
        # The attributes may be spelled as the user writes them; Spark 4.3 takes them from there.
        spelled = {name_key(name): name for name in rows.columns}
        used = scala_items(analyzed(rows).outputSet().intersect(references).toSeq())
        return [spelled[name_key(str(attribute.name()))] for attribute in used]

    def with_attributes_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        """Return rows whose first columns stand for the columns of another DataFrame: they have its
        names, aliases and ids, so that expressions of it, and its own columns, can be evaluated on
        them.

        Parameters
        ----------
        rows
            The columns of `like` in their order, and possibly others.
        """
        return _standing_for(rows, dict(enumerate(_output(like))))

    def with_columns_of(self, rows: DataFrame, like: DataFrame) -> DataFrame:
        """Return rows whose columns stand for another DataFrame's columns of the same names and
        types: they have its ids, so that its own columns can be evaluated on them.
        """
        known = {(a.name(), a.dataType().catalogString()): a for a in _output(like)}
        attributes = {}
        for number, column in enumerate(_output(rows)):
            attribute = known.get((column.name(), column.dataType().catalogString()))
            if attribute is not None and not attribute.exprId().equals(column.exprId()):
                attributes[number] = attribute
        return _standing_for(rows, attributes) if attributes else rows


def _read_options(plan: Any, name: str) -> list[str]:
    """Return the value of a read option in each relation of a plan and its subqueries: of files, or
    in their place.
    """
    values = []
    for each in (plan, *scala_items(plan.subqueriesAll())):
        for leaf in scala_items(each.collectLeaves()):
            kind, value = class_name(leaf), None
            if kind == "DataSourceV2Relation":
                value = leaf.table().properties().get(name)
            elif kind == "LogicalRelation":
                relation = leaf.relation()
                if class_name(relation) == "HadoopFsRelation":
                    found = relation.options().get(name)
                    value = found.get() if found.isDefined() else None
            values += [] if value is None else [str(value)]
    return values


def calls_sql_functions(filtered: DataFrame) -> bool:
    """Return True if a filter's condition calls SQL functions of the user, which Spark replaces by
    their bodies and further operators.
    """
    return str(analyzed(filtered).nodeName()) != "Filter"


def filter_condition(filtered: DataFrame) -> tuple[str, str | None]:
    """Return the SQL text of a filter's analyzed condition, and the time zone in which its
    timestamps are formatted, or None if it has none.
    """
    plan = analyzed(filtered)
    while plan.nodeName() != "Filter":
        plan = plan.child()
    text, zone = str(plan.condition().sql()), None
    if "TIMESTAMP '" in text:  # formatted in the time zone of the thread's active session
        zone = str(plan.conf().sessionLocalTimeZone())
    return text, zone


def calls_user_functions(tree: Any) -> bool:
    """Return True if a plan or an expression calls functions that are not Spark's own."""
    return not _USER_FUNCTIONS.isdisjoint(name.rpartition(".")[2] for name in node_classes(tree))


def node_classes(tree: Any) -> frozenset[str]:
    """Return the class names of the nodes of a plan or an expression."""
    return frozenset(_CLASS.findall(str(tree.toJSON())))


_CLASS = re.compile(r'"class":"([^"]+)"')
_USER_FUNCTIONS = frozenset(
    (
        "ApplyFunctionExpression", "HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF",
        "SQLScalarFunction",
    )
)  # fmt: skip


def condition_terms(
    filtered: DataFrame, first: DataFrame, second: DataFrame
) -> Iterator[tuple[str | None, Column | None, int | None]]:
    """Yield terms of a filter's analyzed condition, all of which must be true.

    Yields the SQL text of a term that refers to `first` alone, or a term that refers to `second`
    alone, or both sides of a term that compares expressions of the two by ``=``; then, if the
    side of `second` is one of its columns, also the number of this column.

    Parameters
    ----------
    filtered
        A filter on the rows of `first` and `second`.
    """
    plan = analyzed(second)
    own, other = analyzed(first).outputSet(), plan.outputSet()
    for term in _conjuncts(analyzed(filtered).condition()):
        if _is_of(term, own):
            yield str(term.sql()), None, None
        elif _is_of(term, other):
            yield None, _column(term, filtered), None
        elif class_name(term) == "EqualTo":
            sides = term.left(), term.right()
            for one, two in (sides, sides[::-1]):
                if _is_of(one, own) and _is_of(two, other):
                    number = int(plan.output().indexOf(two))
                    column = _column(two, filtered)
                    yield str(one.sql()), column, None if number < 0 else number
                    break


def rows_matching(
    rows: DataFrame, filters: Sequence[Any], session: Any
) -> tuple[list[Any], list[int]]:
    """Return the rows of local data for which all filters are true, without their last column, and
    the numbers in that column.

    The rows are Spark's internal rows.

    Parameters
    ----------
    filters
        Catalyst expressions over attributes that are named as columns of `rows`.
    session
        The JVM session that evaluates them.
    """
    jvm = jvm_of(rows.sparkSession)
    plan = analyzed(rows)
    if filters:
        condition = joined(jvm, filters)
        by_name = {a.name(): a for a in scala_items(condition.references().toSeq())}
        own = [attribute.name() for attribute in _output(rows)]
        attributes = {n: by_name[name] for n, name in enumerate(own) if name in by_name}
        plan = analyzed(_standing_for(rows, attributes))
        plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Filter(condition, plan)
    found = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan)
    numbers = found.selectExpr(jvm.PythonUtils.toSeq([quoted(rows.columns[-1])]))
    values = found.drop(rows.columns[-1])
    text = texts(jvm, numbers.queryExecution().executedPlan().executeCollectPublic())
    return (
        list(values.queryExecution().executedPlan().executeCollect()),
        [int(line.strip("[]")) for line in text.splitlines()],
    )


def joined(jvm: Any, filters: Sequence[Any]) -> Any:
    """Return the conjunction of Catalyst expressions."""
    return reduce(jvm.org.apache.spark.sql.catalyst.expressions.And, filters)


def _standing_for(rows: DataFrame, attributes: Mapping[int, Any]) -> DataFrame:
    """Return rows some of whose columns, by their number, stand for other attributes."""
    spark = rows.sparkSession
    jvm = jvm_of(spark)
    none, nothing = none_of(jvm), _scala_sequence(jvm, [])
    catalyst = jvm.org.apache.spark.sql.catalyst
    alias, columns = catalyst.expressions.Alias, _output(rows)
    for number, attribute in attributes.items():
        columns[number] = alias(
            columns[number],
            attribute.name(),
            attribute.exprId(),
            attribute.qualifier(),
            none,
            nothing,
        )
    project = catalyst.plans.logical.Project(_scala_sequence(jvm, columns), analyzed(rows))
    return frame_of(project, spark)


def _output(frame: DataFrame) -> list[Any]:
    """Return the attributes that are the columns of a DataFrame."""
    return scala_items(analyzed(frame).output())


def _scala_sequence(jvm: Any, items: list[Any]) -> Any:
    array = jvm.java.util.ArrayList()
    for item in items:
        array.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(array).toSeq()


def _conjuncts(condition: Any) -> Iterator[Any]:
    stack = [condition]
    while stack:
        expression = stack.pop()
        if class_name(expression) == "And":
            stack += [expression.right(), expression.left()]
        else:
            yield expression


def _column(expression: Any, frame: DataFrame) -> Column:
    jvm = jvm_of(frame.sparkSession)
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _is_of(expression: Any, attributes: Any) -> bool:
    return bool(expression.references().subsetOf(attributes))
