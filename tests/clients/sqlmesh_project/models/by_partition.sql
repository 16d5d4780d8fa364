MODEL (name shop.by_partition, kind INCREMENTAL_BY_PARTITION, partitioned_by [day], end '2024-01-03');
SELECT id, amount, day FROM shop.all_orders
