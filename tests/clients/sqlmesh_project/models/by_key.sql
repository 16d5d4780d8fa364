MODEL (name shop.by_key, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), end '2024-01-03');
SELECT id, customer, amount FROM shop.all_orders
