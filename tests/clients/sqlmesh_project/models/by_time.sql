MODEL (name shop.by_time, kind INCREMENTAL_BY_TIME_RANGE (time_column day), partitioned_by day, cron '@daily', end '2024-01-03');
SELECT id, amount, day FROM shop.all_orders WHERE day BETWEEN @start_ds AND @end_ds
