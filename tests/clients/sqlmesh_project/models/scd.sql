MODEL (name shop.scd, kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [amount]), end '2024-01-03');
SELECT id, customer, amount FROM shop.all_orders
