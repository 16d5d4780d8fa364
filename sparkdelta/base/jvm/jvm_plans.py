"""Analyzed plans of classic Spark: the attributes of DataFrames, and the terms of conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from sparkdelta.base.jvm.jvm import jvm_of, scala_items, texts
from sparkdelta.base.protocol.column_names import name_key
from sparkdelta.base.schema.table_schema import quoted


@dataclass(frozen=True, slots=True)
class ConditionTerm:
    """A term of a condition on rows of two DataFrames.

    Attributes
    ----------
    text
        Its SQL text if it refers to the first DataFrame alone, else None.
    column
        The term if it refers to the second DataFrame alone, else None.
    equal
        The SQL text of an expression of the first DataFrame, an expression of the second that the
        term compares it with by ``=``, and the number of the column that the latter is, if it is
        one; None if it is another term.
    """

    text: str | None = None
    column: Column | None = None
    equal: tuple[str, Column, int | None] | None = None


def condition_terms(
    filtered: DataFrame, first: DataFrame, second: DataFrame
) -> list[ConditionTerm]:
    """Return the terms of a filter's analyzed condition, all of which must be true.

    Parameters
    ----------
    filtered
        A filter on the rows of `first` and `second`.
    """
    plan = filtered._jdf.queryExecution().analyzed()
    plans = [frame._jdf.queryExecution().analyzed() for frame in (first, second)]
    return [_term(expression, plans, filtered) for expression in _conjuncts(plan.condition())]


def is_local_data(frame: DataFrame) -> bool:
    """True if Spark has all rows of a DataFrame once it has optimized its plan."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return str(plan.nodeName()) == "LocalRelation"


def columns_used(frame: DataFrame, rows: DataFrame) -> list[str]:
    """Return the columns of `rows` that the last projections of a plan refer to."""
    own = rows._jdf.queryExecution().analyzed().outputSet()
    plan = frame._jdf.queryExecution().analyzed()
    references = plan.references()
    while plan.nodeName() == "Project":  # of the arguments of SQL functions
        plan = plan.child()
        if plan.nodeName() == "Project":
            references = getattr(references, "$plus$plus")(plan.references())
    # The attributes may be spelled as the user writes them; Spark 4.3 takes them from there.
    spelled = {name_key(name): name for name in rows.columns}
    used = scala_items(own.intersect(references).toSeq())
    return [spelled[name_key(str(attribute.name()))] for attribute in used]


def with_attributes_of(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Return rows whose first columns stand for those of another DataFrame: they have its names,
    aliases and ids, so that expressions of it, and its own columns, can be evaluated on them.

    Parameters
    ----------
    rows
        The columns of `like` in their order, and possibly others.
    """
    return _standing_for(rows, dict(enumerate(_output(like))))


def with_columns_of(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Return rows whose columns stand for those of another DataFrame that have their names and
    types: they have its ids, so that its own columns can be evaluated on them.
    """
    known = {(a.name(), a.dataType().catalogString()): a for a in _output(like)}
    attributes = {}
    for number, own in enumerate(_output(rows)):
        found = known.get((own.name(), own.dataType().catalogString()))
        if found is not None and not found.exprId().equals(own.exprId()):
            attributes[number] = found
    return _standing_for(rows, attributes) if attributes else rows


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
    plan = rows._jdf.queryExecution().analyzed()
    if filters:
        condition = joined(jvm, filters)
        by_name = {a.name(): a for a in scala_items(condition.references().toSeq())}
        own = [attribute.name() for attribute in _output(rows)]
        attributes = {n: by_name[name] for n, name in enumerate(own) if name in by_name}
        plan = _standing_for(rows, attributes)._jdf.queryExecution().analyzed()
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
    none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    nothing = _scala_sequence(jvm, [])
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
    plan = rows._jdf.queryExecution().analyzed()
    project = catalyst.plans.logical.Project(_scala_sequence(jvm, columns), plan)
    renamed = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, project)
    return ClassicDataFrame(renamed, spark)


def _output(frame: DataFrame) -> list[Any]:
    """Return the attributes that are the columns of a DataFrame."""
    return scala_items(frame._jdf.queryExecution().analyzed().output())


def _scala_sequence(jvm: Any, items: list[Any]) -> Any:
    array = jvm.java.util.ArrayList()
    for item in items:
        array.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(array).toSeq()


def _conjuncts(condition: Any) -> Iterator[Any]:
    stack = [condition]
    while stack:
        expression = stack.pop()
        if _name(expression) == "And":
            stack += [expression.right(), expression.left()]
        else:
            yield expression


def _term(expression: Any, plans: Sequence[Any], frame: DataFrame) -> ConditionTerm:
    first, second = (plan.outputSet() for plan in plans)
    if _is_of(expression, first):
        return ConditionTerm(str(expression.sql()))
    if _is_of(expression, second):
        return ConditionTerm(column=_column(expression, frame))
    if _name(expression) != "EqualTo":
        return ConditionTerm()
    for own, other in (
        (expression.left(), expression.right()),
        (expression.right(), expression.left()),
    ):
        if _is_of(own, first) and _is_of(other, second):
            number = int(plans[1].output().indexOf(other))
            column = None if number < 0 else number
            return ConditionTerm(equal=(str(own.sql()), _column(other, frame), column))
    return ConditionTerm()


def _column(expression: Any, frame: DataFrame) -> Column:
    jvm = jvm_of(frame.sparkSession)
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _is_of(expression: Any, attributes: Any) -> bool:
    return bool(expression.references().subsetOf(attributes))


def _name(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())
