MODEL (name shop.bigger, kind FULL);
SELECT id, amount * 2 AS amount FROM shop.big
