MODEL (name shop.all_orders, kind FULL, description 'All of them', audits (not_null(columns := (id))));
SELECT id, customer, day, amount FROM shop.seed_orders
