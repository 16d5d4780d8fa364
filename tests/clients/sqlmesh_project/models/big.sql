MODEL (name shop.big, kind EMBEDDED);
SELECT id, amount FROM shop.all_orders WHERE amount > 15
