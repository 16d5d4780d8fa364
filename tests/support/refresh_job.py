"""The tables of a shop, refreshed day by day through Spark's own API: a job for `spark-submit`.

It knows no engine but by one line: ``--engine sparkdelta`` enables the session; with any other, the
session has delta-spark. What a day brings depends on its number alone. The job goes on where the
last one stopped. Its state, a file of JSON on the driver, holds what earlier versions had, and
with ``--export`` the rows of all tables.

This file is all that is submitted: it imports nothing of the tests.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

TABLES = {
    "item": "(i_id BIGINT NOT NULL, i_name STRING, i_price DECIMAL(7, 2), i_since DATE) {place} "
    "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "customer": "(c_id BIGINT, c_city STRING, c_since DATE, c_until DATE) {place}",
    "sales": "(s_id BIGINT, s_at TIMESTAMP, s_item BIGINT, s_customer BIGINT, s_quantity INT, "
    "s_day DATE GENERATED ALWAYS AS (CAST(s_at AS DATE))) {place} PARTITIONED BY (s_day) "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
    "'delta.deletedFileRetentionDuration' = 'interval 0 hours')",
    "totals": "(t_day DATE, t_city STRING, t_sales DECIMAL(27, 2), t_count BIGINT) {place}",
    "inventory": "(w_week INT, w_item BIGINT, w_quantity INT) {place} CLUSTER BY (w_item)",
    "returns": "(r_id BIGINT, r_sale BIGINT, r_reason STRING) {place}",
    "returned": "(r_sale BIGINT, r_reason STRING) {place}",
    "item_changes": "(i_id BIGINT, i_price DECIMAL(7, 2), _change_type STRING) {place}",
}
_CITIES = "element_at(array('Oslo', 'Zürich', 'São Paulo', '東京', 'O''Fallon'), 1 + luck % 5)"
_FIRST_DAY = date(2024, 2, 1)
_WEEK = 7
_EVOLVES = 10
_LOOKS_BACK = 4


class Shop:
    """The tables below a directory, and the rows that a day brings."""

    def __init__(self, spark: SparkSession, root: str, rows: int, state: dict[str, Any]) -> None:
        self.spark, self.root, self.rows, self.state = spark, root, rows, state

    def open(self) -> None:
        """Create the tables, or name those that are there: names end with the session."""
        for name, definition in TABLES.items():
            place = f"USING delta LOCATION '{self.root}/{name}'"
            is_new = not self.state["next_day"]
            self.spark.sql(
                f"CREATE TABLE {name} {definition.format(place=place) if is_new else place}"
            )

    def refresh(self, day: int) -> None:
        """Do the work of a day."""
        self.load_items(day)
        self.load_customers(day)
        self.load_sales(day)
        self.correct_sales(day)
        self.total_sales(day)
        self.return_sales(day)
        self.follow_items()
        if day % _WEEK == _WEEK - 1:
            self.take_inventory(day // _WEEK)
            self.maintain(day)
        if day % _LOOKS_BACK == _LOOKS_BACK - 1:
            self.look_back()

    def generated(self, count: int, day: int, *columns: str) -> DataFrame:
        """Rows of expressions over `id` and `luck`, a number below 1,000 for each row."""
        luck = f"CAST(pmod(hash(id, {day}), 1000) AS INT) AS luck"
        return self.spark.range(count).selectExpr("id", luck).selectExpr(*columns)

    def load_items(self, day: int) -> None:
        """Some prices change, a few items go, one comes."""
        price = "CAST(1 + luck / 100 AS DECIMAL(7, 2)) AS i_price"
        items = self.generated(20 + day, day, "id AS i_id", "luck", price)
        items.where("luck < 400").createOrReplaceTempView("new_items")
        self.spark.sql(f"""
            MERGE INTO item AS t USING new_items AS n ON t.i_id = n.i_id
            WHEN MATCHED AND n.luck < 20 THEN DELETE
            WHEN MATCHED AND t.i_price <> n.i_price
              THEN UPDATE SET i_price = n.i_price, i_since = {_literal(day)}
            WHEN NOT MATCHED THEN INSERT (i_id, i_name, i_price, i_since)
              VALUES (n.i_id, concat('item ', n.i_id), n.i_price, {_literal(day)})""")

    def load_customers(self, day: int) -> None:
        """Close the rows of customers who moved and add new ones; later with an e-mail column."""
        evolves = day >= _EVOLVES
        mail = ["concat(id, '@example.org') AS c_mail"] if evolves else []
        city = f"{_CITIES} AS c_city"
        rows = self.generated(self.rows // 2, day, "id AS c_id", city, "luck", *mail)
        rows.where("luck < 300").drop("luck").createOrReplaceTempView("new_customers")
        names, values = ("", "") if not evolves else (", c_mail", ", n.c_mail")
        self.spark.sql(f"""
            MERGE {"WITH SCHEMA EVOLUTION " if evolves else ""}INTO customer AS t USING (
              SELECT c_id AS key, * FROM new_customers
              UNION ALL
              SELECT NULL AS key, m.* FROM new_customers AS m JOIN customer AS c USING (c_id)
              WHERE c.c_until IS NULL AND c.c_city <> m.c_city
            ) AS n ON t.c_id = n.key
            WHEN MATCHED AND t.c_until IS NULL AND t.c_city <> n.c_city
              THEN UPDATE SET c_until = {_literal(day)}
            WHEN NOT MATCHED THEN INSERT (c_id, c_city, c_since, c_until{names})
              VALUES (n.c_id, n.c_city, {_literal(day)}, NULL{values})""")

    def load_sales(self, day: int) -> None:
        """Append a day, and a few late rows of the day before."""
        at = f"TIMESTAMP '{_day(day)} 08:00:00' + make_interval(0, 0, 0, 0, 0, luck % 700)"
        late = f"CASE WHEN luck < 30 THEN {at} - INTERVAL 1 DAY ELSE {at} END AS s_at"
        rows = self.generated(
            self.rows, day, f"{day} * 1000000L + id AS s_id", late,
            "CAST(luck % 20 AS BIGINT) AS s_item",
            f"pmod(id * 7 + luck, {self.rows // 2}) AS s_customer",
            "1 + luck % 4 AS s_quantity",
        )  # fmt: skip
        writer = rows.write.format("delta").mode("append")
        if day % 2:
            writer.save(f"{self.root}/sales")
        else:
            writer.saveAsTable("sales")

    def correct_sales(self, day: int) -> None:
        """Change and delete single rows of the last days, and forget old days."""
        recent = f"s_day >= {_literal(day - 3)}"
        self.spark.sql(f"DELETE FROM sales WHERE {recent} AND pmod(s_id, 11) = {day % 11}")
        self.spark.sql(
            f"UPDATE sales SET s_quantity = s_quantity + 1 WHERE {recent} AND s_item = {day % 20}"
        )
        if day % _WEEK == _WEEK - 1:
            self.spark.sql(f"DELETE FROM sales WHERE s_day < {_literal(day - 2 * _WEEK)}")

    def total_sales(self, day: int) -> None:
        self.spark.sql(f"""
            INSERT INTO totals REPLACE WHERE t_day >= {_literal(day - 3)}
            WITH homes AS (SELECT c_id, c_city FROM customer WHERE c_until IS NULL)
            SELECT s_day, c_city, CAST(SUM(s_quantity * i_price) AS DECIMAL(27, 2)), COUNT(*)
            FROM sales JOIN item ON s_item = i_id LEFT JOIN homes ON s_customer = c_id
            WHERE s_day >= {_literal(day - 3)} GROUP BY s_day, c_city""")

    def return_sales(self, day: int) -> None:
        """Append returns, and stream those with a reason to another table."""
        reason = "CASE WHEN luck % 2 = 0 THEN 'too small' END AS r_reason"
        sale = f"{day} * 1000000L + luck % {self.rows} AS r_sale"
        rows = self.generated(10, day, f"{day} * 100 + id AS r_id", sale, reason)
        rows.writeTo("returns").append()
        stream = self.spark.readStream.format("delta").load(f"{self.root}/returns")
        query = (
            stream.where("r_reason IS NOT NULL").select("r_sale", "r_reason")
            .writeStream.format("delta").option("checkpointLocation", self.checkpoint("returned"))
            .trigger(availableNow=True).toTable("returned")
        )  # fmt: skip
        query.awaitTermination()

    def follow_items(self) -> None:
        """Another stream is of changes."""
        changes = (
            self.spark.readStream.format("delta").option("readChangeFeed", "true")
            .option("startingVersion", "0").table("item")
        )  # fmt: skip
        query = (
            changes.select("i_id", "i_price", "_change_type").writeStream.format("delta")
            .option("checkpointLocation", self.checkpoint("item_changes"))
            .trigger(availableNow=True).start(f"{self.root}/item_changes")
        )  # fmt: skip
        query.awaitTermination()

    def checkpoint(self, name: str) -> str:
        return f"{self.root}/checkpoints/{name}"

    def take_inventory(self, week: int) -> None:
        """Load a week and the one before again; a bad load is taken back."""
        for number in {week, max(week - 1, 0)}:
            columns = (
                f"{number} AS w_week", "id AS w_item", f"luck + {week - number} AS w_quantity",
            )  # fmt: skip
            rows = self.generated(100, number, *columns)
            replaced = rows.write.format("delta").mode("overwrite")
            replaced.option("replaceWhere", f"w_week = {number}").save(f"{self.root}/inventory")
        if week % 2:
            good, _ = self.latest("inventory")
            self.spark.sql("UPDATE inventory SET w_quantity = -1")
            self.spark.sql(f"RESTORE TABLE inventory TO VERSION AS OF {good}")

    def maintain(self, day: int) -> None:
        since = _literal(day - _WEEK)
        self.spark.sql(f"OPTIMIZE sales WHERE s_day >= {since} ZORDER BY (s_item, s_customer)")
        self.spark.sql("OPTIMIZE inventory")
        self.spark.sql("OPTIMIZE customer")
        self.spark.sql("VACUUM sales")

    def latest(self, name: str) -> tuple[int, str]:
        """The latest version of a table, and its time."""
        history = self.spark.sql(f"DESCRIBE HISTORY {name}").selectExpr(
            "version", "date_format(timestamp, 'yyyy-MM-dd HH:mm:ss.SSS')"
        )
        version, time = history.orderBy("version", ascending=False).first() or (0, "")
        return int(version), str(time)

    def look_back(self) -> None:
        """Read tables as they were when the job last came here, by version and by time."""
        for name in ("item", "customer", "inventory"):
            if name in self.state["seen"]:
                version, time = self.state["seen"][name]
                for when in (f"VERSION AS OF {version}", f"TIMESTAMP AS OF '{time}'"):
                    query = f"SELECT COUNT(*), bit_xor(xxhash64(*)) FROM {name} {when}"
                    [row] = self.spark.sql(query).collect()
                    self.state["looks"].append([name, *row])
            self.state["seen"][name] = self.latest(name)


def exported(read: Callable[[str], DataFrame]) -> dict[str, Any]:
    """Columns and rows of all tables, by a function that reads one."""
    found = {}
    for name in TABLES:
        table = read(name)
        rows = table.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false')) AS row")
        columns = [f"{field.name} {field.dataType.simpleString()}" for field in table.schema]
        found[name] = {"columns": columns, "rows": sorted(row["row"] for row in rows.collect())}
    return found


def _day(number: int) -> date:
    return _FIRST_DAY + timedelta(days=number)


def _literal(number: int) -> str:
    return f"DATE '{_day(number)}'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--root", required=True, help="where the tables are")
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--days", type=int, default=30, help="how many to go on")
    parser.add_argument("--rows", type=int, default=60, help="sales of a day")
    parser.add_argument("--export", action="store_true")
    options = parser.parse_args()
    spark = SparkSession.builder.getOrCreate()
    if options.engine == "sparkdelta":
        import sparkdelta

        sparkdelta.enable(spark)
    state: dict[str, Any] = {"next_day": 0, "seen": {}, "looks": []}
    if options.state.exists():
        state = json.loads(options.state.read_text())
    shop = Shop(spark, options.root, options.rows, state)
    shop.open()
    first = state["next_day"]
    for day in range(first, first + options.days):
        shop.refresh(day)
    state["next_day"] = first + options.days
    if options.export:
        state["tables"] = exported(spark.table)
        if options.engine == "sparkdelta":
            found = [sparkdelta.verify(spark, f"{options.root}/{name}") for name in TABLES]
            state["findings"] = [str(each) for each in found if not each.is_clean]
    options.state.write_text(json.dumps(state))
    spark.stop()


if __name__ == "__main__":
    main()
